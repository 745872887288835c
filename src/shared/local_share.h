// What one of N nodes admits by itself while the store is away: a token bucket of rate r/N and
// burst B/N, whatever the quota's own algorithm is.
//
// State is one instant, the theoretical arrival time (TAT), as in algorithm/gcra.h. A unit costs
// this node N*T of it, and all of it together may be B*T ahead of now. So a debt of the whole fleet
// that takes a while to drain at r takes as long here at r/N: the reset time that the store told
// last *is* the TAT to begin with, as it stands, and a switch grants nobody a fresh bucket.
//
// A cost above B/N (each unit, if there are more nodes than burst) does not fit into this bucket at
// any time. It saves up instead: its TAT may lag behind now by as much as is missing. The node then
// still admits at most B/N + (t - s)*r/N from the instant s at which the key was first asked for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "weir/quota.h"

#include "base/wide_math.h"

namespace weir::shared {

struct LocalPlan {
  uint64_t limit = 0;      // of the whole fleet, in `window_ns`
  uint64_t window_ns = 0;  // of a calendar period, the longest there is
  uint64_t nodes = 1;
  uint64_t burst = 0;         // of the whole fleet
  uint64_t burst_ns = 0;      // B*T
  uint64_t undelayed_ns = 0;  // queues: what starts at once; 0: not a queue
  bool windowed = false;      // counts what falls into a window, instead of draining steadily
  bool one_retry = false;     // a denial's retry time is the same for any cost
  bool linear = false;        // it grows by T for each unit

  // What `cost` units move the TAT by. Saturates; then it never fits.
  [[nodiscard]] uint64_t CostNs(uint64_t cost) const noexcept {
    return std::min(base::MulDivCeil(base::SaturatingMul(cost, nodes), window_ns, limit), kLongest);
  }

  // So long that sums of two of them and a stamp do not overflow an int64_t.
  static constexpr uint64_t kLongest = uint64_t{1} << 61;
};

// REQUIRES: nodes > 0, and the quota is not one of concurrency.
[[nodiscard]] LocalPlan MakeLocalPlan(const Quota& quota, uint32_t nodes);

// One key on one node. Instants are nanoseconds of one clock.
struct LocalState {
  int64_t tat_ns = 0;

  // How far ahead of now it is for a charge of this cost; below zero while such a cost saves up.
  [[nodiscard]] static int64_t Debt(const LocalPlan& plan, int64_t tat_ns, uint64_t cost_ns,
                                    int64_t now_ns) noexcept {
    const auto floor_ns =
        std::min<int64_t>(0, static_cast<int64_t>(plan.burst_ns) - static_cast<int64_t>(cost_ns));
    return std::max(tat_ns - now_ns, floor_ns);
  }
};

struct LocalStep {
  bool fits = false;
  int64_t debt_ns = 0;   // after the charge if it fits, else before it
  int64_t retry_ns = 0;  // if it does not fit
};

// Admit iff debt + c*N*T <= B*T.
[[nodiscard]] inline LocalStep TryLocally(const LocalPlan& plan, LocalState state, uint64_t cost,
                                          int64_t now_ns) noexcept {
  const auto cost_ns = static_cast<int64_t>(plan.CostNs(cost));
  const int64_t debt = LocalState::Debt(plan, state.tat_ns, static_cast<uint64_t>(cost_ns), now_ns);
  const int64_t over = debt + cost_ns - static_cast<int64_t>(plan.burst_ns);
  if (over > 0) {
    return {.fits = false, .debt_ns = debt, .retry_ns = over};
  }
  return {.fits = true, .debt_ns = debt + cost_ns, .retry_ns = 0};
}

// Whole units that still fit.
[[nodiscard]] inline uint64_t LocalRoom(const LocalPlan& plan, LocalState state,
                                        int64_t now_ns) noexcept {
  const int64_t left =
      static_cast<int64_t>(plan.burst_ns) - std::max<int64_t>(state.tat_ns - now_ns, 0);
  return left <= 0 ? 0
                   : base::MulDivFloor(static_cast<uint64_t>(left), plan.limit, plan.window_ns) /
                         plan.nodes;
}

// What of `units`, admitted here since the store's last word, is still owed now: this goes to the
// store when it returns. `base_ns` is the reset time that the store told last (or the instant of
// the first local ask): that debt it knows itself. Buckets have drained meanwhile, so what was
// admitted long ago is not charged again; a window that is still the one of the store's last word
// has all of them in it.
[[nodiscard]] inline uint64_t StillOwed(const LocalPlan& plan, int64_t base_ns, int64_t tat_ns,
                                        uint64_t units, int64_t now_ns) noexcept {
  if (plan.windowed && now_ns < base_ns) {
    return units;
  }
  const int64_t owed_ns = tat_ns - std::max(now_ns, base_ns);
  if (owed_ns <= 0) {
    return 0;
  }
  // ceil(owed / (N*T)), in two steps so that nothing overflows; the first one rounds up too.
  const uint64_t all = base::MulDivCeil(static_cast<uint64_t>(owed_ns), plan.limit, plan.window_ns);
  return std::min(units, (all + plan.nodes - 1) / plan.nodes);
}

}  // namespace weir::shared
