#include "server/shared_throttle.h"

#include <new>

#include "base/key_hash.h"
#include "base/room.h"

namespace weir::server {

namespace {

// One for all rates: a key that is asked for with another rate keeps what it owes.
uint64_t Scope() {
  return base::HashKeySeeded("cl.throttle", 0);
}

}  // namespace

Result<const SharedQuota*> SharedThrottle::Find(const algorithm::ThrottleAsk& ask) {
  if (ask.quantity < 0) {
    return Error::Invalid("a quantity below 0 is not possible with a shared store");
  }
  const base::MutexLock lock(mutex_);
  const auto [found, is_new] = rates_.try_emplace({ask.burst, ask.interval_ns}, nullptr);
  if (!is_new) {
    return found->second;
  }
  if (rates_.size() > kRatesMax) {
    rates_.erase(found);
    return Error{ErrorCode::kUnavailable, "more than " + std::to_string(kRatesMax) +
                                              " different rates are not possible with a shared "
                                              "store; take fewer, or WEIR.CHECK with a rule"};
  }
  const auto quota = Quota::TokenBucket(1, Duration(ask.interval_ns), ask.burst);
  const auto bound =
      quota ? store_.Bind(*quota, Scope()) : Result<const SharedQuota*>(quota.error());
  if (!bound) {
    rates_.erase(found);
    return bound.error();
  }
  found->second = *bound;
  return *bound;
}

bool SharedThrottle::Forget(std::string_view key) {
  // A key's state is that of all rates, so any rate will do, also one that nobody asked with here.
  const auto any = Find({.burst = 1, .interval_ns = 1'000'000'000});
  if (!any) {
    return false;
  }
  const ResetOutcome outcome = store_.Reset(**any, key);
  return outcome == ResetOutcome::kDone || outcome == ResetOutcome::kShared;
}

void SharedThrottle::Take(std::span<Question> questions) noexcept {
  base::Room<SharedAsk, kQuestionsMax> asks;
  for (size_t i = 0; i < questions.size(); ++i) {
    new (asks.data() + i) SharedAsk{.quota = questions[i].rate,
                                    .key = questions[i].key,
                                    .cost = questions[i].ask.quantity,
                                    .apart = true};
  }
  SharedRequest request{.asks = {asks.data(), questions.size()}};
  store_.Decide(request);
  for (size_t i = 0; i < questions.size(); ++i) {
    const Decision& decision = asks.data()[i].decision;
    questions[i].answer = {.allowed = decision.allowed(),
                           .remaining = decision.remaining,
                           .retry_ns = decision.outcome == Outcome::kDenied
                                           ? decision.retry_after.count()
                                           : algorithm::ThrottleAnswer::kNever,
                           .reset_ns = decision.reset_after.count()};
  }
}

}  // namespace weir::server
