// A quota compiled for the sketch, where many keys share a few words.
//
// Whatever the quota, the sketch counts by one law, GCRA: a lane holds the instant at which what
// was charged to it has drained. What one key is admitted there never goes beyond its quota:
//
//  - buckets and gaps keep their burst and interval; of a queue's burst, what starts at once;
//  - a quota of L units in H gets a burst of B = ceil(L/4) and drains one unit in H / (L - B + 1).
//    Then no interval of length H holds more than L, and neither a fixed window nor a sliding
//    counter, log or sliced window of that length, counting the same charges, would have refused
//    one of them. The price is that more than a quarter of a window's limit does not fit at once.
//
// Time is counted in ticks of 2^shift ns, chosen so that the burst fills a lane well. Stamps are
// rounded down, and an interval is rounded up and made one tick longer, so that a request that
// comes early by its rounding never gets more than the quota grants it.
#pragma once

#include <cstdint>

#include "base/wide_math.h"

namespace weir::algorithm {

struct Plan;

struct SketchPlan {
  // Quotas of one group share ticks and the cut of their words.
  static constexpr unsigned kGroups = 64;

  uint8_t shift = 0;       // ticks are ns >> shift
  uint8_t lane_bits = 12;  // four lanes of 12 bits a word for small bursts, else two of 24
  uint8_t group = 0;
  uint32_t burst = 0;      // the most units at once
  uint64_t emission = 0;   // ticks until a unit has drained
  uint64_t tolerance = 0;  // burst * emission
  uint64_t near = 0;       // a debt beyond this is near the limit
  base::NarrowReciprocal per_emission;
  uint64_t span_ns = 0;  // how long a charge counts under the quota (H); 0 for buckets and gaps
  uint64_t keep_ns = 0;  // how long after a charge its lanes say anything about the key

  [[nodiscard]] int64_t TickOf(uint64_t ns) const noexcept {
    return static_cast<int64_t>(ns >> shift);
  }
};

// `skew_ns`: stamps may lie this far to either side of the store's clock.
[[nodiscard]] SketchPlan PlanSketch(const Plan& plan, uint64_t skew_ns) noexcept;

}  // namespace weir::algorithm
