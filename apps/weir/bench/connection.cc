#include "apps/weir/bench/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weir::bench {

using app::Address;

namespace {

constexpr size_t kReadBytes = 64 << 10;

Error Unavailable(std::string message) {
  return Error{ErrorCode::kUnavailable, std::move(message)};
}

Error SystemError(const std::string& what, int code) {
  return Unavailable(what + ": " + std::strerror(code));
}

}  // namespace

Connection::Connection(std::unique_ptr<AnswerReader> (*make_reader)(std::string_view),
                       std::string_view command, size_t pipeline)
    : make_reader_(make_reader), command_(command), due_(pipeline) {}

Result<void> Connection::Open(const Address& address) {
  reader_ = make_reader_(command_);
  answered_ = 0;
  fd_ = socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) {
    return SystemError("no socket", errno);
  }
  const int on = 1;
  // Fails for what is not TCP, which has no delay to turn off.
  (void)setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd_, address.get(), address.bytes) != 0 && errno != EINPROGRESS) {
    return SystemError("cannot connect", errno);
  }
  return {};
}

Result<void> Connection::Opened() {
  int code = 0;
  socklen_t size = sizeof code;
  if (getsockopt(fd_, SOL_SOCKET, SO_ERROR, &code, &size) != 0) {
    code = errno;
  }
  if (code != 0) {
    return SystemError("cannot connect", code);
  }
  open_ = true;
  return {};
}

void Connection::Add(const Message& message, std::string_view key, Timestamp due) {
  message.Append(key, output_);
  due_[(oldest_ + unanswered_) % due_.size()] = due;
  ++unanswered_;
}

Result<void> Connection::Flush() {
  while (!output_.empty()) {
    const ssize_t sent = send(fd_, output_.data(), output_.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EAGAIN) {
        return {};
      }
      // The end of a connection is found while reading, after the answers that came before it.
      if (errno == EPIPE || errno == ECONNRESET) {
        output_.Clear();
        return {};
      }
      return SystemError("cannot send", errno);
    }
    output_.Consume(static_cast<size_t>(sent));
  }
  return {};
}

Result<Connection::After> Connection::Receive(Timestamp now, Tally& tally) {
  char* const room = input_.Reserve(kReadBytes);
  const ssize_t got = recv(fd_, room, kReadBytes, 0);
  if (got < 0) {
    return errno == EAGAIN ? Result<After>(After::kOpen) : Ended(std::strerror(errno));
  }
  if (got == 0) {
    return Ended("closed by the server");
  }
  input_.Commit(static_cast<size_t>(got));
  while (!input_.empty()) {
    const AnswerState state = reader_->Read(input_.view());
    if (state == AnswerState::kMore) {
      break;
    }
    if (state == AnswerState::kBroken || unanswered_ == 0) {
      return Unavailable("not an answer: " + (state == AnswerState::kBroken
                                                  ? reader_->Explain()
                                                  : "nothing had been asked"));
    }
    const Answer answer = reader_->answer();
    tally.Answered(due_[oldest_], now, answer);
    if (answer == Answer::kError && tally.error().empty()) {
      tally.Explain(reader_->Explain());
    }
    oldest_ = (oldest_ + 1) % due_.size();
    --unanswered_;
    ++answered_;
    if (reader_->closes()) {
      return After::kClosed;
    }
    input_.Consume(reader_->consumed());
  }
  return After::kOpen;
}

// A connection that ends before its first answer would end again if it were opened anew.
Result<Connection::After> Connection::Ended(std::string_view how) {
  if (unanswered_ == 0 && answered_ > 0) {
    return After::kClosed;
  }
  return Unavailable("the connection ended (" + std::string(how) + ") with " +
                     std::to_string(unanswered_) + " requests unanswered");
}

void Connection::Close() noexcept {
  if (fd_ >= 0) {
    close(fd_);
  }
  fd_ = -1;
  open_ = false;
  input_.Clear();
  output_.Clear();
  oldest_ = unanswered_ = 0;
}

}  // namespace weir::bench
