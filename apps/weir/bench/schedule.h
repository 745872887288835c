// When each request of an open loop should leave: evenly, whatever the answers do.
//
// Each time is computed from the request's number and not from the time before it, so nothing
// drifts; a loop that was held up finds all that became due meanwhile still to be sent.
#pragma once

#include <algorithm>
#include <cstdint>

#include "weir/time.h"

namespace weir::bench {

class Schedule {
 public:
  // REQUIRES: 1 <= per_second <= 10^9, and no more than 2^63 requests.
  Schedule(Timestamp start, uint64_t per_second, Duration duration) noexcept
      : start_(start), per_second_(per_second) {
    const auto whole = static_cast<uint64_t>(duration / kSecond);
    const auto rest = static_cast<uint64_t>((duration % kSecond).count());
    total_ = whole * per_second + rest * per_second / kNsPerSecond;
  }

  [[nodiscard]] uint64_t total() const noexcept { return total_; }
  [[nodiscard]] uint64_t left() const noexcept { return total_ - next_; }
  [[nodiscard]] bool done() const noexcept { return next_ == total_; }

  // When the next request should leave. REQUIRES: !done().
  [[nodiscard]] Timestamp next() const noexcept {
    const auto whole = std::chrono::seconds(next_ / per_second_);
    const auto rest = static_cast<int64_t>(next_ % per_second_ * kNsPerSecond / per_second_);
    return start_ + whole + Duration(rest);
  }
  // It has left, late or not.
  void Advance() noexcept { ++next_; }

 private:
  static constexpr uint64_t kNsPerSecond = 1'000'000'000;
  static constexpr Duration kSecond = std::chrono::seconds(1);

  Timestamp start_;
  uint64_t per_second_;
  uint64_t total_ = 0;
  uint64_t next_ = 0;
};

}  // namespace weir::bench
