#include "limiter/throttle.h"

#include <utility>

#include "base/key_hash.h"
#include "store/memory/shared_state.h"

namespace weir {

Result<std::unique_ptr<ThrottleLimiter>> ThrottleLimiter::Create(
    std::shared_ptr<MemoryStore> store) {
  // Any bucket whose ticks are whole nanoseconds; each request brings its own rate.
  const auto quota = Quota::TokenBucket(1, std::chrono::nanoseconds(1'000'001), 1);
  if (!quota) {
    return quota.error();
  }
  const auto binding = store->state().Bind(*quota, {.wide = true});
  if (!binding) {
    return binding.error();
  }
  return std::unique_ptr<ThrottleLimiter>(new ThrottleLimiter(std::move(store), **binding));
}

ThrottleLimiter::ThrottleLimiter(std::shared_ptr<MemoryStore> store, store::Binding& binding)
    : store_(std::move(store)), keys_(binding) {}

ThrottleLimiter::Hashed ThrottleLimiter::Prepare(std::string_view key) const noexcept {
  const Hashed hashed{base::HashKey(key, store_->state().secret)};
  keys_.Prefetch(hashed.hash);
  return hashed;
}

uint64_t ThrottleLimiter::NowNs(const std::optional<Timestamp>& now) const noexcept {
  uint64_t now_ns = 0;
  if (now.has_value() && store_->state().Admit(*now, now_ns)) {
    return now_ns;
  }
  return store_->state().ReadClock();
}

algorithm::ThrottleAnswer ThrottleLimiter::Take(Hashed key, const algorithm::ThrottleAsk& ask,
                                                std::optional<Timestamp> now) noexcept {
  algorithm::ThrottleAnswer answer;
  keys_.Decide(key.hash, ask, NowNs(now), answer);
  return answer;
}

bool ThrottleLimiter::Forget(Hashed key, std::optional<Timestamp> now) noexcept {
  return keys_.Forget(key.hash, NowNs(now));
}

}  // namespace weir
