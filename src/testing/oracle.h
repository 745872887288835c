// Slow, exact oracles: one per algorithm, each written from its "admit iff" and nothing else.
//
// An oracle keeps every charge of one key and decides by counting them, in whole numbers of 128
// bits, with T = W/L as a fraction. It shares no code with src/algorithm. Times are Unix
// nanoseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/quota.h"

namespace weir::testing {

__extension__ using Int128 = __int128;

class Oracle {
 public:
  virtual ~Oracle() = default;

  // The "admit iff", for a cost above 0.
  [[nodiscard]] virtual bool Fits(int64_t now, uint64_t cost) const = 0;
  // Whether the key is at `now`, and from then on, as one never seen.
  [[nodiscard]] virtual bool IsFresh(int64_t now) const = 0;
  // Counts a charge whether it fits or not. Returns a handle for Remove.
  virtual size_t Charge(int64_t now, uint64_t cost);
  // As if the charge had never been made, or had been of that cost from the first. It keeps its
  // place: the charges stay in the order of their times, which the oracles rely on.
  void Remove(size_t handle) { charges_[handle].cost = 0; }
  void Lower(size_t handle, uint64_t cost) { charges_[handle].cost = cost; }

  // The largest cost that fits, 0 if none does. Fits is monotone in cost, so bisection finds it.
  [[nodiscard]] uint64_t Remaining(int64_t now, uint64_t most) const;

 protected:
  struct Paid {
    int64_t at;
    uint64_t cost;
  };

  std::vector<Paid> charges_;
};

// Token and leaky bucket: for all s <= now, charged in [s, now] + cost <= burst + (now - s) * L/W.
// The right side only grows as s goes back, so it is enough to look at s = every charge, and now.
class BucketOracle final : public Oracle {
 public:
  BucketOracle(Int128 limit, Int128 window_ns, uint64_t burst)
      : limit_(limit), window_ns_(window_ns), burst_(burst) {}

  [[nodiscard]] bool Fits(int64_t now, uint64_t cost) const override;
  [[nodiscard]] bool IsFresh(int64_t now) const override;

 private:
  [[nodiscard]] bool Within(int64_t now, uint64_t cost, uint64_t burst) const;

  Int128 limit_;
  Int128 window_ns_;
  uint64_t burst_;
};

// Minimum gap: now - last >= gap.
class GapOracle final : public Oracle {
 public:
  explicit GapOracle(int64_t gap_ns) : gap_ns_(gap_ns) {}

  [[nodiscard]] bool Fits(int64_t now, uint64_t cost) const override;
  [[nodiscard]] bool IsFresh(int64_t now) const override;

 private:
  int64_t gap_ns_;
};

// Windows cut at multiples of W, moved back by `phase`: charged in this window + cost <= L.
class FixedWindowOracle final : public Oracle {
 public:
  FixedWindowOracle(uint64_t limit, int64_t window_ns, int64_t phase_ns = 0)
      : limit_(limit), window_ns_(window_ns), phase_ns_(phase_ns) {}

  [[nodiscard]] bool Fits(int64_t now, uint64_t cost) const override;
  [[nodiscard]] bool IsFresh(int64_t now) const override;

 private:
  [[nodiscard]] int64_t BeginOf(int64_t now) const;
  [[nodiscard]] uint64_t Count(int64_t now) const;

  uint64_t limit_;
  int64_t window_ns_;
  int64_t phase_ns_;
};

// The first charge outside of a window opens one: charged in [open, open + W) + cost <= L.
class FirstHitOracle final : public Oracle {
 public:
  FirstHitOracle(uint64_t limit, int64_t window_ns) : limit_(limit), window_ns_(window_ns) {}

  [[nodiscard]] bool Fits(int64_t now, uint64_t cost) const override;
  [[nodiscard]] bool IsFresh(int64_t now) const override;

 private:
  [[nodiscard]] uint64_t Count(int64_t now) const;

  uint64_t limit_;
  int64_t window_ns_;
};

// floor(prev * (1 - f)) + cur + cost <= L over windows cut at multiples of W.
class SlidingWindowOracle final : public Oracle {
 public:
  SlidingWindowOracle(uint64_t limit, int64_t window_ns) : limit_(limit), window_ns_(window_ns) {}

  [[nodiscard]] bool Fits(int64_t now, uint64_t cost) const override;
  [[nodiscard]] bool IsFresh(int64_t now) const override;

 private:
  struct Counts {
    uint64_t weighted;
    uint64_t current;
  };

  [[nodiscard]] Counts CountsAt(int64_t now) const;

  uint64_t limit_;
  int64_t window_ns_;
};

// Charged in this day, week (from Monday), month or year of a zone + cost <= L. Local time is the C
// library's, which shares no line with ours. REQUIRES: the zone changes its clocks well away from
// midnight, so that the local date alone says which day it is.
class CalendarOracle final : public Oracle {
 public:
  CalendarOracle(uint64_t limit, CalendarPeriod period, std::string zone)
      : limit_(limit), period_(period), zone_(std::move(zone)) {}

  size_t Charge(int64_t now, uint64_t cost) override;
  [[nodiscard]] bool Fits(int64_t now, uint64_t cost) const override;
  [[nodiscard]] bool IsFresh(int64_t now) const override;

 private:
  [[nodiscard]] uint64_t Count(int64_t now) const;
  [[nodiscard]] int64_t PeriodOf(int64_t now) const;

  uint64_t limit_;
  CalendarPeriod period_;
  std::string zone_;
  std::vector<int64_t> periods_;  // of each charge
};

// Charged in (now - W, now] + cost <= L.
class LogOracle final : public Oracle {
 public:
  LogOracle(uint64_t limit, int64_t window_ns) : limit_(limit), window_ns_(window_ns) {}

  [[nodiscard]] bool Fits(int64_t now, uint64_t cost) const override;
  [[nodiscard]] bool IsFresh(int64_t now) const override;

 private:
  [[nodiscard]] uint64_t Count(int64_t now) const;

  uint64_t limit_;
  int64_t window_ns_;
};

// Slices of W/k cut at multiples of their length: charged in those of which any instant lies in
// (now - W, now] + cost <= L.
class SlicedOracle final : public Oracle {
 public:
  SlicedOracle(uint64_t limit, int64_t window_ns, int64_t slices)
      : limit_(limit), window_ns_(window_ns), slice_ns_(window_ns / slices) {}

  [[nodiscard]] bool Fits(int64_t now, uint64_t cost) const override;
  [[nodiscard]] bool IsFresh(int64_t now) const override;

 private:
  [[nodiscard]] uint64_t Count(int64_t now) const;

  uint64_t limit_;
  int64_t window_ns_;
  int64_t slice_ns_;
};

// `phase_ns` matters to per-key windows only.
[[nodiscard]] std::unique_ptr<Oracle> MakeOracle(const Quota& quota, int64_t phase_ns = 0);

// A bucket a millionth slower than the quota: what fits it must be admitted, for the rate is met to
// one part in a million. REQUIRES: a bucket.
[[nodiscard]] std::unique_ptr<Oracle> MakeSlowerOracle(const Quota& quota);

}  // namespace weir::testing
