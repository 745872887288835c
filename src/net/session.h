// What a connection talks to: bytes in, bytes out. A protocol implements this and never sees a
// socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/byte_buffer.h"

namespace weir::net {

// Who is at the other end.
struct Peer {
  std::string address;  // without a port; empty for a unix socket
  uint16_t port = 0;
  bool local = false;      // a unix socket, or the machine itself
  std::string identity{};  // of the certificate that it showed; empty: none
};

// Where a session lives.
class SessionHost {
 public:
  // OnWake soon: not within this call.
  virtual void WakeSoon() noexcept = 0;

 protected:
  ~SessionHost() = default;
};

class Session {
 public:
  enum class Next : uint8_t {
    kIdle,     // between messages: may wait for long
    kMessage,  // amidst a message: the rest has to come before long
    kAgain,    // more to do with what is there, once the output is on its way
    kClose,    // after the output the connection ends
  };

  struct Progress {
    size_t consumed = 0;  // bytes from the front of the input
    Next next = Next::kIdle;
    // With kMessage: it is the message that it was before, though bytes were consumed.
    bool same_message = false;
  };

  // Behind the input there are so many bytes that may be read (and mean nothing).
  static constexpr size_t kPadding = 64;

  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session() = default;

  // All input that was not consumed yet, and where to answer. The session may write to the input.
  virtual Progress OnBytes(std::span<char> input, base::ByteBuffer& output) = 0;
  // The rest of a message did not come in time; a last word, if there is one.
  virtual void OnTimeout(base::ByteBuffer& output) { (void)output; }
  // The server is going: end after the next answer. OnWake follows.
  virtual void OnDrain() {}

  // Asked after each answer: in how many seconds OnWake is wanted; 0: not at all.
  [[nodiscard]] virtual uint32_t WakeAfter() { return 0; }
  // Before anything else; it outlives the session. None: nobody is woken.
  void SetHost(SessionHost* host) noexcept { host_ = host; }
  // Something to say without being asked: what is written is sent. kClose ends the connection, all
  // else goes on.
  virtual Next OnWake(base::ByteBuffer& output) {
    (void)output;
    return Next::kIdle;
  }

 protected:
  // There is something to say. On the loop; not after the session's end.
  void AskToWake() noexcept {
    if (host_ != nullptr) {
      host_->WakeSoon();
    }
  }

  [[nodiscard]] SessionHost* host() const noexcept { return host_; }

 private:
  SessionHost* host_ = nullptr;
};

// Makes a session for each connection. One per loop and listener, used on that loop only.
class SessionFactory {
 public:
  SessionFactory() = default;
  SessionFactory(const SessionFactory&) = delete;
  SessionFactory& operator=(const SessionFactory&) = delete;
  virtual ~SessionFactory() = default;

  virtual std::unique_ptr<Session> Open(const Peer& peer) = 0;
};

}  // namespace weir::net
