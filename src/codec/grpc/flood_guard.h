// Tells a peer that floods from one that is busy, by what it did within a second.
//
// Envoy resets a stream at each of its timeouts (20 ms unless told otherwise), so resets alone are
// no sign of ill will: only many of them that are most of what the peer asks for. Frames that ask
// for nothing are measured against calls for the same reason.
#pragma once

#include <cstdint>

#include "weir/time.h"

namespace weir::codec::grpc {

struct FloodLimits {
  uint32_t resets_max = 500;        // a second, if they are more than half of the calls
  uint32_t idle_frames_max = 1000;  // a second, and 4 more for each call
  uint32_t oversized_max = 16;      // header fields beyond the limit, a second
};

class FloodGuard {
 public:
  explicit FloodGuard(const FloodLimits& limits) noexcept : limits_(limits) {}

  // Before the bytes of a read.
  void Begin(Timestamp now) noexcept {
    if (now - began_ >= std::chrono::seconds(1)) {
      began_ = now;
      calls_ = resets_ = idle_frames_ = oversized_ = 0;
    }
  }

  void OnCall() noexcept { ++calls_; }
  // Each of these is false once it is too much.
  // Before our answer was out, by the peer or by what the peer did wrong.
  bool OnReset() noexcept {
    ++resets_;
    return resets_ <= limits_.resets_max || resets_ * 2 <= calls_;
  }
  // A frame that neither asks nor brings anything.
  bool OnIdleFrame() noexcept {
    ++idle_frames_;
    return idle_frames_ <= limits_.idle_frames_max + 4 * calls_;
  }
  bool OnOversized() noexcept { return ++oversized_ <= limits_.oversized_max; }

 private:
  const FloodLimits limits_;
  Timestamp began_{};
  uint64_t calls_ = 0;
  uint64_t resets_ = 0;
  uint64_t idle_frames_ = 0;
  uint32_t oversized_ = 0;
};

}  // namespace weir::codec::grpc
