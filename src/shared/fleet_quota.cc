#include "shared/fleet_quota.h"

#include <algorithm>
#include <utility>

namespace weir::shared {

Result<const FleetQuota*> QuotaRegistry::Bind(const Quota& quota, uint64_t scope) {
  const std::string text = std::to_string(scope) + ' ' + quota.ToString();
  const base::MutexLock lock(mutex_);
  if (const auto found = by_text_.find(text); found != by_text_.end()) {
    return found->second;
  }
  if (all_.size() >= kMost) {
    return Error{ErrorCode::kOverloaded, "quotas: " + std::to_string(kMost) +
                                             " have been bound to this store, which is the most"};
  }
  auto plan = script::SharedPlan::Compile(quota);
  if (!plan) {
    return plan.error();
  }
  const BookQuota own{.number = static_cast<uint32_t>(all_.size()),
                      .plan = MakeLocalPlan(quota, nodes_)};
  auto made = std::make_unique<FleetQuota>(quota, scope, std::move(*plan), own);
  if (made->holds()) {
    if (auto held = MakeLocalHolds(*made); !held) {
      return held.error();
    }
  }
  const FleetQuota* const kept = made.get();
  all_.push_back(std::move(made));
  by_text_.emplace(text, kept);
  return kept;
}

// A limit of one is a lock, and a share of less than one is nothing: without the store nobody can
// say who has it.
Result<void> QuotaRegistry::MakeLocalHolds(FleetQuota& quota) {
  const uint32_t share = quota.quota.limit() / nodes_;
  if (share == 0) {
    return {};
  }
  if (holds_ == nullptr) {
    auto store = MemoryStore::Create({.budget_bytes = size_t{4} << 20,
                                      .clock = &clock_,
                                      .wide_percent = 0,
                                      .record_percent = 90});
    if (!store) {
      return store.error();
    }
    holds_ = std::move(*store);
  }
  auto own = Quota::Concurrency(share, quota.quota.window());
  if (!own) {
    return own.error();
  }
  auto limiter = Limiter::Create(*own, holds_);
  if (!limiter) {
    return limiter.error();
  }
  quota.local_holds.emplace(std::move(*limiter));
  return {};
}

std::vector<const BookQuota*> QuotaRegistry::BookQuotas() const {
  const base::MutexLock lock(mutex_);
  std::vector<const BookQuota*> all;
  all.reserve(all_.size());
  for (const auto& quota : all_) {
    all.push_back(&quota->book);
  }
  return all;
}

const FleetQuota& QuotaRegistry::Get(uint32_t number) const {
  const base::MutexLock lock(mutex_);
  return *all_[number];
}

}  // namespace weir::shared
