#include "net/connection.h"

#include <algorithm>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>

namespace weir::net {

namespace asio = boost::asio;

namespace {

using Next = Session::Next;

// Room that is offered to each read, and what an idle connection may keep.
constexpr size_t kReadBytes = size_t{16} << 10;
constexpr size_t kKeptBytes = size_t{64} << 10;
// A peer that is told to go has this long, and may send this much, before it is cut off.
constexpr Deadlines::Seconds kLeavingSeconds = 2;
constexpr size_t kDroppedBytesMax = size_t{1} << 20;

}  // namespace

void Connection::Open(Loop& loop, Socket socket, std::unique_ptr<Session> session,
                      const ConnectionLimits& limits, std::unique_ptr<AddressCap::Place> place) {
  auto* const connection =
      new Connection(loop, std::move(socket), std::move(session), limits, std::move(place));
  connection->SetTimeout(limits.idle_s);
  connection->Read();
}

Connection::Connection(Loop& loop, Socket socket, std::unique_ptr<Session> session,
                       const ConnectionLimits& limits, std::unique_ptr<AddressCap::Place> place)
    : loop_(loop),
      socket_(std::move(socket)),
      read_(*this, loop.context()),
      session_(std::move(session)),
      limits_(limits),
      place_(std::move(place)) {
  read_.Prepare(socket_);
  session_->SetHost(this);
  loop_.Add(*this);
}

Connection::~Connection() {
  loop_.Remove(*this);
}

void Connection::Abort() {
  if (state_ != State::kClosed) {
    state_ = State::kClosed;
    boost::system::error_code ignored;  // it is gone either way
    socket_.close(ignored);
  }
  if (!IsUnderWay()) {
    delete this;  // else when that calls back, with an error
  }
}

void Connection::Drain() {
  session_->OnDrain();
  if (next_ == Next::kIdle && state_ == State::kReading && !answering_) {
    SetTimeout(kLeavingSeconds);
    Wake();
  }
}

// Only while nothing is being written: what the session says goes after what it said before.
void Connection::Wake() {
  wake_wanted_ = false;
  if (session_->OnWake(output_) == Next::kClose) {
    next_ = Next::kClose;
  }
  if (!Flush()) {
    return;
  }
  if (next_ == Next::kClose) {
    Leave();
  } else {
    SetDeadline();
  }
}

void Connection::WakeSoon() noexcept {
  wake_wanted_ = true;
  if (waking_) {
    return;
  }
  waking_ = true;
  asio::post(loop_.context(), [this] {
    waking_ = false;
    if (state_ == State::kClosed) {
      Abort();
    } else if (state_ == State::kReading && !answering_ && wake_wanted_) {
      Wake();
    }
  });
}

void Connection::SetTimeout(Deadlines::Seconds seconds) {
  // One more: the present second has begun already.
  timeout_at_ = seconds == 0 ? Deadlines::kNever : loop_.now() + seconds + 1;
  SetDeadline();
}

// What comes first: the end of our patience, or the session's wish to be woken.
void Connection::SetDeadline() {
  const uint32_t wake = state_ == State::kReading ? session_->WakeAfter() : 0;
  const Deadlines::Seconds at =
      wake == 0 ? timeout_at_ : std::min<Deadlines::Seconds>(timeout_at_, loop_.now() + wake);
  loop_.deadlines().Set(*this, at, loop_.now());
}

void Connection::OnDeadline() {
  if (answering_) {
    // It waits for nobody at the other end, and its own patience is shorter than ours.
    loop_.deadlines().Set(*this, loop_.now() + 1, loop_.now());
    return;
  }
  if (state_ == State::kReading && loop_.now() < timeout_at_) {
    Wake();
    return;
  }
  if (state_ == State::kReading && next_ == Next::kMessage) {
    loop_.counters().timed_out.fetch_add(1, std::memory_order_relaxed);
    session_->OnTimeout(output_);
    boost::system::error_code ignored;  // who is this slow need not get it
    socket_.write_some(asio::buffer(output_.data(), output_.size()), ignored);
    Leave();
    return;
  }
  if (state_ == State::kWriting) {
    loop_.counters().timed_out.fetch_add(1, std::memory_order_relaxed);
  }
  Abort();
}

void Connection::Read() {
  reading_ = true;
  char* const room = input_.Reserve(kReadBytes + Session::kPadding);
  read_.Start(socket_, {room, kReadBytes},
              wrote_ ? ReadOperation::First::kWait : ReadOperation::First::kTry);
}

void Connection::OnRead(const boost::system::error_code& error, size_t bytes) {
  reading_ = false;
  wrote_ = false;
  if (error || state_ == State::kClosed) {
    Abort();
    return;
  }
  if (state_ == State::kLeaving) {
    dropped_bytes_ += bytes;
    if (dropped_bytes_ > kDroppedBytesMax) {
      Abort();
    } else {
      Read();
    }
    return;
  }
  input_.Commit(bytes);
  if (state_ != State::kWriting) {
    Answer();  // else once the peer has taken what it was told meanwhile
  }
}

void Connection::Answer() {
  if (loop_.sessions_wait()) {
    loop_.fibers().Start([this]() noexcept { AnswerAll(); });
  } else {
    AnswerAll();
  }
}

// Lets the session answer all that is there, then reads on, or writes on, or goes.
void Connection::AnswerAll() {
  for (;;) {
    answering_ = true;
    BorrowOutput();
    // The padding behind the input is there: every read reserved it.
    const Session::Progress progress = session_->OnBytes(input_.span(), output_);
    answering_ = false;
    if (state_ == State::kClosed) {
      Abort();  // while it waited
      return;
    }
    input_.Consume(progress.consumed);
    const bool was_amidst =
        next_ == Next::kMessage && (progress.consumed == 0 || progress.same_message);
    next_ = progress.next;
    if (next_ == Next::kMessage && input_.size() > limits_.input_bytes_max) {
      next_ = Next::kClose;  // no session asks for so much; a fault of ours is kept small
    }
    if (!Flush()) {
      return;
    }
    if (next_ == Next::kAgain) {
      continue;
    }
    if (next_ == Next::kClose) {
      Leave();
      return;
    }
    state_ = State::kReading;
    ReturnOutput();
    if (next_ == Next::kIdle) {
      input_.Shrink(kKeptBytes);
      SetTimeout(loop_.draining() ? kLeavingSeconds : limits_.idle_s);
    } else if (!was_amidst) {
      SetTimeout(limits_.message_s);
    }
    Read();
    if (wake_wanted_) {
      WakeSoon();
    }
    return;
  }
}

void Connection::BorrowOutput() {
  if (output_.capacity() == 0) {
    output_.Swap(loop_.spare_output());
  }
}

// Unless somebody else has done so, while this one waited. REQUIRES: all of it is sent.
void Connection::ReturnOutput() {
  output_.Shrink(kKeptBytes);
  if (loop_.spare_output().capacity() == 0) {
    output_.Swap(loop_.spare_output());
  }
}

// Sends what it can at once. False: the rest is under way, or the peer is gone, and `this` may be
// gone as well.
bool Connection::Flush() {
  while (!output_.empty()) {
    boost::system::error_code error;
    const size_t sent = socket_.write_some(asio::buffer(output_.data(), output_.size()), error);
    if (error == asio::error::would_block) {
      state_ = State::kWriting;
      SetTimeout(limits_.write_s);
      WriteRest();
      return false;
    }
    if (error) {
      Abort();
      return false;
    }
    wrote_ = true;
    output_.Consume(sent);
  }
  return true;
}

void Connection::WriteRest() {
  writing_ = true;
  socket_.async_wait(Socket::wait_write, [this](const boost::system::error_code& error) {
    writing_ = false;
    if (error || state_ == State::kClosed) {
      Abort();
      return;
    }
    if (!Flush()) {
      return;
    }
    state_ = State::kReading;
    if (next_ == Next::kClose) {
      Leave();
    } else if (reading_) {
      SetTimeout(loop_.draining() ? kLeavingSeconds : limits_.idle_s);  // it spoke unasked
      if (wake_wanted_) {
        Wake();
      }
    } else {
      Answer();
    }
  });
}

// Closing a socket with unread input makes the kernel send a reset, which can overtake the answer.
// So the answer is followed by an end of stream, and what comes is dropped for a moment.
void Connection::Leave() {
  state_ = State::kLeaving;
  input_.Clear();
  boost::system::error_code error;
  socket_.shutdown(Socket::shutdown_send, error);
  if (error) {
    Abort();
    return;
  }
  SetTimeout(kLeavingSeconds);
  if (!reading_) {
    Read();
  }
}

}  // namespace weir::net
