// Sliding window counter: admit iff floor(prev * (1 - f)) + cur + c <= L, where prev and cur count
// the last and the current epoch-aligned window and f is the part of the current one that has
// passed. Cheap and smooth, and an estimate: docs/accuracy.md says how far off it can be.
#pragma once

#include <algorithm>
#include <cstdint>

#include "algorithm/fixed_window.h"
#include "algorithm/plan.h"

namespace weir::algorithm {

struct SlidingWindow {
  static constexpr SlotKind kSlot = SlotKind::kWide;
  static constexpr bool kCountsUnits = true;
  static constexpr bool kMarkIsState = false;
  static constexpr bool kUsesWindows = true;
  using Now = FixedWindow::Now;

  struct State {
    uint64_t id;
    uint64_t previous;
    uint64_t current;
    uint64_t left_ns;   // until the current window ends
    uint64_t weighted;  // floor(previous * (1 - f)) at now
  };

  static Now At(const Plan& plan, const Moment& moment) noexcept {
    return FixedWindow::At(plan, moment);
  }

  // floor(count * left / window). The product fits 64 bits for nearly every quota.
  static uint64_t Weigh(const Plan& plan, uint64_t count, uint64_t left_ns) noexcept {
    const base::Uint128 product = static_cast<base::Uint128>(count) * left_ns;
    if (product <= base::kUint64Max) {
      return plan.per_window.Divide(static_cast<uint64_t>(product));
    }
    return static_cast<uint64_t>(product / plan.window_ns);
  }

  static State Load(const Plan& plan, uint64_t payload, Now now) noexcept {
    const uint64_t mask = base::LowBits(plan.count_bits);
    const uint64_t previous = (payload >> plan.count_bits) & mask;
    const uint64_t current = payload & mask;
    const int64_t ahead = IdDistance(plan, payload >> (2U * plan.count_bits), now.id);
    if (ahead == 0) {
      return {now.id, previous, current, now.left_ns, Weigh(plan, previous, now.left_ns)};
    }
    if (ahead == -1) {
      return {now.id, current, 0, now.left_ns, Weigh(plan, current, now.left_ns)};
    }
    if (ahead < 0) {
      return {now.id, 0, 0, now.left_ns, 0};
    }
    // A stamp from before the stored window: for this key it is that window's first instant.
    const auto windows = static_cast<uint64_t>(ahead);
    return {now.id + windows, previous, current, now.left_ns + windows * plan.window_ns, previous};
  }

  static uint64_t Save(const Plan& plan, const State& state, Now) noexcept {
    return ((state.id & base::LowBits(plan.id_bits)) << (2U * plan.count_bits)) |
           (state.previous << plan.count_bits) | state.current;
  }

  static State Fresh(const Plan&, Now now, Now floor) noexcept {
    return floor.id > now.id ? State{floor.id, 0, 0, floor.left_ns, 0}
                             : State{now.id, 0, 0, now.left_ns, 0};
  }

  static bool Expired(const Plan& plan, uint64_t payload, Now floor) noexcept {
    const uint64_t mask = base::LowBits(plan.count_bits);
    const int64_t ahead = IdDistance(plan, payload >> (2U * plan.count_bits), floor.id);
    const bool current_empty = (payload & mask) == 0;
    const bool previous_empty = ((payload >> plan.count_bits) & mask) == 0;
    return ahead < -1 || (current_empty && (previous_empty || ahead < 0));
  }

  static bool Take(const Plan& plan, State& state, uint64_t cost) noexcept {
    if (state.weighted + state.current + cost > plan.limit) {
      return false;
    }
    state.current += cost;
    return true;
  }

  static uint64_t Available(const Plan& plan, const State& state, Now) noexcept {
    const uint64_t used = state.weighted + state.current;
    return used >= plan.limit ? 0 : plan.limit - used;
  }

  static void Count(const Plan& plan, State& state, uint64_t cost) noexcept {
    WindowCount::Add(plan, state.current, cost);
  }

  // How long before the window's end the weight of `count` has just come down to `room` or less,
  // that is the longest left with floor(count * left / window) <= room.
  static uint64_t LeftWhenWithin(const Plan& plan, uint64_t count, uint64_t room) noexcept {
    if (count <= room) {
      return plan.window_ns;
    }
    // floor(x) <= room iff x < room + 1, so left < (room + 1) * window / count.
    return base::MulDivCeil(room + 1, plan.window_ns, count) - 1;
  }

  // From now until, with nobody else charging, previous and current together leave `room` units.
  static uint64_t WaitNs(const Plan& plan, const State& state, uint64_t room_now,
                         bool fits_now_ever, uint64_t room_next) noexcept {
    if (fits_now_ever) {
      const uint64_t left = LeftWhenWithin(plan, state.previous, room_now);
      if (left >= 1) {
        return state.left_ns > left ? state.left_ns - left : 0;
      }
    }
    // In the next window the current count is the previous one; after that nothing is left.
    return state.left_ns + (plan.window_ns - LeftWhenWithin(plan, state.current, room_next));
  }

  static uint64_t ResetNs(const Plan& plan, const State& state, Now) noexcept {
    return WaitNs(plan, state, 0, state.current == 0, 0);
  }

  // REQUIRES: cost <= limit and the cost does not fit.
  static uint64_t RetryNs(const Plan& plan, const State& state, Now, uint64_t cost) noexcept {
    const uint64_t need = state.current + cost;
    const bool fits = need <= plan.limit;
    return WaitNs(plan, state, fits ? plan.limit - need : 0, fits, plan.limit - cost);
  }

  static uint64_t Mark(const Plan&, const State& state, Now) noexcept { return state.id; }

  static Refund GiveBack(const Plan&, State& state, Now, uint64_t mark, uint32_t charged,
                         uint64_t) noexcept {
    return mark == state.id ? WindowCount::GiveBack(state.current, charged) : Refund{};
  }

  static State Convert(const Plan& from, const Plan& to, uint64_t payload,
                       const Moment& moment) noexcept {
    State state = Load(from, payload, At(from, moment));
    const Now now = At(to, moment);
    if (from.family == to.family) {
      state.previous = std::min(state.previous, to.count_max);
      state.current = std::min(state.current, to.count_max);
      return state;
    }
    const uint64_t count = WindowCount::Convert(from, to, state.weighted + state.current);
    switch (FixedWindow::WindowsSinceChange(to, moment, now.id)) {
      case 0:
        return {now.id, 0, count, now.left_ns, 0};
      case 1:
        return {now.id, count, 0, now.left_ns, Weigh(to, count, now.left_ns)};
      default:
        return {now.id, 0, 0, now.left_ns, 0};
    }
  }

  static uint64_t Used(const Plan&, const State& state, Now) noexcept {
    return (state.weighted + state.current) << kUsedFractionBits;
  }

  static Carried Carry(const Plan& plan, const State& state, Now now) noexcept {
    return {.used = Used(plan, state, now),
            .family = plan.family,
            .algorithm = Algorithm::kSlidingWindow,
            .first = state.previous,
            .second = state.current};
  }

  // Windows of the same length are the same windows: both counts stay what they are.
  static State Seed(const Plan& plan, Now now, const Carried& carried) noexcept {
    if (carried.algorithm == Algorithm::kSlidingWindow && carried.family == plan.family) {
      const uint64_t previous = std::min(carried.first, plan.count_max);
      return {now.id, previous, std::min(carried.second, plan.count_max), now.left_ns,
              Weigh(plan, previous, now.left_ns)};
    }
    return {now.id, 0, std::min(carried.used >> kUsedFractionBits, plan.count_max), now.left_ns, 0};
  }

  static uint64_t Stale(const Plan& plan, Now floor) noexcept {
    return Save(plan, {floor.id, 0, 0, 0, 0}, floor);
  }
};

}  // namespace weir::algorithm
