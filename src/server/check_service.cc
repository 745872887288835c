#include "server/check_service.h"

#include <utility>

namespace weir::server {

namespace {

int64_t Nanoseconds(Timestamp now) {
  return now.time_since_epoch().count();
}

}  // namespace

Result<std::unique_ptr<Deciders>> CheckService::Make(std::shared_ptr<const RuleSet> rules,
                                                     const ServiceOptions& options) {
  auto made = std::make_unique<Deciders>(options.rules.shared);
  auto store = MemoryStore::Create({.budget_bytes = options.memory_bytes,
                                    .keys = KeyPolicy::kBinary,
                                    .fleet_secret = options.rules.fleet_secret,
                                    .clock = options.clock,
                                    .wide_percent = options.wide_percent,
                                    .record_percent = options.record_percent});
  if (!store) {
    return store.error();
  }
  made->store = *std::move(store);
  auto limiter = RuleLimiter::Create(std::move(rules), made->store, options.rules);
  if (!limiter) {
    return limiter.error();
  }
  made->rules = *std::move(limiter);
  auto throttle = ThrottleLimiter::Create(made->store);
  if (!throttle) {
    return throttle.error();
  }
  made->throttle = *std::move(throttle);
  return made;
}

Result<std::unique_ptr<CheckService>> CheckService::Create(std::shared_ptr<const RuleSet> rules,
                                                           const ServiceOptions& options) {
  auto first = Make(std::move(rules), options);
  if (!first) {
    return first.error();
  }
  return std::unique_ptr<CheckService>(new CheckService(options, *std::move(first)));
}

CheckService::CheckService(const ServiceOptions& options, std::unique_ptr<Deciders> first)
    : options_(options),
      clock_(options.clock != nullptr ? *options.clock : SystemClock()),
      current_(first.get()),
      latest_ns_(Nanoseconds(clock_.Now())) {
  const base::MutexLock lock(mutex_);
  all_.push_back(std::move(first));
}

// Relaxed loads and stores of the latest time: the mutex orders those that matter.
void CheckService::FollowClock() noexcept {
  const int64_t now = Nanoseconds(clock_.Now());
  if (now == latest_ns_.load(std::memory_order_relaxed)) {
    return;
  }
  const base::MutexLock lock(mutex_);
  const bool set_back = now < latest_ns_.load(std::memory_order_relaxed);
  latest_ns_.store(now, std::memory_order_relaxed);
  if (!set_back) {
    return;
  }
  auto anew = Make(all_.back()->rules->rules(), options_);
  if (!anew) {
    return;  // the rules fitted such a store before; without memory the old state has to do
  }
  all_.push_back(*std::move(anew));
  current_.store(all_.back().get(), std::memory_order_release);
  constexpr size_t kKept = 3;
  if (all_.size() > kKept) {
    all_.erase(all_.begin());
  }
}

Result<void> CheckService::Apply(std::shared_ptr<const RuleSet> rules) {
  const base::MutexLock lock(mutex_);
  return all_.back()->rules->Apply(std::move(rules));
}

std::shared_ptr<const RuleSet> CheckService::rules() {
  const base::MutexLock lock(mutex_);
  return all_.back()->rules->rules();
}

}  // namespace weir::server
