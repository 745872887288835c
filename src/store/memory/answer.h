// What a check answers: a request put to a state, and the Decision that comes of it. Knows no
// table.
#pragma once

#include <algorithm>
#include <cstdint>

#include "weir/decision.h"

#include "algorithm/plan.h"
#include "store/memory/binding.h"

namespace weir::store {

template <class Algo>
struct Answer {
  using Plan = algorithm::Plan;
  using State = typename Algo::State;
  using Now = typename Algo::Now;

  // In two parts, because the fast path knows the first before it has seen the state.
  [[gnu::always_inline]] static void Begin(const Plan& plan, uint32_t charged,
                                           Decision& out) noexcept {
    out.retry_after = Duration::zero();
    out.limit = plan.burst;
    out.charged = charged;
    out.outcome = Outcome::kAllowed;
    out.basis = Basis::kStore;
    out.problem = Problem::kNone;
  }

  [[gnu::always_inline]] static void Describe(const Plan& plan, const State& state, const Now& now,
                                              Decision& out) noexcept {
    out.reset_after = algorithm::ToDuration(Algo::ResetNs(plan, state, now));
    out.remaining = static_cast<uint32_t>(Algo::Available(plan, state, now));  // at most the burst
  }

  // REQUIRES: Begin; the cost does not fit, and could.
  [[gnu::always_inline]] static void EndDenied(const Plan& plan, const State& state, const Now& now,
                                               uint64_t cost, Decision& out) noexcept {
    Describe(plan, state, now, out);
    out.retry_after = algorithm::ToDuration(Algo::RetryNs(plan, state, now, cost));
    out.charged = 0;
    out.outcome = Outcome::kDenied;
  }

  static void Allow(const Plan& plan, const State& state, const Now& now, uint64_t charged,
                    Decision& out) noexcept {
    Begin(plan, Saturated(charged), out);
    Describe(plan, state, now, out);
  }

  static void Deny(const Plan& plan, const State& state, const Now& now, uint64_t cost,
                   Decision& out) noexcept {
    Begin(plan, 0, out);
    EndDenied(plan, state, now, cost, out);
  }

  // Puts the request to a state. True if the state changed and must be written.
  static bool Apply(const Plan& plan, State& state, const Now& now, const Request& request,
                    Decision& out) noexcept {
    const uint64_t cost = request.cost;
    if (cost == 0) [[unlikely]] {
      Allow(plan, state, now, 0, out);
      return false;
    }
    if (request.mode == ChargeMode::kAdmit) {
      if (Algo::Take(plan, state, cost)) {
        Allow(plan, state, now, cost, out);
        return true;
      }
      Deny(plan, state, now, cost, out);
      return false;
    }
    switch (request.mode) {
      case ChargeMode::kUpTo:
        return ApplyUpTo(plan, state, now, cost, out);
      case ChargeMode::kCountAlways:
        return ApplyAlways(plan, state, now, cost, out);
      case ChargeMode::kAdmit:
      case ChargeMode::kDryRun:
        break;
    }
    State after = state;
    if (Algo::Take(plan, after, cost)) {
      Allow(plan, after, now, 0, out);
    } else {
      Deny(plan, state, now, cost, out);
    }
    return false;
  }

  static bool ApplyUpTo(const Plan& plan, State& state, const Now& now, uint64_t most,
                        Decision& out) noexcept {
    const uint64_t fits = std::min(most, Algo::Available(plan, state, now));
    if (fits == 0) {
      Deny(plan, state, now, 1, out);
      return false;
    }
    Algo::Take(plan, state, fits);
    Allow(plan, state, now, fits, out);
    return true;
  }

  static bool ApplyAlways(const Plan& plan, State& state, const Now& now, uint64_t cost,
                          Decision& out) noexcept {
    const bool possible = !Algo::kCountsUnits || cost <= plan.burst;
    if (possible && Algo::Take(plan, state, cost)) {
      Allow(plan, state, now, cost, out);
      return true;
    }
    const uint64_t used = Algo::Used(plan, state, now);
    Algo::Count(plan, state, cost);
    const uint64_t counted =
        (Algo::Used(plan, state, now) - used + 1) >> algorithm::kUsedFractionBits;
    if (possible) {
      Deny(plan, state, now, cost, out);
    } else {
      Begin(plan, 0, out);
      Describe(plan, state, now, out);
      out.outcome = Outcome::kDenied;
      out.problem = Problem::kCostAboveBurst;
    }
    // What went into a full state cannot be given back: it would take others' charges along.
    const uint64_t charged = std::min(cost, counted);
    out.charged = Saturated(charged);
    return true;
  }

 private:
  static uint32_t Saturated(uint64_t units) noexcept {
    return static_cast<uint32_t>(std::min<uint64_t>(units, ~uint32_t{0}));
  }
};

}  // namespace weir::store
