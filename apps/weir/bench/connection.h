// One connection of the load: requests go out in order, and answers come back in that order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"
#include "weir/time.h"

#include "apps/weir/bench/answer.h"
#include "apps/weir/bench/message.h"
#include "apps/weir/bench/tally.h"
#include "apps/weir/target.h"
#include "base/byte_buffer.h"

namespace weir::bench {

class Connection {
 public:
  // At most `pipeline` requests are under way at a time.
  Connection(std::unique_ptr<AnswerReader> (*make_reader)(std::string_view),
             std::string_view command, size_t pipeline);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { Close(); }

  // Begins to connect, without waiting. It is open once the socket can be written to and Opened()
  // has found no error.
  Result<void> Open(const app::Address& address);
  Result<void> Opened();

  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] bool is_open() const noexcept { return open_; }
  [[nodiscard]] size_t unanswered() const noexcept { return unanswered_; }
  [[nodiscard]] size_t room() const noexcept { return open_ ? due_.size() - unanswered_ : 0; }

  // Adds a request to what the next Flush sends. REQUIRES: room() > 0.
  void Add(const Message& message, std::string_view key, Timestamp due);

  // Sends what the socket takes; the rest waits until it can be written to again.
  Result<void> Flush();
  [[nodiscard]] bool has_unsent() const noexcept { return !output_.empty(); }

  enum class After : uint8_t { kOpen, kClosed };

  // Reads what has come and counts the answers in it. kClosed: the server ended the connection as
  // it may, between answers or after it said so, and another one takes its place. An error: the
  // server went away, or what it says is not its protocol.
  Result<After> Receive(Timestamp now, Tally& tally);

  // What is under way is lost.
  void Close() noexcept;

 private:
  Result<After> Ended(std::string_view how);

  std::unique_ptr<AnswerReader> (*make_reader_)(std::string_view);
  std::string command_;
  std::unique_ptr<AnswerReader> reader_;
  int fd_ = -1;
  bool open_ = false;
  uint64_t answered_ = 0;  // since it was opened
  base::ByteBuffer input_;
  base::ByteBuffer output_;
  std::vector<Timestamp> due_;  // a ring: when those under way should have left
  size_t oldest_ = 0;
  size_t unanswered_ = 0;
};

}  // namespace weir::bench
