// Token bucket and leaky bucket (as a meter): one law, GCRA.
//
// Admit iff for all s <= t: admitted in [s, t] + c <= B + (t - s)/T, with B the burst and T the
// emission interval. The state is one instant, the theoretical arrival time (TAT): when the bucket
// is full again. Relative to now it is a debt of max(TAT - now, 0) ticks, and a charge of c fits
// iff debt + c*T <= B*T.
#pragma once

#include <algorithm>
#include <cstdint>

#include "algorithm/plan.h"

namespace weir::algorithm {

template <class Ticks>
struct Gcra {
  static constexpr SlotKind kSlot = Ticks::kSlot;
  static constexpr bool kCountsUnits = true;   // whether a cost can be too large for the quota
  static constexpr bool kMarkIsState = true;   // a receipt's mark converts like a state
  static constexpr bool kUsesWindows = false;  // whether Moment's phase and period matter
  static constexpr uint64_t kMask = base::LowBits(Ticks::kPayloadBits);
  static constexpr uint64_t kHalf = uint64_t{1} << (Ticks::kPayloadBits - 1);

  struct Now {
    uint64_t tick;
  };

  struct State {
    uint64_t debt;
  };

  static Now At(const Plan& plan, const Moment& moment) noexcept {
    return {Ticks::FromNs(plan, moment.ns)};
  }

  // The clock of the payload wraps; less than half a wrap ahead of now is a debt, more is the past.
  // The sweeper sees to it that no state gets older than that. Bits above the payload are ignored.
  static State Load(const Plan&, uint64_t payload, Now now) noexcept {
    constexpr unsigned kUnused = 64 - Ticks::kPayloadBits;
    const auto ahead = static_cast<int64_t>((payload - now.tick) << kUnused);
    return {static_cast<uint64_t>(ahead > 0 ? ahead : 0) >> kUnused};
  }

  static uint64_t Save(const Plan& plan, State state, Now now) noexcept {
    return SaveLow(plan, state, now) & kMask;
  }

  // What is above the payload means nothing.
  static uint64_t SaveLow(const Plan&, State state, Now now) noexcept {
    return now.tick + state.debt;
  }

  // A key without a slot. If the table's clock is ahead of the caller's stamp, the key may have
  // been reclaimed meanwhile, so it starts from the table's clock and never from before it.
  static State Fresh(const Plan& plan, Now now, Now floor) noexcept {
    return Load(plan, floor.tick, now);
  }

  static bool Expired(const Plan&, uint64_t payload, Now floor) noexcept {
    return ((payload - floor.tick - 1) & kMask) >= kHalf - 1;
  }

  // REQUIRES: cost <= burst.
  static bool Take(const Plan& plan, State& state, uint64_t cost) noexcept {
    const uint64_t after = state.debt + cost * plan.emission;
    if (after > plan.tolerance) {
      return false;
    }
    state.debt = after;
    return true;
  }

  // Load and Take in one. What lies behind now is 0 only once the charge is known to fit, as every
  // charge does that a fresh key admits.
  struct Attempt {
    int64_t ahead;  // of now
    int64_t paid;
  };

  // REQUIRES: cost <= burst.
  static Attempt Try(const Plan& plan, uint64_t payload, Now now, uint64_t cost) noexcept {
    constexpr unsigned kUnused = 64 - Ticks::kPayloadBits;
    return {static_cast<int64_t>((payload - now.tick) << kUnused) >> kUnused,
            static_cast<int64_t>(cost * plan.emission)};
  }

  // Both are below 2^60: the horizon is less than half a wrap.
  static bool Fits(const Plan& plan, const Attempt& attempt) noexcept {
    return attempt.ahead + attempt.paid <= static_cast<int64_t>(plan.tolerance);
  }

  static State Charged(const Attempt& attempt) noexcept {
    return {static_cast<uint64_t>((attempt.ahead > 0 ? attempt.ahead : 0) + attempt.paid)};
  }

  static State Refused(const Attempt& attempt) noexcept {
    return {static_cast<uint64_t>(attempt.ahead)};
  }

  // REQUIRES: it does not fit.
  static uint64_t RetryNs(const Plan& plan, const Attempt& attempt) noexcept {
    return Ticks::ToNs(plan, static_cast<uint64_t>(attempt.ahead + attempt.paid) - plan.tolerance);
  }

  static uint64_t Available(const Plan& plan, State state, Now) noexcept {
    return state.debt > plan.tolerance ? 0 : plan.per_emission.Divide(plan.tolerance - state.debt);
  }

  // The same after a charge that fitted. REQUIRES: the debt is within the tolerance.
  static uint64_t Left(const Plan& plan, State state) noexcept {
    return plan.per_emission.Divide(plan.tolerance - state.debt);
  }

  // Overdraft is remembered up to debt_max.
  static void Count(const Plan& plan, State& state, uint64_t cost) noexcept {
    const uint64_t after =
        base::SaturatingAdd(state.debt, base::SaturatingMul(cost, plan.emission));
    state.debt = std::max(state.debt, std::min(after, plan.debt_max));
  }

  static uint64_t ResetNs(const Plan& plan, State state, Now) noexcept {
    return Ticks::ToNs(plan, state.debt);
  }

  // REQUIRES: cost <= burst and the cost does not fit.
  static uint64_t RetryNs(const Plan& plan, State state, Now, uint64_t cost) noexcept {
    return Ticks::ToNs(plan, state.debt + cost * plan.emission - plan.tolerance);
  }

  static uint64_t Mark(const Plan& plan, State state, Now now) noexcept {
    return Save(plan, state, now);
  }

  // Returns min(charged, what of it is still owed). The charge reached up to `mark` when it was
  // made; `moved_ns` is by how much give-backs since then may have pulled it forward, so it is owed
  // at most up to mark - moved. The debt is lowered, never below now.
  static Refund GiveBack(const Plan& plan, State& state, Now now, uint64_t mark, uint32_t charged,
                         uint64_t moved_ns) noexcept {
    const uint64_t reach = Load(plan, mark, now).debt;
    const uint64_t moved = Ticks::FromNsUp(plan, std::min(moved_ns, plan.horizon_ns));
    const uint64_t owed = reach > moved ? reach - moved : 0;
    const uint64_t paid = charged * plan.emission;
    const uint64_t back = std::min({paid, owed, state.debt});
    state.debt -= back;
    return {Ticks::ToNs(plan, back), static_cast<uint32_t>(plan.per_emission.Divide(back)),
            back != 0};
  }

  // The debt as of the instant of change keeps its number of units. Rounded up; since whatever is
  // admitted under `to` ends on a whole unit, that cannot turn an allowed request into a denied
  // one. A state that has expired under its own plan is fresh under any: it may have been reclaimed
  // or swept just as well.
  static State Convert(const Plan& from, const Plan& to, uint64_t payload,
                       const Moment& moment) noexcept {
    if (Load(from, payload, At(from, moment)).debt == 0) {
      return {0};
    }
    const Moment change{.ns = to.changed_at_ns};
    const uint64_t owed = Load(from, payload, At(from, change)).debt;
    const uint64_t debt = std::min(base::MulDivCeil(owed, to.emission, from.emission), to.debt_max);
    const uint64_t tat = Save(to, {debt}, At(to, change));
    return Load(to, tat, At(to, moment));
  }

  // Units in use, for carrying a key over to a quota of another kind. Rounded down to a part of a
  // unit that nobody will notice, so that a raise never denies.
  static uint64_t Used(const Plan& plan, State state, Now) noexcept {
    return base::MulDivFloor(state.debt, uint64_t{1} << kUsedFractionBits, plan.emission);
  }

  static Carried Carry(const Plan& plan, State state, Now now) noexcept {
    return {.used = Used(plan, state, now)};
  }

  static State Seed(const Plan& plan, Now, const Carried& carried) noexcept {
    return {
        std::min(base::MulDivFloor(carried.used, plan.emission, uint64_t{1} << kUsedFractionBits),
                 plan.debt_max)};
  }

  // What the sweeper writes into an expired state so that it stays in the recent past.
  static uint64_t Stale(const Plan&, Now floor) noexcept { return floor.tick & kMask; }
};

}  // namespace weir::algorithm
