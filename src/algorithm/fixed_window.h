// Fixed windows: admit iff the count in this window + c <= L.
//
// Three ways to say which window it is: aligned to the epoch (perhaps shifted per key), opened by
// the key's first hit, or a period of the calendar. The first and last share their state, a window
// id and a count; the second keeps the window's start instead of an id.
#pragma once

#include <algorithm>
#include <cstdint>

#include "algorithm/plan.h"

namespace weir::algorithm {

// What a window may hold, shared by all kinds of windows.
struct WindowCount {
  static bool Take(const Plan& plan, uint64_t& count, uint64_t cost) noexcept {
    if (count + cost > plan.limit) {
      return false;
    }
    count += cost;
    return true;
  }

  static uint64_t Available(const Plan& plan, uint64_t count) noexcept {
    return count >= plan.limit ? 0 : plan.limit - count;
  }

  // Saturates at count_max, about twice the limit; past that the excess is forgotten.
  static void Add(const Plan& plan, uint64_t& count, uint64_t cost) noexcept {
    count = std::max(count, std::min(base::SaturatingAdd(count, cost), plan.count_max));
  }

  static Refund GiveBack(uint64_t& count, uint32_t charged) noexcept {
    const uint64_t back = std::min<uint64_t>(count, charged);
    count -= back;
    return {0, static_cast<uint32_t>(back), back != 0};
  }

  // A new limit on the same window keeps the count. On another window it keeps the share in use,
  // rounded down: a raise never denies.
  static uint64_t Convert(const Plan& from, const Plan& to, uint64_t count) noexcept {
    if (from.family == to.family) {
      return std::min(count, to.count_max);
    }
    return std::min(base::MulDivFloor(count, to.limit, from.limit), to.count_max);
  }
};

// Ids wrap at id_bits. Where `stored` stands against `now`, as a signed distance.
[[nodiscard]] constexpr int64_t IdDistance(const Plan& plan, uint64_t stored,
                                           uint64_t now) noexcept {
  const unsigned unused = 64U - plan.id_bits;
  return static_cast<int64_t>((stored - now) << unused) >> unused;
}

struct FixedWindow {
  static constexpr SlotKind kSlot = SlotKind::kWide;
  static constexpr bool kCountsUnits = true;
  static constexpr bool kMarkIsState = false;
  static constexpr bool kUsesWindows = true;

  struct Now {
    uint64_t id;
    uint64_t left_ns;  // until the window ends, at least 1
  };

  struct State {
    uint64_t id;
    uint64_t count;
    uint64_t left_ns;
  };

  static Now At(const Plan& plan, const Moment& moment) noexcept {
    if (plan.algorithm == Algorithm::kCalendar) {
      return {moment.period_id, moment.period_left_ns};
    }
    uint64_t unix_ns = moment.ns + plan.epoch_offset_ns;
    if (plan.start == WindowStart::kPerKey) {
      unix_ns += moment.phase - plan.per_window.Divide(moment.phase) * plan.window_ns;
    }
    const uint64_t id = plan.per_window.Divide(unix_ns);
    return {id, plan.window_ns - (unix_ns - id * plan.window_ns)};
  }

  static State Load(const Plan& plan, uint64_t payload, Now now) noexcept {
    const int64_t ahead = IdDistance(plan, payload >> plan.count_bits, now.id);
    if (ahead < 0) {
      return {now.id, 0, now.left_ns};
    }
    // A stamp from before the stored window: time does not go back for this key.
    const auto windows = static_cast<uint64_t>(ahead);
    return {now.id + windows, payload & base::LowBits(plan.count_bits),
            now.left_ns + windows * plan.window_ns};
  }

  static uint64_t Save(const Plan& plan, State state, Now) noexcept {
    return ((state.id & base::LowBits(plan.id_bits)) << plan.count_bits) | state.count;
  }

  static State Fresh(const Plan&, Now now, Now floor) noexcept {
    return floor.id > now.id ? State{floor.id, 0, floor.left_ns} : State{now.id, 0, now.left_ns};
  }

  static bool Expired(const Plan& plan, uint64_t payload, Now floor) noexcept {
    return (payload & base::LowBits(plan.count_bits)) == 0 ||
           IdDistance(plan, payload >> plan.count_bits, floor.id) < 0;
  }

  static bool Take(const Plan& plan, State& state, uint64_t cost) noexcept {
    return WindowCount::Take(plan, state.count, cost);
  }

  static uint64_t Available(const Plan& plan, State state, Now) noexcept {
    return WindowCount::Available(plan, state.count);
  }

  static void Count(const Plan& plan, State& state, uint64_t cost) noexcept {
    WindowCount::Add(plan, state.count, cost);
  }

  static uint64_t ResetNs(const Plan&, State state, Now) noexcept {
    return state.count == 0 ? 0 : state.left_ns;
  }

  static uint64_t RetryNs(const Plan&, State state, Now, uint64_t) noexcept {
    return state.left_ns;
  }

  static uint64_t Mark(const Plan&, State state, Now) noexcept { return state.id; }

  static Refund GiveBack(const Plan&, State& state, Now, uint64_t mark, uint32_t charged,
                         uint64_t) noexcept {
    return mark == state.id ? WindowCount::GiveBack(state.count, charged) : Refund{};
  }

  static State Convert(const Plan& from, const Plan& to, uint64_t payload,
                       const Moment& moment) noexcept {
    const State old = Load(from, payload, At(from, moment));
    const Now now = At(to, moment);
    const uint64_t count = WindowCount::Convert(from, to, old.count);
    if (from.family == to.family) {
      return {old.id, count, old.left_ns};
    }
    return {now.id, WindowsSinceChange(to, moment, now.id) == 0 ? count : 0, now.left_ns};
  }

  // How many windows of `to` have ended since it took over, up to 2. What was charged before counts
  // in the first of them. The old quota's window may be open for longer, but who was told to wait
  // for the next one is admitted there. REQUIRES: no calendar; one of another length gets a binding
  // of its own.
  static unsigned WindowsSinceChange(const Plan& to, const Moment& moment, uint64_t id) noexcept {
    const Moment change{.ns = to.changed_at_ns, .phase = moment.phase};
    return static_cast<unsigned>(std::clamp<int64_t>(IdDistance(to, id, At(to, change).id), 0, 2));
  }

  static uint64_t Used(const Plan&, State state, Now) noexcept {
    return state.count << kUsedFractionBits;
  }

  static Carried Carry(const Plan& plan, State state, Now now) noexcept {
    return {.used = Used(plan, state, now)};
  }

  static State Seed(const Plan& plan, Now now, const Carried& carried) noexcept {
    return {now.id, std::min(carried.used >> kUsedFractionBits, plan.count_max), now.left_ns};
  }

  static uint64_t Stale(const Plan& plan, Now floor) noexcept {
    return Save(plan, {floor.id, 0, 0}, floor);
  }
};

// The first hit of a key opens its window.
struct FirstHitWindow {
  static constexpr SlotKind kSlot = SlotKind::kWide;
  static constexpr bool kCountsUnits = true;
  static constexpr bool kMarkIsState = false;
  static constexpr bool kUsesWindows = true;

  struct Now {
    uint64_t tick;
  };

  struct State {
    uint64_t start;  // tick
    uint64_t count;
    uint64_t left;  // ticks
  };

  static Now At(const Plan& plan, const Moment& moment) noexcept {
    return {WideTicks::FromNs(plan, moment.ns)};
  }

  static State Load(const Plan& plan, uint64_t payload, Now now) noexcept {
    const uint64_t count = payload & base::LowBits(plan.count_bits);
    const int64_t ahead = IdDistance(plan, payload >> plan.count_bits, now.tick);
    const uint64_t age = ahead > 0 ? 0 : static_cast<uint64_t>(-ahead);
    if (count == 0 || age >= plan.window_ticks) {
      return {now.tick, 0, plan.window_ticks};
    }
    const uint64_t early = ahead > 0 ? static_cast<uint64_t>(ahead) : 0;
    return {now.tick - age + early, count, plan.window_ticks - age + early};
  }

  static uint64_t Save(const Plan& plan, State state, Now) noexcept {
    return ((state.start & base::LowBits(plan.id_bits)) << plan.count_bits) | state.count;
  }

  static State Fresh(const Plan& plan, Now now, Now floor) noexcept {
    const uint64_t start = std::max(now.tick, floor.tick);
    return {start, 0, plan.window_ticks + (start - now.tick)};
  }

  static bool Expired(const Plan& plan, uint64_t payload, Now floor) noexcept {
    const int64_t ahead = IdDistance(plan, payload >> plan.count_bits, floor.tick);
    return (payload & base::LowBits(plan.count_bits)) == 0 ||
           (ahead <= 0 && static_cast<uint64_t>(-ahead) >= plan.window_ticks);
  }

  static bool Take(const Plan& plan, State& state, uint64_t cost) noexcept {
    return WindowCount::Take(plan, state.count, cost);
  }

  static uint64_t Available(const Plan& plan, State state, Now) noexcept {
    return WindowCount::Available(plan, state.count);
  }

  static void Count(const Plan& plan, State& state, uint64_t cost) noexcept {
    WindowCount::Add(plan, state.count, cost);
  }

  static uint64_t ResetNs(const Plan& plan, State state, Now) noexcept {
    return state.count == 0 ? 0 : WideTicks::ToNs(plan, state.left);
  }

  static uint64_t RetryNs(const Plan& plan, State state, Now, uint64_t) noexcept {
    return WideTicks::ToNs(plan, state.left);
  }

  static uint64_t Mark(const Plan& plan, State state, Now) noexcept {
    return state.start & base::LowBits(plan.id_bits);
  }

  static Refund GiveBack(const Plan& plan, State& state, Now now, uint64_t mark, uint32_t charged,
                         uint64_t) noexcept {
    return mark == Mark(plan, state, now) ? WindowCount::GiveBack(state.count, charged) : Refund{};
  }

  static State Convert(const Plan& from, const Plan& to, uint64_t payload,
                       const Moment& moment) noexcept {
    const State old = Load(from, payload, At(from, moment));
    const Now now = At(to, moment);
    const uint64_t count = WindowCount::Convert(from, to, old.count);
    if (count == 0) {
      return {now.tick, 0, to.window_ticks};
    }
    if (from.family != to.family) {
      // The window of what was charged before begins with the change.
      const uint64_t since_ns = moment.ns - std::min(moment.ns, to.changed_at_ns);
      const uint64_t since = WideTicks::FromNs(to, since_ns);
      return since < to.window_ticks ? State{now.tick - since, count, to.window_ticks - since}
                                     : State{now.tick, 0, to.window_ticks};
    }
    const uint64_t age_ns =
        WideTicks::ToNs(from, from.window_ticks - std::min(old.left, from.window_ticks));
    const uint64_t age = std::min(WideTicks::FromNs(to, age_ns), to.window_ticks - 1);
    return {now.tick - age, count, to.window_ticks - age};
  }

  static uint64_t Used(const Plan&, State state, Now) noexcept {
    return state.count << kUsedFractionBits;
  }

  static Carried Carry(const Plan& plan, State state, Now now) noexcept {
    return {.used = Used(plan, state, now),
            .family = plan.family,
            .algorithm = Algorithm::kFixedWindow,
            .first =
                WideTicks::ToNs(plan, plan.window_ticks - std::min(state.left, plan.window_ticks))};
  }

  // A window of the same length stays open for as long as it would have.
  static State Seed(const Plan& plan, Now now, const Carried& carried) noexcept {
    const bool same = carried.algorithm == Algorithm::kFixedWindow && carried.family == plan.family;
    const uint64_t age =
        same ? std::min(WideTicks::FromNsUp(plan, carried.first), plan.window_ticks - 1) : 0;
    return {now.tick - age, std::min(carried.used >> kUsedFractionBits, plan.count_max),
            plan.window_ticks - age};
  }

  static uint64_t Stale(const Plan& plan, Now floor) noexcept {
    return Save(plan, {floor.tick, 0, 0}, floor);
  }
};

}  // namespace weir::algorithm
