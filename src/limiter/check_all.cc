// Several quotas on one request, all or nothing.
//
// First every charge is looked at without writing. Only if all of them fit are they taken, in
// order, each with a receipt; if one is lost to another thread in between, those already taken are
// given back. So nothing is ever admitted beyond a quota, and a denial charges nothing. While such
// a race is open, the charges about to be given back can deny somebody else: by at most the cost in
// flight.
#include <algorithm>
#include <array>

#include "limiter/limiter_state.h"

namespace weir {

namespace {

bool IsAlways(const Charge& charge) noexcept {
  return charge.mode == ChargeMode::kCountAlways;
}

Decision Ask(const Charge& charge, Cost cost, ChargeMode mode, Timestamp now,
             Receipt* receipt = nullptr) noexcept {
  return charge.limiter->Check(
      charge.key, CheckOptions{.cost = cost,
                               .mode = mode,
                               .now = now,
                               .receipt = receipt,
                               .max_wait = IsAlways(charge) ? Duration::max() : charge.max_wait});
}

// Gives back what was taken. The receipts not yet given back are told what this one moved, as far
// as they share its counter without sharing its key: for them nothing has moved.
void RollBack(std::span<const Charge> charges, std::span<Receipt> taken, size_t index,
              Timestamp now) noexcept {
  Limiter::State& state = charges[index].limiter->state();
  store::Binding& binding = state.current();
  const uint64_t hash = taken[index].hash;
  if (taken[index].charged == 0) {
    return;
  }
  uint64_t now_ns = 0;
  if (!state.shared.Admit(now, now_ns)) {
    now_ns = state.shared.ReadClock();  // the stamp has grown too old meanwhile
  }
  const uint64_t moved_ns = binding.ops.give_back(binding, taken[index], now_ns).moved_ns;
  for (size_t i = index + 1; moved_ns != 0 && i < taken.size(); ++i) {
    const store::Binding& other = charges[i].limiter->state().current();
    const bool same_key = &other == &binding && taken[i].hash == hash;
    if (taken[i].charged != 0 && !same_key && other.counts_refunds() &&
        &other.RefundsOf(taken[i].hash) == &binding.RefundsOf(hash)) {
      taken[i].refunds += moved_ns;
    }
  }
}

// What the types cannot rule out. In `deciding`: which charge it is.
Problem ProblemOf(std::span<const Charge> charges, size_t decisions, size_t receipts,
                  size_t& deciding) noexcept {
  if (charges.size() > kMaxCharges || charges.size() > decisions ||
      (receipts != 0 && charges.size() > receipts)) {
    return Problem::kTooManyCharges;
  }
  for (deciding = 0; deciding < charges.size(); ++deciding) {
    const Charge& charge = charges[deciding];
    if (charge.limiter == nullptr) {
      return Problem::kNoLimiter;
    }
    if (charge.mode != ChargeMode::kAdmit && charge.mode != ChargeMode::kCountAlways) {
      return Problem::kWrongMode;
    }
  }
  return Problem::kNone;
}

Verdict Refuse(Problem problem, size_t deciding, std::span<Decision> decisions,
               std::span<Receipt> receipts) noexcept {
  Decision refused;
  refused.outcome = Outcome::kRefused;
  refused.problem = problem;
  std::fill(decisions.begin(), decisions.end(), refused);
  std::fill(receipts.begin(), receipts.end(), Receipt{});
  Verdict verdict;
  verdict.outcome = Outcome::kRefused;
  verdict.problem = problem;
  verdict.deciding = deciding;
  return verdict;
}

Verdict Judge(std::span<const Decision> decisions) noexcept {
  Verdict verdict;
  for (size_t i = 0; i < decisions.size(); ++i) {
    const Decision& decision = decisions[i];
    verdict.start_after = std::max(verdict.start_after, decision.start_after());
    const Decision& leading = decisions[verdict.deciding];
    if (!decision.allowed()) {
      const bool first = verdict.allowed();
      // A refusal can never pass, so it outweighs any wait.
      const bool graver =
          decision.outcome == Outcome::kRefused && verdict.outcome == Outcome::kDenied;
      const bool longer =
          decision.outcome == verdict.outcome && decision.retry_after > leading.retry_after;
      if (first || graver || longer) {
        verdict.deciding = i;
        verdict.outcome = decision.outcome;
        verdict.problem = decision.problem;
      }
      verdict.retry_after = std::max(verdict.retry_after, decision.retry_after);
    } else if (verdict.allowed() && uint64_t{decision.remaining} * leading.limit <
                                        uint64_t{leading.remaining} * decision.limit) {
      verdict.deciding = i;
    }
  }
  if (!verdict.allowed()) {
    verdict.start_after = Duration::zero();
  }
  return verdict;
}

}  // namespace

Verdict CheckAll(std::span<const Charge> charges, std::span<Decision> decisions,
                 std::optional<Timestamp> now, std::span<Receipt> receipts) noexcept {
  if (charges.empty()) {
    return Verdict{};
  }
  size_t deciding = 0;
  const Problem problem = ProblemOf(charges, decisions.size(), receipts.size(), deciding);
  if (problem != Problem::kNone) [[unlikely]] {
    return Refuse(problem, deciding, decisions, receipts);
  }
  const Timestamp at = now.has_value() ? *now : charges[0].limiter->Now();
  bool all_fit = true;
  for (size_t i = 0; i < charges.size(); ++i) {
    decisions[i] = Ask(charges[i], charges[i].cost, ChargeMode::kDryRun, at);
    all_fit = all_fit && decisions[i].allowed();
  }
  std::array<Receipt, kMaxCharges> taken{};
  std::array<bool, kMaxCharges> asked{};
  for (size_t i = 0; all_fit && i < charges.size(); ++i) {
    if (!IsAlways(charges[i])) {
      decisions[i] = Ask(charges[i], charges[i].cost, ChargeMode::kAdmit, at, &taken[i]);
      asked[i] = true;
      all_fit = decisions[i].allowed();
    }
  }
  // Counted whatever happens to the others; over its limit it refuses the request all the same.
  for (size_t i = 0; i < charges.size(); ++i) {
    if (IsAlways(charges[i])) {
      decisions[i] = Ask(charges[i], charges[i].cost, ChargeMode::kCountAlways, at, &taken[i]);
      all_fit = all_fit && decisions[i].allowed();
    }
  }
  for (size_t i = 0; !all_fit && i < charges.size(); ++i) {
    if (!IsAlways(charges[i])) {
      RollBack(charges, std::span(taken).first(charges.size()), i, at);
      if (!decisions[i].allowed() && decisions[i].outcome == Outcome::kDenied && !asked[i]) {
        // Found by the dry run, which counts nothing.
        charges[i].limiter->state().shared.counters.Get().Add(&store::CounterCell::denials, 1);
      }
      if (decisions[i].allowed()) {
        // It would have fitted by itself: show what is left without it.
        decisions[i] = Ask(charges[i], 0, ChargeMode::kAdmit, at);
      }
    }
  }
  std::copy_n(taken.begin(), std::min(receipts.size(), charges.size()), receipts.begin());
  return Judge(decisions.first(charges.size()));
}

}  // namespace weir
