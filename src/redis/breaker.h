// When a node is left alone. Pure: time and chance come from outside.
//
// Closed, it counts. It opens on so many failures in a row, or when half of the last second's calls
// failed. Where the failure is silence, either must also have lasted: a busy client has dozens of
// calls under way, and a machine that stands still for a moment fails them all together. An answer
// that comes too late is no success; its call has been counted. Open, nobody asks the node for a
// while. Then it probes: one question at a time, of our own, and so many good answers in a row
// close it. A node that was only away (its connection ended, it said that it cannot serve) or
// silent is looked at sooner the first time; one that keeps failing is not, so that in the long run
// a flapping node costs two transitions in ten seconds at most. Pauses differ by chance, so when it
// closes others may still leave that node alone: for as long as that may be, it settles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "weir/time.h"

#include "redis/options.h"
#include "redis/status.h"

namespace weir::redis {

class Breaker {
 public:
  enum class Cause : uint8_t { kSilence, kAway };

  explicit Breaker(const BreakerOptions& options) : options_(options) {}

  [[nodiscard]] BreakerState state() const noexcept { return state_; }
  [[nodiscard]] bool closed() const noexcept { return state_ == BreakerState::kClosed; }
  // REQUIRES: state() == kOpen. When to probe.
  [[nodiscard]] Timestamp probe_at() const noexcept { return probe_at_; }
  // REQUIRES: state() == kOpen. Whether to probe as soon as the node is heard.
  [[nodiscard]] bool listens() const noexcept { return listens_; }
  // Until when others who left the node alone when we did may do so still.
  [[nodiscard]] Timestamp settled_at() const noexcept { return closed_at_ + settle_; }
  [[nodiscard]] uint64_t transitions() const noexcept { return transitions_; }

  // A call was answered in time, by whatever shows that the node works.
  void OnSuccess(Timestamp now) noexcept {
    row_ = 0;
    Turn(now);
    ++slices_[slice_].calls;
    ++sum_.calls;
    half_ = half_ && HalfFails();
  }
  // True: it opened just now. `chance` is in [0, 1).
  bool OnFailure(Timestamp now, Cause cause, double chance) noexcept;

  // REQUIRES: state() == kOpen.
  void BeginProbing() noexcept {
    state_ = BreakerState::kProbing;
    successes_ = 0;
  }
  // REQUIRES: state() == kProbing. True: it closed just now.
  bool OnProbe(Timestamp now, bool good, double chance) noexcept;

 private:
  struct Tally {
    uint32_t calls = 0;
    uint32_t failures = 0;
  };
  static constexpr Duration kSlice = std::chrono::milliseconds(100);

  // What is older than a second is forgotten, a slice at a time.
  void Turn(Timestamp now) noexcept {
    if (now - slice_start_ >= kSlice) {
      TurnTo(now);
    }
  }
  void TurnTo(Timestamp now) noexcept;
  [[nodiscard]] bool HalfFails() const noexcept {
    return sum_.calls >= options_.calls_min && 2 * sum_.failures >= sum_.calls;
  }
  void Forget() noexcept;
  void Open(Timestamp now, Duration hold, double chance) noexcept;

  const BreakerOptions options_;
  BreakerState state_ = BreakerState::kClosed;
  uint32_t row_ = 0;  // failures without a success between
  Timestamp row_since_{};
  bool half_ = false;  // of the last second's calls fail, after each call since then
  Timestamp half_since_{};
  std::array<Tally, 10> slices_{};
  Tally sum_;  // of all slices
  size_t slice_ = 0;
  Timestamp slice_start_{};
  uint32_t successes_ = 0;  // of probes
  bool opened_before_ = false;
  bool listens_ = false;
  Timestamp closed_at_{};
  Duration settle_{};  // after the pause that was last begun
  Timestamp probe_at_{};
  uint64_t transitions_ = 0;
};

}  // namespace weir::redis
