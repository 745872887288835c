// The leaky bucket as a queue that delays: the law of gcra.h, and with it a start for what is
// admitted.
//
// The bucket drains a unit every T, like a server with one counter that serves in order of
// admission. A request is told to start when the last of its units is at most u = `undelayed` units
// away from having been served: start = max(now, TAT - u*T), TAT taken after the charge. So u units
// start at once, the rest wait, nobody longer than (B - u)*T, and no word is kept of anyone who
// waits.
//
// Starts never decrease in the order of admission. In any interval of length d the requests that
// start and are not given back cost at most max(u, c) + d/T units, c the cost of the first of them.
//
// That also says what can be given back. Whoever was admitted later has been told when to start, so
// a place in the middle of those who wait can be used by nobody: moving the TAT by it would let the
// next request start beside the last one. Free again are the last place, and any place while nobody
// waits: starts told by then lie in the past, and at the last of them at most u - c units of the
// debt were older than it, so what those give back adds at most as much to the interval it begins.
#pragma once

#include <algorithm>
#include <cstdint>

#include "algorithm/gcra.h"
#include "algorithm/plan.h"

namespace weir::algorithm {

template <class Ticks>
struct GcraQueue : Gcra<Ticks> {
  using Bucket = Gcra<Ticks>;
  using typename Bucket::Now;
  using typename Bucket::State;

  // After the charge.
  static uint64_t StartNs(const Plan& plan, State state) noexcept {
    return state.debt > plan.undelayed ? Ticks::ToNs(plan, state.debt - plan.undelayed) : 0;
  }

  // The plan of a queue so short that nobody waits longer than `max_wait_ns`: everything about the
  // decision follows from it. The burst that it shows stays.
  static Plan Within(const Plan& plan, uint64_t max_wait_ns) noexcept {
    Plan within = plan;
    const uint64_t ticks = Ticks::FromNs(plan, std::min(max_wait_ns, plan.horizon_ns));
    within.tolerance = std::min(plan.tolerance, plan.undelayed + ticks);
    return within;
  }

  // Whether a fresh key admits it. REQUIRES: cost <= burst.
  static bool Possible(const Plan& plan, uint64_t cost) noexcept {
    return cost * plan.emission <= plan.tolerance;
  }

  static bool SomebodyWaits(const Plan& plan, State state) noexcept {
    return state.debt > plan.undelayed;
  }

  // REQUIRES: while somebody waits, the charge was made under this plan. A change of quota may have
  // cut off the ends of several, and then nothing says who is last.
  static Refund GiveBack(const Plan& plan, State& state, Now now, uint64_t mark, uint32_t charged,
                         uint64_t moved_ns) noexcept {
    if (!SomebodyWaits(plan, state)) {
      return Bucket::GiveBack(plan, state, now, mark, charged, moved_ns);
    }
    // A charge that reaches as far as the state does waits itself. So somebody has waited ever
    // since it was made, all that was given back since came from behind it, and nothing has moved
    // it.
    const bool is_last = Bucket::Load(plan, mark, now).debt == state.debt;
    return is_last ? Bucket::GiveBack(plan, state, now, mark, charged, 0) : Refund{};
  }
};

}  // namespace weir::algorithm
