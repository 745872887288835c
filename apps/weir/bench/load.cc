#include "apps/weir/bench/load.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace weir::bench {

using app::Address;
using app::Protocol;

namespace {

constexpr int kEvents = 256;
constexpr Duration kMillisecond = std::chrono::milliseconds(1);

Error Failed(const std::string& what, int code) {
  return Error{ErrorCode::kUnavailable, what + ": " + std::strerror(code)};
}

std::unique_ptr<AnswerReader> HttpReader(std::string_view) {
  return MakeHttpAnswers();
}

}  // namespace

Load::Load(const LoadPlan& plan, const Message& message, const KeySource& keys, const Clock& clock,
           const std::atomic<bool>& stop)
    : plan_(plan),
      message_(message),
      keys_(keys),
      clock_(clock),
      stop_(stop),
      watched_(plan.connections) {
  const std::string_view name = std::string_view(plan_.command).substr(0, plan_.command.find(' '));
  for (size_t index = 0; index < plan_.connections; ++index) {
    const auto reader = plan_.target.protocol == Protocol::kHttp ? &HttpReader : &MakeRespAnswers;
    connections_.push_back(std::make_unique<Connection>(reader, name, plan_.pipeline));
  }
  touched_.reserve(plan_.connections);
}

Load::~Load() {
  if (epoll_ >= 0) {
    close(epoll_);
  }
}

Result<std::unique_ptr<Tally>> Load::Run() {
  auto address = Address::Resolve(plan_.target);
  if (!address) {
    return address.error();
  }
  address_ = *address;
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) {
    return Failed("no epoll", errno);
  }
  tally_ = std::make_unique<Tally>(Timestamp::max());
  if (auto opened = OpenAll(); !opened) {
    return opened.error();
  }
  const Timestamp start = clock_.Now();
  end_ = start + plan_.warmup + plan_.duration;
  tally_ = std::make_unique<Tally>(start + plan_.warmup);
  running_ = true;
  if (plan_.rate > 0) {
    schedule_ = std::make_unique<Schedule>(start, plan_.rate, plan_.warmup + plan_.duration);
  } else {
    for (size_t index = 0; index < connections_.size(); ++index) {
      if (auto filled = Fill(index); !filled) {
        return filled.error();
      }
    }
  }
  while (true) {
    const Timestamp now = clock_.Now();
    if (stop_.load(std::memory_order_relaxed)) {
      end_ = std::min(end_, now);
    }
    if (auto sent = SendDue(now); !sent) {
      return sent.error();
    }
    if (!IsSending() && (!IsWaiting() || now > end_ + plan_.patience)) {
      tally_->Unsent(schedule_ ? schedule_->left() : 0);
      return std::move(tally_);
    }
    if (auto served = WaitAndServe(TimeoutMs(now)); !served) {
      return served.error();
    }
  }
}

Result<void> Load::OpenAll() {
  const Timestamp deadline = clock_.Now() + plan_.patience;
  for (size_t index = 0; index < connections_.size(); ++index) {
    if (auto opened = Open(index); !opened) {
      return opened;
    }
  }
  while (opening_ > 0) {
    const Timestamp now = clock_.Now();
    if (now > deadline) {
      return Failed("cannot connect to " + plan_.target.authority, ETIMEDOUT);
    }
    if (auto served = WaitAndServe(static_cast<int>((deadline - now) / kMillisecond) + 1);
        !served) {
      return served;
    }
  }
  return {};
}

Result<void> Load::Open(size_t index) {
  if (auto opened = connections_[index]->Open(address_); !opened) {
    return opened;
  }
  ++opening_;
  watched_[index] = EPOLLOUT;
  epoll_event event{.events = EPOLLOUT, .data = {.u64 = index}};
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, connections_[index]->fd(), &event) != 0) {
    return Failed("cannot watch a connection", errno);
  }
  return {};
}

// Closing takes the socket out of the epoll as well.
Result<void> Load::Reopen(size_t index) {
  connections_[index]->Close();
  return IsSending() ? Open(index) : Result<void>();
}

// Asks to be told when a socket can be written to only while something waits for that.
Result<void> Load::Watch(size_t index) {
  const Connection& connection = *connections_[index];
  const uint32_t wanted = connection.has_unsent() ? EPOLLIN | EPOLLOUT : EPOLLIN;
  if (wanted == watched_[index]) {
    return {};
  }
  watched_[index] = wanted;
  epoll_event event{.events = wanted, .data = {.u64 = index}};
  if (epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.fd(), &event) != 0) {
    return Failed("cannot watch a connection", errno);
  }
  return {};
}

// A server that leaves no room keeps requests of an open loop waiting, but not for ever.
bool Load::IsSending() const {
  if (!running_ || stop_.load(std::memory_order_relaxed)) {
    return false;
  }
  return schedule_ ? !schedule_->done() && clock_.Now() < end_ + plan_.patience
                   : clock_.Now() < end_;
}

bool Load::IsWaiting() const {
  return std::any_of(connections_.begin(), connections_.end(),
                     [](const auto& connection) { return connection->unanswered() > 0; });
}

// Requests that are due go to the connections in turn, and each connection sends its own at once:
// a generator that fell behind catches up with few calls.
Result<void> Load::SendDue(Timestamp now) {
  if (!schedule_ || stop_.load(std::memory_order_relaxed)) {
    return {};
  }
  size_t room = 0;
  if (!schedule_->done() && schedule_->next() <= now) {
    for (const auto& connection : connections_) {
      room += connection->room();
    }
  }
  for (; room > 0 && !schedule_->done() && schedule_->next() <= now; --room) {
    Connection& connection = NextWithRoom();
    const bool first = !connection.has_unsent();
    connection.Add(message_, keys_.Next(), schedule_->next());
    tally_->Sent(schedule_->next(), now);
    schedule_->Advance();
    if (first) {
      touched_.push_back(turn_);
    }
  }
  for (const size_t index : touched_) {
    if (auto sent = connections_[index]->Flush(); !sent) {
      return sent;
    }
    if (auto watched = Watch(index); !watched) {
      return watched;
    }
  }
  touched_.clear();
  return {};
}

// REQUIRES: there is one.
Connection& Load::NextWithRoom() {
  do {
    turn_ = (turn_ + 1) % connections_.size();
  } while (connections_[turn_]->room() == 0);
  return *connections_[turn_];
}

// The closed loop's next batch of one connection.
Result<void> Load::Fill(size_t index) {
  if (!IsSending()) {
    return {};
  }
  Connection& connection = *connections_[index];
  const Timestamp now = clock_.Now();
  while (connection.room() > 0) {
    connection.Add(message_, keys_.Next(), now);
    tally_->Sent(now, now);
  }
  if (auto sent = connection.Flush(); !sent) {
    return sent;
  }
  return Watch(index);
}

// Waiting is done in whole milliseconds, and what is less than one away is waited for by asking
// again and again: a timer would be late by more than the latencies that are measured here.
int Load::TimeoutMs(Timestamp now) const {
  const bool sending = IsSending();
  if (schedule_ && sending) {
    return static_cast<int>(std::max(Duration::zero(), schedule_->next() - now) / kMillisecond);
  }
  const Timestamp until = sending ? end_ : end_ + plan_.patience;
  return static_cast<int>(std::max(Duration::zero(), until - now) / kMillisecond) + 1;
}

Result<void> Load::WaitAndServe(int timeout_ms) {
  std::array<epoll_event, kEvents> events;
  const int count = epoll_wait(epoll_, events.data(), kEvents, timeout_ms);
  if (count < 0 && errno != EINTR) {
    return Failed("cannot wait for answers", errno);
  }
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (auto served = Serve(event.data.u64, event.events); !served) {
      return Error{served.error().code, plan_.target.authority + ": " + served.error().message};
    }
  }
  return {};
}

Result<void> Load::Serve(size_t index, uint32_t events) {
  Connection& connection = *connections_[index];
  if (!connection.is_open()) {
    if (auto opened = connection.Opened(); !opened) {
      return opened;
    }
    --opening_;
    if (auto watched = Watch(index); !watched) {
      return watched;
    }
    return schedule_ ? Result<void>() : Fill(index);
  }
  if ((events & EPOLLOUT) != 0) {
    if (auto sent = connection.Flush(); !sent) {
      return sent;
    }
    if (auto watched = Watch(index); !watched) {
      return watched;
    }
  }
  return (events & ~uint32_t{EPOLLOUT}) != 0 ? Receive(index) : Result<void>();
}

Result<void> Load::Receive(size_t index) {
  Connection& connection = *connections_[index];
  const auto after = connection.Receive(clock_.Now(), *tally_);
  if (!after) {
    return after.error();
  }
  if (*after == Connection::After::kClosed) {
    return Reopen(index);
  }
  return !schedule_ && connection.unanswered() == 0 ? Fill(index) : Result<void>();
}

}  // namespace weir::bench
