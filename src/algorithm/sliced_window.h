// Sliced window: time is cut into slices of W/k; admit iff the units charged in slices of which any
// instant lies in (t - W, t] + c <= L. At most k + 1 slices count, so no window of length W ever
// holds more than L, and a unit is remembered for at most one slice longer than W.
//
// The body of a record: the id of the newest slice, then a ring of k + 1 counters. Slices are
// aligned to the epoch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "algorithm/plan.h"

namespace weir::algorithm {

struct SlicedWindow {
  using Body = std::span<uint64_t>;  // empty: a key without a record
  static constexpr bool kCountsUnits = true;
  static constexpr bool kNumbersPlaces = false;

  struct Now {
    uint64_t unix_ns;
  };

  struct State {
    const uint64_t* counters;  // nullptr: none, but for what is seeded
    uint64_t newest;           // the newest slice with a counter
    uint64_t seeded;           // without counters: what the newest slice holds
    uint64_t oldest;           // the oldest slice that still counts
    uint64_t id;               // the slice that is charged: that of now, or the newest if later
    uint64_t sum;              // of all that count
    uint64_t added;

    [[nodiscard]] uint64_t CountOf(const Plan& plan, uint64_t slice) const noexcept {
      if (counters == nullptr) {
        return slice == newest ? seeded : 0;
      }
      return slice <= newest && slice + plan.slices >= newest ? counters[slice % (plan.slices + 1)]
                                                              : 0;
    }
  };

  static uint64_t BodyWords(const Plan& plan, const State&) noexcept {
    return 2 + uint64_t{plan.slices};
  }

  static Now At(const Plan& plan, const Moment& moment) noexcept {
    return {moment.ns + plan.epoch_offset_ns};
  }

  static State Load(const Plan& plan, Body body, Now now) noexcept {
    State state{.counters = body.empty() ? nullptr : body.data() + 1,
                .newest = body.empty() ? 0 : body[0],
                .seeded = 0,
                .oldest = 0,
                .id = plan.per_slice.Divide(now.unix_ns),
                .sum = 0,
                .added = 0};
    // A stamp from before the newest slice: time does not go back for this key.
    const uint64_t at = std::max(now.unix_ns, state.newest * plan.slice_ns);
    state.id = std::max(state.id, state.newest);
    state.oldest = plan.per_slice.Divide(at + 1 - plan.window_ns);
    for (uint64_t slice = state.oldest; slice <= state.id; ++slice) {
      state.sum += state.CountOf(plan, slice);
    }
    return state;
  }

  static void Store(const Plan& plan, Body body, const State& state) noexcept {
    uint64_t* const counters = body.data() + 1;
    const uint64_t ring = uint64_t{plan.slices} + 1;
    const uint64_t stale = std::min(state.id - body[0], ring);
    for (uint64_t i = 0; i < stale; ++i) {
      counters[(state.id - i) % ring] = 0;
    }
    body[0] = state.id;
    if (state.seeded != 0) {
      counters[state.newest % ring] = state.seeded;
    }
    uint64_t& counter = counters[state.id % ring];
    counter = std::min(base::SaturatingAdd(counter, state.added), plan.count_max);
  }

  static uint64_t NewestCharged(const Plan& plan, const State& state) noexcept {
    if (state.added != 0) {
      return state.id;
    }
    uint64_t slice = state.id;
    while (state.CountOf(plan, slice) == 0) {
      --slice;  // stops: REQUIRES: state.sum != 0
    }
    return slice;
  }

  // The first instant, in Unix time, at which a slice counts no more.
  static uint64_t EndOf(const Plan& plan, uint64_t slice) noexcept {
    return (slice + 1) * plan.slice_ns + plan.window_ns - 1;
  }

  static uint64_t LiveUntil(const Plan& plan, const State& state) noexcept {
    return state.sum + state.added == 0
               ? 0
               : EndOf(plan, NewestCharged(plan, state)) - plan.epoch_offset_ns;
  }

  static bool Take(const Plan& plan, State& state, uint64_t cost) noexcept {
    if (state.sum + state.added + cost > plan.limit) {
      return false;
    }
    state.added += cost;
    return true;
  }

  static uint64_t Available(const Plan& plan, const State& state, Now) noexcept {
    const uint64_t used = state.sum + state.added;
    return used >= plan.limit ? 0 : plan.limit - used;
  }

  static void Count(const Plan& plan, State& state, uint64_t cost) noexcept {
    state.added = std::min(base::SaturatingAdd(state.added, cost), plan.count_max);
  }

  static uint64_t ResetNs(const Plan& plan, const State& state, Now now) noexcept {
    return state.sum + state.added == 0 ? 0 : EndOf(plan, NewestCharged(plan, state)) - now.unix_ns;
  }

  // REQUIRES: cost <= limit and the cost does not fit.
  static uint64_t RetryNs(const Plan& plan, const State& state, Now now, uint64_t cost) noexcept {
    uint64_t excess = state.sum + state.added + cost - plan.limit;
    uint64_t slice = state.oldest;
    for (; slice < state.id; ++slice) {
      const uint64_t count = state.CountOf(plan, slice);
      if (count >= excess) {
        break;
      }
      excess -= count;
    }
    return EndOf(plan, slice) - now.unix_ns;
  }

  static uint64_t Mark(const Plan&, const State& state, Now) noexcept { return state.id; }

  static Refund GiveBack(const Plan& plan, Body body, Now now, uint64_t mark,
                         uint32_t charged) noexcept {
    const State state = Load(plan, body, now);
    const uint64_t count = state.CountOf(plan, mark);
    if (mark < state.oldest || mark > state.id || count == 0) {
      return {};
    }
    const uint64_t back = std::min<uint64_t>(count, charged);
    body[1 + mark % (uint64_t{plan.slices} + 1)] -= back;
    return {0, static_cast<uint32_t>(back), true};
  }

  static uint64_t Used(const Plan&, const State& state, Now) noexcept {
    return (state.sum + state.added) << kUsedFractionBits;
  }

  static Carried Carry(const Plan& plan, const State& state, Now now) noexcept {
    return {.used = Used(plan, state, now)};
  }

  // A key that comes from another kind of quota with units in use at `since`: they are as if they
  // had been charged then.
  static State Seed(const Plan& plan, Now since, Now now, const Carried& carried) noexcept {
    State state = Load(plan, {}, {std::max(since.unix_ns, now.unix_ns)});
    if (const uint64_t slice = plan.per_slice.Divide(since.unix_ns); slice >= state.oldest) {
      state.newest = slice;
      state.seeded = std::min<uint64_t>(carried.used >> kUsedFractionBits, plan.count_max);
      state.sum = state.seeded;
    }
    return state;
  }
};

}  // namespace weir::algorithm
