// What a check answers: a request put to a state, and the Decision that comes of it. Knows no
// table.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "weir/decision.h"

#include "algorithm/plan.h"
#include "base/key_hash.h"
#include "store/memory/binding.h"

namespace weir::store {

// Whether what it admits may have to wait.
template <class Algo>
concept Delays = requires(const algorithm::Plan& plan, typename Algo::State state) {
  Algo::StartNs(plan, state);
};

// The four bytes at the end, written as the word that they are: a compiler that is left to join
// four stores makes two of them at times.
[[gnu::always_inline]] inline void Label(Outcome outcome, Basis basis, Decision& out) noexcept {
  static_assert(offsetof(Decision, basis) == offsetof(Decision, outcome) + 1 &&
                offsetof(Decision, problem) == offsetof(Decision, outcome) + 2 &&
                offsetof(Decision, spare) == offsetof(Decision, outcome) + 3);
  const uint8_t label[] = {static_cast<uint8_t>(outcome), static_cast<uint8_t>(basis),
                           static_cast<uint8_t>(Problem::kNone), 0};
  std::memcpy(reinterpret_cast<char*>(&out) + offsetof(Decision, outcome), label, sizeof label);
}

template <class Algo>
struct Answer {
  using Plan = algorithm::Plan;
  using State = typename Algo::State;
  using Now = typename Algo::Now;

  [[gnu::always_inline]] static void Describe(const Plan& plan, const State& state, const Now& now,
                                              Decision& out) noexcept {
    out.reset_after = algorithm::ToDuration(Algo::ResetNs(plan, state, now));
    out.remaining = static_cast<uint32_t>(Algo::Available(plan, state, now));  // at most the burst
  }

  // What is available after a charge that fitted; some policies know a shorter way to it then.
  [[gnu::always_inline]] static uint64_t Left(const Plan& plan, const State& state,
                                              const Now& now) noexcept {
    if constexpr (requires { Algo::Left(plan, state); }) {
      return Algo::Left(plan, state);
    } else {
      return Algo::Available(plan, state, now);
    }
  }

  // What is known before the state is seen, and that nothing is left. An answer has this and one of
  // the ends.
  [[gnu::always_inline]] static void Begin(uint32_t limit, uint32_t charged,
                                           Decision& out) noexcept {
    if constexpr (std::endian::native == std::endian::little) {
      // Both in one store, which no compiler makes of them.
      static_assert(offsetof(Decision, remaining) == offsetof(Decision, limit) + sizeof limit);
      const uint64_t limit_and_nothing = limit;
      std::memcpy(reinterpret_cast<char*>(&out) + offsetof(Decision, limit), &limit_and_nothing,
                  sizeof limit_and_nothing);
    } else {
      out.limit = limit;
      out.remaining = 0;
    }
    out.charged = charged;
  }

  [[gnu::always_inline]] static void EndAllowed(const Plan& plan, const State& state,
                                                const Now& now, uint64_t remaining,
                                                Decision& out) noexcept {
    if constexpr (Delays<Algo>) {
      out.retry_after = algorithm::ToDuration(Algo::StartNs(plan, state));
    } else {
      out.retry_after = Duration::zero();
    }
    out.reset_after = algorithm::ToDuration(Algo::ResetNs(plan, state, now));
    out.remaining = static_cast<uint32_t>(remaining);  // at most the burst
    Label(Outcome::kAllowed, Basis::kStore, out);
  }

  // REQUIRES: the cost does not fit, and could; Begin.
  [[gnu::always_inline]] static void EndDenied(const Plan& plan, const State& state, const Now& now,
                                               uint64_t cost, uint64_t retry_ns,
                                               Decision& out) noexcept {
    out.retry_after = algorithm::ToDuration(retry_ns);
    out.reset_after = algorithm::ToDuration(Algo::ResetNs(plan, state, now));
    // Where one unit does not fit nothing is left, and most ask for one.
    if (cost != 1) [[unlikely]] {
      const Plan* again = &plan;
      base::WorkOut(again);  // or what this needs of it would be kept for all
      out.remaining = static_cast<uint32_t>(Algo::Available(*again, state, now));
    }
    out.charged = 0;
    Label(Outcome::kDenied, Basis::kStore, out);
  }

  static void Allow(const Plan& plan, const State& state, const Now& now, uint64_t charged,
                    Decision& out) noexcept {
    Begin(plan.burst, Saturated(charged), out);
    EndAllowed(plan, state, now, Algo::Available(plan, state, now), out);
  }

  static void Deny(const Plan& plan, const State& state, const Now& now, uint64_t cost,
                   Decision& out) noexcept {
    Begin(plan.burst, 0, out);
    EndDenied(plan, state, now, cost, Algo::RetryNs(plan, state, now, cost), out);
  }

  // Puts the request to a state. True if the state changed and must be written.
  static bool Apply(const Plan& plan, State& state, const Now& now, const Request& request,
                    Decision& out) noexcept {
    const uint64_t cost = request.cost;
    if constexpr (Delays<Algo>) {
      if (request.max_wait_ns != Request::kAnyWait && request.mode != ChargeMode::kCountAlways) {
        return ApplyWithin(plan, state, now, request, out);
      }
    }
    if (cost == 0) [[unlikely]] {
      Allow(plan, state, now, 0, out);
      if constexpr (Delays<Algo>) {
        out.retry_after = Duration::zero();  // what takes nothing waits for nothing
      }
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
      Begin(plan.burst, 0, out);
      out.retry_after = Duration::zero();
      Describe(plan, state, now, out);
      Label(Outcome::kDenied, Basis::kStore, out);
      out.problem = Problem::kCostAboveBurst;
    }
    // What went into a full state cannot be given back: it would take others' charges along.
    const uint64_t charged = std::min(cost, counted);
    out.charged = Saturated(charged);
    return true;
  }

 private:
  static bool ApplyWithin(const Plan& plan, State& state, const Now& now, const Request& request,
                          Decision& out) noexcept {
    const Plan within = Algo::Within(plan, request.max_wait_ns);
    const bool bounded = request.mode != ChargeMode::kUpTo;
    if (bounded && !Algo::Possible(within, request.cost)) {
      Begin(plan.burst, 0, out);
      out.retry_after = Duration::zero();
      Describe(within, state, now, out);
      Label(Outcome::kRefused, Basis::kStore, out);
      out.problem = Problem::kMaxWaitTooShort;
      return false;
    }
    return Apply(within, state, now, Request{.cost = request.cost, .mode = request.mode}, out);
  }

  static uint32_t Saturated(uint64_t units) noexcept {
    return static_cast<uint32_t>(std::min<uint64_t>(units, ~uint32_t{0}));
  }
};

}  // namespace weir::store
