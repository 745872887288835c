// A socket and the session that answers it. Lives on one loop; deletes itself when it is closed and
// nothing of it is under way any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/byte_buffer.h"
#include "net/address_cap.h"
#include "net/deadlines.h"
#include "net/loop.h"
#include "net/read_operation.h"
#include "net/session.h"

namespace weir::net {

// In whole seconds, as deadlines are; 0: no limit.
struct ConnectionLimits {
  Deadlines::Seconds idle_s = 300;    // between messages
  Deadlines::Seconds message_s = 10;  // from the first byte of a message to its last
  Deadlines::Seconds write_s = 30;    // without the peer taking a byte of an answer
  size_t input_bytes_max = size_t{2} << 20;
};

class Connection final : public Deadlines::Entry, private SessionHost, private Reader {
 public:
  // Takes over: from here on the loop owns it.
  static void Open(Loop& loop, Socket socket, std::unique_ptr<Session> session,
                   const ConnectionLimits& limits, std::unique_ptr<AddressCap::Place> place);

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Closes it without another word. Deletes it at once if nothing is under way.
  void Abort();
  void Drain();
  void OnDeadline();

 private:
  friend class Loop;

  enum class State : uint8_t {
    kReading,
    kWriting,  // the peer is slow; nothing is read until it has taken the output
    kLeaving,  // all is said; what the peer still sends is dropped, so that it reads our answer
    kClosed,
  };

  Connection(Loop& loop, Socket socket, std::unique_ptr<Session> session,
             const ConnectionLimits& limits, std::unique_ptr<AddressCap::Place> place);
  ~Connection();

  void Read();
  void OnRead(const boost::system::error_code& error, size_t bytes) override;
  // In a fiber, if the session may have to wait for something.
  void Answer();
  void AnswerAll();
  bool Flush();
  void WriteRest();
  void Leave();
  void Wake();
  void WakeSoon() noexcept override;
  void BorrowOutput();
  void ReturnOutput();
  void SetTimeout(Deadlines::Seconds seconds);
  void SetDeadline();
  [[nodiscard]] bool IsUnderWay() const noexcept {
    return reading_ || writing_ || answering_ || waking_;
  }

  Loop& loop_;
  Socket socket_;
  ReadOperation read_;
  const std::unique_ptr<Session> session_;
  const ConnectionLimits limits_;
  const std::unique_ptr<AddressCap::Place> place_;  // nullptr: its address is not counted
  base::ByteBuffer input_;
  base::ByteBuffer output_;  // the loop's, or its own while there is something left in it
  size_t index_ = 0;         // in the loop's list
  size_t dropped_bytes_ = 0;
  State state_ = State::kReading;
  Session::Next next_ = Session::Next::kIdle;
  // Operations of the socket that will call back.
  bool reading_ = false;
  bool writing_ = false;
  bool waking_ = false;
  bool wake_wanted_ = false;  // as soon as nothing is being written
  bool answering_ = false;    // the session is at it, perhaps waiting
  bool wrote_ = false;        // since the last read: a peer that was gone by then is known
  Deadlines::Seconds timeout_at_ = Deadlines::kNever;
};

}  // namespace weir::net
