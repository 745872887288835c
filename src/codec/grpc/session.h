// One HTTP/2 connection that speaks gRPC: bytes in, calls of methods, bytes out. No socket and no
// clock: who feeds it says what time it is.
//
// All that one read asks for is answered by the time Receive returns, but for what methods answer
// later, and Send gives it as one piece. What a peer may do is bounded (SessionLimits, FloodGuard):
// beyond that a stream, or the connection, ends with a word that says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weir/time.h"

#include "base/byte_buffer.h"
#include "codec/grpc/call.h"
#include "codec/grpc/flood_guard.h"
#include "codec/grpc/idle_resets.h"
#include "codec/grpc/memory_pool.h"
#include "codec/grpc/method.h"
#include "codec/grpc/status.h"

namespace weir::codec::grpc {

struct SessionLimits {
  uint32_t streams_max = 1000;
  uint32_t message_bytes_max = 1U << 20;
  uint32_t held_bytes_max = 4U << 20;     // of unfinished requests, over all streams
  uint32_t header_bytes_max = 16U << 10;  // decoded, 32 more for each field
  uint32_t stream_window_bytes = 1U << 20;
  uint32_t connection_window_bytes = 4U << 20;
  uint32_t continuations_max = 8;
  FloodLimits flood;

  // 0: no limit.
  Duration message_max = std::chrono::seconds(10);  // from a call's beginning to its request's end
  Duration idle_max = std::chrono::seconds(300);    // without a call
  Duration keepalive = std::chrono::seconds(60);    // of silence with calls open, then a PING
  Duration keepalive_timeout = std::chrono::seconds(20);
  Duration age_max{};
  Duration age_grace = std::chrono::hours(1);
};

// What all sessions of a loop share.
struct SessionShared {
  MethodTable methods;
  CallPool calls;
  MemoryPool memory;
  SessionLimits limits;
};

class Session {
 public:
  Session(SessionShared& shared, Timestamp now);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  // False: the peer is to be left once what Send gives has been sent.
  bool Receive(std::string_view bytes, Timestamp now);
  // Appends what is to be sent; true: there is more, for when the peer has taken this.
  bool Send(base::ByteBuffer& output);

  // Time has passed: calls that are too old end, streams are told news, a silent peer is asked
  // whether it is there. False as of Receive.
  bool OnWake(Timestamp now);
  // When OnWake is of use again.
  [[nodiscard]] Timestamp NextWake(Timestamp now) const;
  // No more calls: the peer is told twice, and what it has begun is answered. False as of Receive.
  bool Drain(Timestamp now);

  [[nodiscard]] bool established() const noexcept { return established_; }
  // What is called when a method has answered later, so that Send is called.
  void OnLater(std::function<void()> told) { on_later_ = std::move(told); }

  // Calls answered so far, and those of them that did not end well; none that was answered later,
  // which who answered knows.
  [[nodiscard]] uint64_t answers() const noexcept { return answers_; }
  [[nodiscard]] uint64_t errors() const noexcept { return errors_; }
  // Why the connection ends, if the peer broke the protocol or a limit; else empty.
  [[nodiscard]] std::string_view fault() const noexcept { return fault_; }

 private:
  friend class Call;
  friend struct SessionCallbacks;

  enum class Going : uint8_t {
    kNo,
    kNoticed,  // told that the end is near; a last call may be on its way
    kLast,     // told which call was the last
  };

  // What nghttp2 calls; 0 or its error.
  int OnBeginFrame(uint8_t type, uint8_t flags, size_t length);
  int OnBeginRequest(int32_t stream);
  int OnHeader(Call& call, std::string_view name, std::string_view value);
  int OnHeadersEnd(Call& call);
  int OnData(Call& call, std::string_view bytes);
  void OnRequestEnd(Call& call);
  int OnResetReceived(Call* call);
  void OnPong();
  void OnSent(uint8_t type, uint8_t flags, int32_t stream, uint32_t error_code);
  void OnClose(Call& call);
  ptrdiff_t OnRead(Call& call, uint8_t* to, size_t size, uint32_t& flags);

  int Flooded(std::string_view why);
  // Whole messages of a request go to its method.
  void Deliver(Call& call);
  void Begin(Call& call);
  void Finish(Call& call, Status status);
  void Refuse(Call& call, std::string_view http_status, Status status);
  void DropRequest(Call& call);
  bool WantsMore() const;

  SessionShared& shared_;
  nghttp2_session* session_ = nullptr;
  FloodGuard guard_;
  IdleResets idle_resets_;
  Call* open_ = nullptr;
  size_t held_bytes_ = 0;
  Timestamp now_;
  const Timestamp began_;
  Timestamp last_received_;
  Timestamp last_call_;
  Timestamp pinged_{};
  Timestamp going_since_{};
  std::string_view fault_;
  std::function<void()> on_later_;
  uint64_t answers_ = 0;
  uint64_t errors_ = 0;
  Going going_ = Going::kNo;
  bool established_ = false;  // the peer has sent its settings
  bool ping_open_ = false;
  bool broken_ = false;
};

}  // namespace weir::codec::grpc
