// Concurrency: admit iff the units of live holds + c <= L. A hold is live from the instant it was
// taken until it is released or its lease ends, whichever comes first.
//
// Every hold has a fence: a number that grows with every hold of its key, so that whoever sees them
// can tell a late holder from the present one. It is the time of the grant in nanoseconds since a
// little before 1970, or one more than the last if that is larger. A record is kept until store
// time has passed its last fence, so the numbers grow across its reclaim as well, and across a
// restart of the program as far as the wall clock does.
//
// The body of a record, in words:
//   [units in use:32 | first free place:16, counted from 1 | places used so far:16]
//   the last fence given out
//   two for each place: the fence, [end of the lease in microseconds:48 | units:16]
//   of larger bodies only: no hold ends before this tick; none ends after this one
// A place that is free has no units, and the next free place where the end was. Places never move
// within a key, so a holder that knows its place is found at once. Leases end at whole
// microseconds, rounded up; ends are compared modulo 2^48, which no lease comes near.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "algorithm/plan.h"

namespace weir::algorithm {

struct Concurrency {
  using Body = std::span<uint64_t>;  // empty: a key without a record
  static constexpr bool kCountsUnits = true;
  static constexpr bool kNumbersPlaces = true;  // receipts carry a place, and end what is in it

  static constexpr uint64_t kTickNs = 1000;
  static constexpr uint64_t kHeadWords = 2;
  static constexpr uint64_t kTailWords = 2;
  // Bodies of up to so many places are looked through every time, and have no tail.
  static constexpr uint64_t kFewPlaces = 4;
  static constexpr uint64_t kPlacesMax = base::LowBits(16);

  struct Now {
    uint64_t ns;
    uint64_t tick;
    uint64_t lease_ns;  // of what is taken
    uint64_t fence;     // the least that may be given out
  };

  // What the record comes to at an instant, and what this request adds to it.
  struct State {
    Body body;
    uint64_t tick = 0;   // of the instant
    uint64_t used = 0;   // units of holds that are live
    uint64_t ended = 0;  // holds whose lease has ended and that still have their place
    uint64_t next_end = ~uint64_t{0};  // in ticks: no live hold ends earlier
    uint64_t last_end = 0;             // none ends later
    uint64_t added = 0;
    uint64_t added_end = 0;
    uint64_t fence = 0;  // of what is added
    uint64_t place = 0;  // where that went: known once it is stored
  };

  static uint64_t PlacesOf(uint64_t words) noexcept {
    const uint64_t few = kHeadWords + 2 * kFewPlaces;
    return (words - kHeadWords - (words > few ? kTailWords : 0)) / 2;
  }

  static uint64_t WordsFor(uint64_t places) noexcept {
    return kHeadWords + 2 * places + (places > kFewPlaces ? kTailWords : 0);
  }

  // Room for what the state comes to; 0 if that is more than a body holds. Bodies begin small and
  // double up to the limit; only what is counted over it takes them further.
  static uint64_t BodyWords(const Plan& plan, const State& state) noexcept {
    if (state.body.empty()) {
      return WordsFor(1);
    }
    const uint64_t places = PlacesOf(state.body.size());
    const bool has_room =
        state.ended != 0 || FreeOf(state.body) != 0 || UsedPlaces(state.body) < places;
    if (has_room || state.added == 0) {
      return state.body.size();
    }
    if (places == kPlacesMax) {
      return 0;
    }
    const uint64_t most = places < plan.limit ? plan.limit : kPlacesMax;
    return WordsFor(std::min(std::bit_ceil(places + 1), most));
  }

  static Now At(const Plan& plan, const Moment& moment) noexcept {
    return {.ns = moment.ns,
            .tick = moment.ns / kTickNs,
            .lease_ns = plan.window_ns,
            .fence = moment.ns + plan.epoch_offset_ns};
  }

  static State Load(const Plan&, Body body, const Now& now) noexcept {
    State state;
    state.body = body;
    state.tick = now.tick;
    state.added_end = (now.ns + now.lease_ns + kTickNs - 1) / kTickNs;
    state.fence = now.fence;
    if (body.empty()) {
      return state;
    }
    state.fence = std::max(now.fence, body[1] + 1);
    state.used = body[0] >> 32;
    if (HasTail(body) && now.tick < body[body.size() - 2]) {
      state.next_end = body[body.size() - 2];
      state.last_end = body[body.size() - 1];
      return state;
    }
    ForEachHold(body, [&](uint64_t, uint64_t word) {
      const uint64_t left = TicksLeft(word, now.tick);
      if (left == 0) {
        state.used -= UnitsOf(word);
        ++state.ended;
        return;
      }
      state.next_end = std::min(state.next_end, now.tick + left);
      state.last_end = std::max(state.last_end, now.tick + left);
    });
    return state;
  }

  // Into the body that the state was loaded from, or into another one at least as large.
  // REQUIRES: at most kPlacesMax places.
  static void Store(const Plan&, Body body, State& state) noexcept {
    if (body.data() != state.body.data()) {
      std::copy_n(state.body.begin(), std::min(WordsInUse(state.body), body.size()), body.begin());
    }
    if (state.ended != 0) {
      ForEachHold(body, [&](uint64_t place, uint64_t word) {
        if (TicksLeft(word, state.tick) == 0) {
          Free(body, place);
        }
      });
      state.ended = 0;
    }
    if (state.added != 0) {
      state.place = TakePlace(body);
      body[kHeadWords + 2 * state.place] = state.fence;
      WordOf(body, state.place) = PackHold(state.added_end, state.added);
      body[1] = state.fence;
      state.used += state.added;
      state.next_end = std::min(state.next_end, state.added_end);
      state.last_end = std::max(state.last_end, state.added_end);
      state.added = 0;
    }
    state.body = body;
    body[0] = state.used << 32 | (body[0] & base::LowBits(32));
    if (HasTail(body)) {
      body[body.size() - 2] = state.next_end;
      body[body.size() - 1] = state.last_end;
    }
  }

  // When the record is as good as none: no hold is left, and every fence from then on is larger
  // than its last. REQUIRES: stored.
  static uint64_t LiveUntil(const Plan& plan, const State& state) noexcept {
    if (state.body.empty()) {
      return 0;
    }
    const uint64_t past_fence = state.body[1] + 1 - plan.epoch_offset_ns;
    return state.used != 0 ? std::max(past_fence, state.last_end * kTickNs) : past_fence;
  }

  static bool Take(const Plan& plan, State& state, uint64_t cost) noexcept {
    if (state.used + state.added + cost > plan.limit) {
      return false;
    }
    state.added += cost;
    return true;
  }

  static uint64_t Available(const Plan& plan, const State& state, const Now&) noexcept {
    const uint64_t used = state.used + state.added;
    return used >= plan.limit ? 0 : plan.limit - used;
  }

  static void Count(const Plan&, State& state, uint64_t cost) noexcept {
    state.added = std::min(base::SaturatingAdd(state.added, cost), base::LowBits(16));
  }

  // Until all leases have ended, if nobody renews; holds that were released from a body with a tail
  // may be among them.
  static uint64_t ResetNs(const Plan&, const State& state, const Now& now) noexcept {
    const uint64_t end =
        std::max(state.used != 0 ? state.last_end : 0, state.added != 0 ? state.added_end : 0);
    return end * kTickNs > now.ns ? end * kTickNs - now.ns : 0;
  }

  // When enough leases have ended, if nobody releases or renews.
  // REQUIRES: cost <= limit and the cost does not fit.
  static uint64_t RetryNs(const Plan& plan, const State& state, const Now& now,
                          uint64_t cost) noexcept {
    const uint64_t excess = state.used + state.added + cost - plan.limit;
    const auto for_each = [&](auto visit) {
      ForEachHold(state.body, [&](uint64_t, uint64_t word) {
        if (const uint64_t left = TicksLeft(word, now.tick); left != 0) {
          visit(left, UnitsOf(word));
        }
      });
      if (state.added != 0) {
        visit(state.added_end - now.tick, state.added);
      }
    };
    // Mostly what ends first is enough.
    uint64_t least = ~uint64_t{0};
    uint64_t most = 0;
    uint64_t first = 0;  // units that end at `least`
    for_each([&](uint64_t left, uint64_t held) {
      first = (left < least ? 0 : first) + (left <= least ? held : 0);
      least = std::min(least, left);
      most = std::max(most, left);
    });
    // Otherwise the span is cut into parts, and then the part in which enough is reached, so that a
    // few rounds find the very tick: a key may have many holds, and its list is locked meanwhile.
    constexpr unsigned kPartBits = 8;
    uint64_t before = 0;  // units that end before `least`: not enough, while by `most` it is
    while (first < excess && least < most) {
      const auto bits = static_cast<unsigned>(std::bit_width(most - least));
      const unsigned shift = std::max(bits, kPartBits) - kPartBits;
      uint64_t ending[1 << kPartBits] = {};
      for_each([&](uint64_t left, uint64_t held) {
        ending[(left - least) >> shift & base::LowBits(kPartBits)] +=
            left >= least && left <= most ? held : 0;
      });
      uint64_t part = 0;
      while (before + ending[part] < excess) {
        before += ending[part++];
      }
      least += part << shift;
      most = std::min(most, least + base::LowBits(shift));
    }
    return (now.tick + least) * kTickNs - now.ns;
  }

  static uint64_t Mark(const Plan&, const State& state, const Now&) noexcept { return state.fence; }

  static uint64_t Used(const Plan&, const State& state, const Now&) noexcept {
    return (state.used + state.added) << kUsedFractionBits;
  }

  // Ends the hold with this fence in this place, unless that has happened already.
  static Refund End(Body body, const Now& now, uint64_t fence, uint64_t place) noexcept {
    if (!IsLive(body, now, fence, place)) {
      return {};
    }
    const uint64_t units = UnitsOf(WordOf(body, place));
    Free(body, place);
    body[0] -= units << 32;
    return {0, static_cast<uint32_t>(units), true};
  }

  // Ends all holds, so that every place is free; the last fence stays.
  static void EndAll(Body body) noexcept {
    body[0] = 0;
    if (HasTail(body)) {
      body[body.size() - 2] = ~uint64_t{0};
      body[body.size() - 1] = 0;
    }
  }

  // The lease begins anew, and never ends earlier than it did. False: the hold has ended.
  static bool Renew(Body body, const Now& now, uint64_t fence, uint64_t place) noexcept {
    if (!IsLive(body, now, fence, place)) {
      return false;
    }
    uint64_t& word = WordOf(body, place);
    const uint64_t end = std::max(now.tick + TicksLeft(word, now.tick),
                                  (now.ns + now.lease_ns + kTickNs - 1) / kTickNs);
    word = PackHold(end, UnitsOf(word));
    if (HasTail(body)) {
      body[body.size() - 1] = std::max(body[body.size() - 1], end);
    }
    return true;
  }

  // No quota of another kind becomes one of these, nor the other way round (limiter/update.cc).
  static Carried Carry(const Plan&, const State&, const Now&) noexcept { return {}; }
  static State Seed(const Plan& plan, const Now&, const Now& now, const Carried&) noexcept {
    return Load(plan, {}, now);
  }

 private:
  static bool HasTail(Body body) noexcept { return body.size() > kHeadWords + 2 * kFewPlaces; }

  static uint64_t UsedPlaces(Body body) noexcept { return body[0] & base::LowBits(16); }
  static uint64_t FreeOf(Body body) noexcept { return body[0] >> 16 & base::LowBits(16); }
  static uint64_t WordsInUse(Body body) noexcept {
    return body.empty() ? 0 : kHeadWords + 2 * UsedPlaces(body);
  }

  static uint64_t& WordOf(Body body, uint64_t place) noexcept {
    return body[kHeadWords + 2 * place + 1];
  }

  static uint64_t PackHold(uint64_t end, uint64_t units) noexcept { return end << 16 | units; }
  static uint64_t UnitsOf(uint64_t word) noexcept { return word & base::LowBits(16); }

  // 0: the lease has ended.
  static uint64_t TicksLeft(uint64_t word, uint64_t tick) noexcept {
    const auto left = static_cast<int64_t>(((word >> 16) - tick) << 16) >> 16;
    return left > 0 ? static_cast<uint64_t>(left) : 0;
  }

  static bool IsLive(Body body, const Now& now, uint64_t fence, uint64_t place) noexcept {
    return place < UsedPlaces(body) && body[kHeadWords + 2 * place] == fence &&
           UnitsOf(WordOf(body, place)) != 0 && TicksLeft(WordOf(body, place), now.tick) != 0;
  }

  // All places with units, those whose lease has ended among them.
  template <class Visit>
  static void ForEachHold(Body body, Visit visit) noexcept {
    const uint64_t places = body.empty() ? 0 : UsedPlaces(body);
    for (uint64_t place = 0; place < places; ++place) {
      if (const uint64_t word = WordOf(body, place); UnitsOf(word) != 0) {
        visit(place, word);
      }
    }
  }

  static void Free(Body body, uint64_t place) noexcept {
    WordOf(body, place) = FreeOf(body) << 16;
    SetFree(body, place + 1);
  }

  static void SetFree(Body body, uint64_t free) noexcept {
    body[0] = (body[0] & ~(base::LowBits(16) << 16)) | free << 16;
  }

  static uint64_t TakePlace(Body body) noexcept {
    if (const uint64_t free = FreeOf(body); free != 0) {
      SetFree(body, WordOf(body, free - 1) >> 16);
      return free - 1;
    }
    return body[0]++ & base::LowBits(16);
  }
};

}  // namespace weir::algorithm
