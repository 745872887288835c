// The time base of a store: monotone, moved only by the store's own clock.
//
// Checks bring their `now`; the table clock says whether to believe it, and when state may be
// reclaimed. Both hang on one number, the floor: the store's last reading less max_skew. A stamp is
// accepted between the floor and a little past the reading, so no accepted stamp lies before the
// floor it was accepted under, and state that has expired at the floor is as good as fresh for all.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "weir/time.h"

#include "base/in_place.h"

namespace weir::store {

class TableClock {
 public:
  // Store time starts well above 0, so that a stamp from before the start is still a positive one,
  // and at a whole tick, so that whole microseconds of the source are whole ticks here.
  static constexpr uint64_t kStartNs = 2'000'000'000'000;
  static constexpr Duration kMaxSkew = std::chrono::minutes(10);
  static constexpr Duration kMinSkew = std::chrono::milliseconds(1);
  static constexpr uint64_t kLongestTickNs = 1000;

  TableClock(const Clock& source, Duration max_skew) noexcept;

  [[nodiscard]] const Clock& source() const noexcept { return source_; }
  [[nodiscard]] uint64_t max_skew_ns() const noexcept { return max_skew_ns_; }

  [[nodiscard]] uint64_t ToStore(Timestamp now) const noexcept {
    // Relaxed: the origin moves only when the source is set back, and then stands alone.
    return base::Less(static_cast<uint64_t>(now.time_since_epoch().count()), origin_ns_);
  }

  [[nodiscard]] uint64_t ReadSource() const noexcept { return ToStore(source_.Now()); }

  // No stamp read from the source so far is later. After the floor by at least a tick of any state:
  // what is written as of this instant differs from all that was reclaimed before (line.h).
  [[nodiscard]] uint64_t LatestStampNs() const noexcept {
    const uint64_t floor = floor_ns();
    const auto ahead = static_cast<int64_t>(ReadSource() - floor);
    return floor + static_cast<uint64_t>(std::clamp(ahead, static_cast<int64_t>(kLongestTickNs),
                                                    static_cast<int64_t>(3 * max_skew_ns_)));
  }

  // Acquire: a floor must not be older than the slot whose reclaim it allowed (see line.h).
  [[nodiscard]] uint64_t floor_ns() const noexcept {
    return floor_ns_.load(std::memory_order_acquire);
  }

  // False: ask the housekeeping to refresh the clock, then look again with Near.
  [[nodiscard]] bool Accepts(uint64_t now_ns) const noexcept {
    return base::LessAcquired(now_ns, floor_ns_) <= accepted_span_ns_;
  }

  // Whether a stamp that Accepts turned away may pass while another thread refreshes the clock.
  [[nodiscard]] bool Tolerates(uint64_t now_ns) const noexcept {
    return now_ns - floor_ns() <= accepted_span_ns_ + max_skew_ns_;
  }

  // Within max_skew of the last reading, on either side.
  [[nodiscard]] bool Near(uint64_t now_ns) const noexcept {
    return now_ns - floor_ns() <= 2 * max_skew_ns_;
  }

  // The last reading. Never goes back.
  [[nodiscard]] uint64_t now_ns() const noexcept { return floor_ns() + max_skew_ns_; }

  // The source was set back by this much: no time has passed, and from here it goes on. Only under
  // the housekeeping's mutex.
  void Rebase(uint64_t back_ns) noexcept {
    origin_ns_.fetch_sub(back_ns, std::memory_order_relaxed);
  }

  // Only under the housekeeping's mutex. Release pairs with the acquire in floor_ns.
  void Publish(uint64_t now_ns) noexcept {
    floor_ns_.store(now_ns - max_skew_ns_, std::memory_order_release);
  }

 private:
  const Clock& source_;
  const uint64_t max_skew_ns_;
  const uint64_t accepted_span_ns_;
  std::atomic<uint64_t> origin_ns_;  // modulo 2^64: may lie before the source's own zero
  std::atomic<uint64_t> floor_ns_;
};

}  // namespace weir::store
