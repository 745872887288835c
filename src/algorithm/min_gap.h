// Minimum gap: admit iff t - last >= gap, where last is the last admitted request of the key. It
// counts requests, not units: any cost above 0 is one request. Stored as last + gap, so that the
// state expires like a bucket's.
#pragma once

#include <algorithm>
#include <cstdint>

#include "algorithm/gcra.h"
#include "algorithm/plan.h"

namespace weir::algorithm {

template <class Ticks>
struct MinGap {
  using Bucket = Gcra<Ticks>;
  using Now = typename Bucket::Now;
  using State = typename Bucket::State;  // debt: how long until the next request may come
  static constexpr SlotKind kSlot = Ticks::kSlot;
  static constexpr bool kCountsUnits = false;  // whether a cost can be too large for the quota
  static constexpr bool kMarkIsState = true;   // a receipt's mark converts like a state
  static constexpr bool kUsesWindows = false;  // whether Moment's phase and period matter
  static constexpr unsigned kLeftBits = 60;

  static Now At(const Plan& plan, const Moment& moment) noexcept {
    return Bucket::At(plan, moment);
  }

  static State Load(const Plan& plan, uint64_t payload, Now now) noexcept {
    return Bucket::Load(plan, payload, now);
  }

  static uint64_t Save(const Plan& plan, State state, Now now) noexcept {
    return Bucket::Save(plan, state, now);
  }

  static State Fresh(const Plan& plan, Now now, Now floor) noexcept {
    return Bucket::Fresh(plan, now, floor);
  }

  static bool Expired(const Plan& plan, uint64_t payload, Now floor) noexcept {
    return Bucket::Expired(plan, payload, floor);
  }

  static bool Take(const Plan& plan, State& state, uint64_t) noexcept {
    if (state.debt != 0) {
      return false;
    }
    state.debt = plan.emission;
    return true;
  }

  static uint64_t Available(const Plan&, State state, Now) noexcept {
    return state.debt == 0 ? 1 : 0;
  }

  static void Count(const Plan& plan, State& state, uint64_t) noexcept {
    state.debt = std::max(state.debt, plan.emission);
  }

  static uint64_t ResetNs(const Plan& plan, State state, Now) noexcept {
    return Ticks::ToNs(plan, state.debt);
  }

  static uint64_t RetryNs(const Plan& plan, State state, Now, uint64_t) noexcept {
    return Ticks::ToNs(plan, state.debt);
  }

  static uint64_t Mark(const Plan& plan, State state, Now now) noexcept {
    return Bucket::Save(plan, state, now);
  }

  // The request before was at least a gap earlier, so without this one the next may come at once.
  // Only while this one is still the last: afterwards it is owed nothing.
  static Refund GiveBack(const Plan& plan, State& state, Now now, uint64_t mark, uint32_t charged,
                         uint64_t) noexcept {
    if (state.debt == 0 || Bucket::Load(plan, mark, now).debt != state.debt) {
      return {};
    }
    state.debt = 0;
    return {0, charged, true};
  }

  static State Convert(const Plan& from, const Plan& to, uint64_t payload,
                       const Moment& moment) noexcept {
    const uint64_t left = Load(from, payload, At(from, moment)).debt;
    const uint64_t left_ns = Ticks::ToNs(from, left);
    const uint64_t passed_ns = from.window_ns > left_ns ? from.window_ns - left_ns : 0;
    if (left == 0 || to.window_ns <= passed_ns) {
      return {0};
    }
    return {Ticks::FromNsUp(to, to.window_ns - passed_ns)};
  }

  static uint64_t Used(const Plan&, State state, Now) noexcept {
    return state.debt == 0 ? 0 : uint64_t{1} << kUsedFractionBits;
  }

  // Another gap keeps the part that is left to wait: a shorter one ends no later than this one.
  static Carried Carry(const Plan& plan, State state, Now now) noexcept {
    return {.used = Used(plan, state, now),
            .algorithm = Algorithm::kMinGap,
            .first = base::MulDivFloor(state.debt, uint64_t{1} << kLeftBits, plan.emission)};
  }

  static State Seed(const Plan& plan, Now, const Carried& carried) noexcept {
    return {carried.algorithm == Algorithm::kMinGap
                ? base::MulDivFloor(carried.first, plan.emission, uint64_t{1} << kLeftBits)
                : plan.emission};
  }

  static uint64_t Stale(const Plan& plan, Now floor) noexcept { return Bucket::Stale(plan, floor); }
};

}  // namespace weir::algorithm
