// The time base of a store: monotone, moved only by the store's own clock.
//
// Checks bring their `now`; the table clock says whether to believe it, and when state may be
// reclaimed. Both hang on one number, the floor: the store's last reading less max_skew. A stamp is
// accepted between the floor and a little past the reading, so no accepted stamp lies before the
// floor it was accepted under, and state that has expired at the floor is as good as fresh for all.
#pragma once

#include <atomic>
#include <cstdint>

#include "weir/time.h"

namespace weir::store {

class TableClock {
 public:
  // Store time starts well above 0, so that a stamp from before the start is still a positive one.
  static constexpr uint64_t kStartNs = uint64_t{1} << 41;
  static constexpr Duration kMaxSkew = std::chrono::minutes(10);
  static constexpr Duration kMinSkew = std::chrono::milliseconds(1);

  TableClock(const Clock& source, Duration max_skew) noexcept;

  [[nodiscard]] const Clock& source() const noexcept { return source_; }
  [[nodiscard]] uint64_t max_skew_ns() const noexcept { return max_skew_ns_; }

  [[nodiscard]] uint64_t ToStore(Timestamp now) const noexcept {
    return static_cast<uint64_t>(now.time_since_epoch().count()) - origin_ns_;
  }

  [[nodiscard]] uint64_t ReadSource() const noexcept { return ToStore(source_.Now()); }

  // Acquire: a floor must not be older than the slot whose reclaim it allowed (see line.h).
  [[nodiscard]] uint64_t floor_ns() const noexcept {
    return floor_ns_.load(std::memory_order_acquire);
  }

  // False: ask the housekeeping to refresh the clock, then look again with Near.
  [[nodiscard]] bool Accepts(uint64_t now_ns) const noexcept {
    return now_ns - floor_ns() <= accepted_span_ns_;
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

  // Only under the housekeeping's mutex. Release pairs with the acquire in floor_ns.
  void Publish(uint64_t now_ns) noexcept {
    floor_ns_.store(now_ns - max_skew_ns_, std::memory_order_release);
  }

 private:
  const Clock& source_;
  const uint64_t max_skew_ns_;
  const uint64_t accepted_span_ns_;
  const uint64_t origin_ns_;  // modulo 2^64: may lie before the source's own zero
  std::atomic<uint64_t> floor_ns_;
};

}  // namespace weir::store
