// Sliding log: admit iff the units charged in (t - W, t] + c <= L. Exact, at eight bytes a unit of
// the limit: a ring of the stamps of the newest L units, each unit by itself.
//
// A ring of L is enough even when more has been counted (count-always): what fell out of it is
// older than all of it, and while the ring is full of stamps in the window nothing fits. Only
// giving back could make room that those which fell out still need: so they are counted for as long
// as the oldest stamp in the ring stays in the window, and take the place of what is given back,
// dated as that one. They do the same when the limit is raised and the ring becomes larger.
//
// The body of a record: one word [fallen out:24 | count:20 | head:20], then the ring. Stamps are
// nanoseconds of store time and never go back within a key.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "algorithm/plan.h"

namespace weir::algorithm {

struct SlidingLog {
  using Body = std::span<uint64_t>;  // empty: a key without a record
  static constexpr bool kCountsUnits = true;
  static constexpr bool kNumbersPlaces = false;

  struct Now {
    uint64_t ns;
  };

  // What the record comes to at an instant, and what this request adds to it.
  struct State {
    const uint64_t* ring;
    uint64_t capacity;
    uint64_t head;       // of the oldest stamp in the window
    uint64_t count;      // stamps in the window
    uint64_t fallen;     // units that fell out of the ring and may be in the window still
    uint64_t fallen_at;  // the stamp that they count by
    uint64_t at;         // the stamp of what is added: now, or the newest stamp if that is later
    uint64_t added;

    [[nodiscard]] uint64_t used() const noexcept { return fallen + count + added; }

    [[nodiscard]] uint64_t StampAt(uint64_t i) const noexcept {
      const uint64_t place = head + i;
      return ring[place < capacity ? place : place - capacity];
    }
  };

  // After a raise a ring grows when it is needed, and not before.
  static uint64_t BodyWords(const Plan& plan, const State& state) noexcept {
    const bool has_room =
        state.capacity >= plan.limit || state.count + state.added <= state.capacity;
    return 1 + (has_room ? state.capacity : uint64_t{plan.limit});
  }

  // The law for a ring that cannot grow: stricter, and as exact.
  static Plan Within(const Plan& plan, Body body) noexcept {
    Plan within = plan;
    within.limit = std::min(plan.limit, static_cast<decltype(plan.limit)>(body.size() - 1));
    return within;
  }

  static Now At(const Plan&, const Moment& moment) noexcept { return {moment.ns}; }

  static State Load(const Plan& plan, Body body, Now now) noexcept {
    if (body.empty()) {
      return {.ring = nullptr,
              .capacity = 0,
              .head = 0,
              .count = 0,
              .fallen = 0,
              .fallen_at = 0,
              .at = now.ns,
              .added = 0};
    }
    State state{.ring = body.data() + 1,
                .capacity = body.size() - 1,
                .head = body[0] & base::LowBits(20),
                .count = body[0] >> 20 & base::LowBits(20),
                .fallen = body[0] >> 40,
                .fallen_at = 0,
                .at = now.ns,
                .added = 0};
    if (state.count != 0) {
      state.at = std::max(state.at, state.StampAt(state.count - 1));
    }
    // The stamps are in order: those that have left the window are the first ones, mostly few. So
    // they are looked for in steps that double, and then by halving the last of these.
    const auto expired = [&](uint64_t i) { return state.StampAt(i) + plan.window_ns <= state.at; };
    uint64_t gone = 0;
    uint64_t step = 1;
    while (gone + step <= state.count && expired(gone + step - 1)) {
      gone += step;
      step *= 2;
    }
    for (uint64_t left = std::min(step - 1, state.count - gone); left != 0;) {
      const uint64_t half = left / 2;
      const bool older = expired(gone + half);
      gone = older ? gone + half + 1 : gone;
      left = older ? left - half - 1 : half;
    }
    state.head =
        state.head + gone < state.capacity ? state.head + gone : state.head + gone - state.capacity;
    state.count -= gone;
    state.fallen = gone != 0 ? 0 : state.fallen;
    state.fallen_at = state.fallen != 0 ? state.StampAt(0) : 0;
    return state;
  }

  // Asks for the memory of the oldest stamp and of where the next one goes.
  static void Fetch(Body body) noexcept {
    const uint64_t capacity = body.size() - 1;
    const uint64_t head = body[0] & base::LowBits(20);
    const uint64_t next = head + (body[0] >> 20 & base::LowBits(20));
    __builtin_prefetch(&body[1 + head], 0, 3);
    __builtin_prefetch(&body[1 + (next < capacity ? next : next - capacity)], 1, 3);
  }

  // Into the body that the state was loaded from, or into another one at least as large.
  static void Store(const Plan&, Body body, const State& state) noexcept {
    uint64_t* const ring = body.data() + 1;
    const uint64_t capacity = body.size() - 1;
    const uint64_t added = std::min(state.added, capacity);
    const uint64_t dropped = state.count + added > capacity ? state.count + added - capacity : 0;
    uint64_t head =
        state.head + dropped < capacity ? state.head + dropped : state.head + dropped - capacity;
    uint64_t count = state.count - dropped;
    uint64_t fallen = state.fallen + dropped + (state.added - added);
    if (ring != state.ring) {
      const uint64_t refilled = std::min(state.fallen, capacity - count - added);
      std::fill_n(ring, refilled, state.fallen_at);
      for (uint64_t i = 0; i < count; ++i) {
        ring[refilled + i] = state.StampAt(dropped + i);
      }
      head = 0;
      count += refilled;
      fallen -= refilled;
    }
    for (uint64_t i = 0; i < added; ++i, ++count) {
      ring[head + count < capacity ? head + count : head + count - capacity] = state.at;
    }
    body[0] = Pack(head, count, fallen);
  }

  // When the record is as good as none.
  static uint64_t LiveUntil(const Plan& plan, const State& state) noexcept {
    return state.added != 0    ? state.at + plan.window_ns
           : state.count != 0  ? state.StampAt(state.count - 1) + plan.window_ns
           : state.fallen != 0 ? state.fallen_at + plan.window_ns
                               : 0;
  }

  static bool Take(const Plan& plan, State& state, uint64_t cost) noexcept {
    if (state.used() + cost > plan.limit) {
      return false;
    }
    state.added += cost;
    return true;
  }

  static uint64_t Available(const Plan& plan, const State& state, Now) noexcept {
    return state.used() >= plan.limit ? 0 : plan.limit - state.used();
  }

  static void Count(const Plan& plan, State& state, uint64_t cost) noexcept {
    // The burst is the limit, also for a ring that has no room for it.
    state.added = std::min<uint64_t>(base::SaturatingAdd(state.added, cost), plan.burst);
  }

  static uint64_t ResetNs(const Plan& plan, const State& state, Now now) noexcept {
    const uint64_t until = LiveUntil(plan, state);
    return until > now.ns ? until - now.ns : 0;
  }

  // REQUIRES: cost <= limit and the cost does not fit.
  static uint64_t RetryNs(const Plan& plan, const State& state, Now now, uint64_t cost) noexcept {
    const uint64_t excess = state.used() + cost - plan.limit;
    const uint64_t leaving = excess > state.fallen ? excess - state.fallen : 0;
    const uint64_t stamp = leaving == 0             ? state.fallen_at
                           : leaving <= state.count ? state.StampAt(leaving - 1)
                                                    : state.at;
    return stamp + plan.window_ns - now.ns;
  }

  static uint64_t Mark(const Plan&, const State& state, Now) noexcept { return state.at; }

  static uint64_t Pack(uint64_t head, uint64_t count, uint64_t fallen) noexcept {
    return std::min(fallen, base::LowBits(24)) << 40 | count << 20 | head;
  }

  // Takes out up to `charged` units of that stamp, as far as they are in the window still.
  static Refund GiveBack(const Plan& plan, Body body, Now now, uint64_t mark,
                         uint32_t charged) noexcept {
    const State state = Load(plan, body, now);
    uint64_t matching = 0;
    for (uint64_t i = state.count; i != 0 && matching < charged; --i) {
      matching += state.StampAt(i - 1) == mark ? 1 : 0;
    }
    if (matching == 0) {
      return {};
    }
    const uint64_t refilled = std::min(matching, state.fallen);
    uint64_t* const ring = body.data() + 1;
    const auto at = [&](uint64_t i) -> uint64_t& {
      return ring[(state.head + i) % state.capacity];
    };
    // Towards the new end, the newest of that stamp left out; what is refilled comes in front.
    uint64_t to = state.count;
    uint64_t out = matching;
    for (uint64_t i = state.count; i != 0; --i) {
      if (out != 0 && at(i - 1) == mark) {
        --out;
      } else {
        at(--to) = at(i - 1);
      }
    }
    for (uint64_t i = 0; i < refilled; ++i) {
      at(--to) = state.fallen_at;
    }
    body[0] = Pack((state.head + to) % state.capacity, state.count - to, state.fallen - refilled);
    return {0, static_cast<uint32_t>(matching), true};
  }

  static uint64_t Used(const Plan&, const State& state, Now) noexcept {
    return state.used() << kUsedFractionBits;
  }

  static Carried Carry(const Plan& plan, const State& state, Now now) noexcept {
    return {.used = Used(plan, state, now)};
  }

  // A key that comes from another kind of quota with units in use at `since`: they are as if they
  // had been charged then and had fallen out of a ring.
  static State Seed(const Plan& plan, Now since, Now now, const Carried& carried) noexcept {
    State state = Load(plan, {}, {std::max(since.ns, now.ns)});
    if (state.at - since.ns < plan.window_ns) {
      state.fallen = std::min<uint64_t>(carried.used >> kUsedFractionBits, plan.limit);
      state.fallen_at = since.ns;
    }
    return state;
  }
};

}  // namespace weir::algorithm
