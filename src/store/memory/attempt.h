// A charge that is put to a state on the short way, where little may be kept in registers.
#pragma once

#include <cstdint>

#include "weir/decision.h"

#include "algorithm/plan.h"
#include "base/key_hash.h"
#include "store/memory/answer.h"

namespace weir::store {

// What became of a key on its home line. kElsewhere, kLost, kHeld: nothing has happened yet, decide
// the long way; somebody else was faster if kLost, there is a lease to be seen to if kHeld.
enum class AtHome : uint8_t { kAllowed, kDenied, kElsewhere, kLost, kHeld };

// Policies whose Load and Take have a shorter form for both together.
template <class Algo>
concept AttemptsAtOnce = requires { typename Algo::Attempt; };

template <class Algo>
class Attempt {
 public:
  using Plan = algorithm::Plan;
  using State = typename Algo::State;
  using Now = typename Algo::Now;

  // What is above the payload is ignored.
  [[gnu::always_inline]] Attempt(const Plan& plan, uint64_t payload, const Now& now,
                                 uint64_t cost) noexcept
      : payload_(payload),
        state_(Algo::Load(plan, payload, now)),
        fits_(Algo::Take(plan, state_, cost)) {}

  [[gnu::always_inline]] [[nodiscard]] bool Fits(const Plan&) const noexcept { return fits_; }

  // REQUIRES: it fits.
  [[gnu::always_inline]] [[nodiscard]] State Charged() const noexcept { return state_; }

  // REQUIRES: it does not fit; Answer::Begin. The state is worked out again from what is kept
  // anyway, rather than kept for this.
  [[gnu::always_inline]] void AnswerDenied(const Plan& plan, const Now& now,
                                           Decision& out) const noexcept {
    uint64_t payload = payload_;
    base::WorkOut(payload);
    const State refused = Algo::Load(plan, payload, now);
    Answer<Algo>::EndDenied(plan, refused, now, out.charged,
                            Algo::RetryNs(plan, refused, now, out.charged), out);
  }

 private:
  uint64_t payload_;
  State state_;
  bool fits_;
};

template <AttemptsAtOnce Algo>
class Attempt<Algo> {
 public:
  using Plan = algorithm::Plan;
  using State = typename Algo::State;
  using Now = typename Algo::Now;

  [[gnu::always_inline]] Attempt(const Plan& plan, uint64_t payload, const Now& now,
                                 uint64_t cost) noexcept
      : attempt_(Algo::Try(plan, payload, now, cost)) {}

  [[gnu::always_inline]] [[nodiscard]] bool Fits(const Plan& plan) const noexcept {
    return Algo::Fits(plan, attempt_);
  }

  [[gnu::always_inline]] [[nodiscard]] State Charged() const noexcept {
    return Algo::Charged(attempt_);
  }

  [[gnu::always_inline]] void AnswerDenied(const Plan& plan, const Now& now,
                                           Decision& out) const noexcept {
    // One after the other: a compiler that has both at hand multiplies them as a vector, which
    // takes twice as many instructions.
    uint64_t retry_ns = Algo::RetryNs(plan, attempt_);
    base::WorkOut(retry_ns);
    Answer<Algo>::EndDenied(plan, Algo::Refused(attempt_), now, out.charged, retry_ns, out);
  }

 private:
  typename Algo::Attempt attempt_;
};

}  // namespace weir::store
