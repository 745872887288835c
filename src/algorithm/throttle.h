// GCRA whose rate comes with each request, as in the Redis commands CL.THROTTLE and THROTTLE.
//
// The state is the debt alone: how long until the key is as good as new. Whatever rate a request
// names is applied to that, so a key that is asked for with another rate keeps what it owes in
// time. Admit iff debt + quantity*T <= burst*T. A quantity of 0 peeks, one below 0 gives back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/wide_math.h"

namespace weir::algorithm {

struct ThrottleAsk {
  int64_t burst = 1;        // the most units at once on a fresh key
  int64_t interval_ns = 1;  // the time one unit takes to come back; above 0
  int64_t quantity = 1;
};

struct ThrottleAnswer {
  static constexpr int64_t kNever = -1;

  bool allowed = false;
  int64_t remaining = 0;      // more than the burst if more was given back than was owed
  int64_t retry_ns = kNever;  // kNever if allowed, or if it can never fit
  int64_t reset_ns = 0;
};

class Throttle {
 public:
  // What is remembered of a debt, about eighteen years; the answer to the request itself is exact.
  static constexpr uint64_t kDebtMax = uint64_t{1} << 59;

  // Puts the question to a debt. True if the debt changed.
  static bool Apply(const ThrottleAsk& ask, uint64_t& debt_ns, ThrottleAnswer& answer) noexcept {
    const Wide interval = ask.interval_ns;
    const Wide tolerance = interval * ask.burst;
    const Wide increment = interval * ask.quantity;
    const Wide before = static_cast<Wide>(debt_ns);
    const Wide after = before + increment;
    answer.allowed = after <= tolerance;
    const Wide owed = answer.allowed ? after : before;
    answer.reset_ns = Narrow(owed);
    answer.remaining = Narrow(std::max<Wide>((tolerance - owed) / interval, 0));
    answer.retry_ns = answer.allowed || increment > tolerance ? ThrottleAnswer::kNever
                                                              : Narrow(after - tolerance);
    if (!answer.allowed || increment == 0) {
      return false;
    }
    debt_ns = static_cast<uint64_t>(std::clamp<Wide>(after, 0, static_cast<Wide>(kDebtMax)));
    return true;
  }

 private:
  // Products of two 64-bit numbers, and sums of a few of them, fit.
  using Wide = __int128;

  static int64_t Narrow(Wide value) noexcept {
    constexpr auto kMin = std::numeric_limits<int64_t>::min();
    constexpr auto kMax = std::numeric_limits<int64_t>::max();
    return static_cast<int64_t>(std::clamp<Wide>(value, kMin, kMax));
  }
};

}  // namespace weir::algorithm
