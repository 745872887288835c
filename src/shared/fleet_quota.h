// Quotas made ready for the shared store: compiled for its scripts, for this node's share of them,
// and numbered for the book of keys.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "weir/limiter.h"
#include "weir/shared_store.h"

#include "base/mutex.h"
#include "shared/key_book.h"
#include "store/redis/shared_plan.h"

namespace weir::shared {

struct FleetQuota final : SharedQuota {
  FleetQuota(const Quota& asked, uint64_t asked_scope, script::SharedPlan compiled,
             const BookQuota& own)
      : SharedQuota(asked, asked_scope), plan(std::move(compiled)), book(own) {}

  [[nodiscard]] bool holds() const noexcept { return quota.algorithm() == Algorithm::kConcurrency; }

  const script::SharedPlan plan;
  const BookQuota book;
  // What may be held by this node while the store is away; none of a limit below one a node.
  mutable std::optional<Limiter> local_holds;
};

class QuotaRegistry {
 public:
  static constexpr size_t kMost = size_t{1} << 20;

  QuotaRegistry(uint32_t nodes, const Clock& clock) : nodes_(nodes), clock_(clock) {}

  [[nodiscard]] Result<const FleetQuota*> Bind(const Quota& quota, uint64_t scope);
  // All there are, by their numbers; they live as long as this.
  [[nodiscard]] std::vector<const BookQuota*> BookQuotas() const;
  // REQUIRES: it was given out.
  [[nodiscard]] const FleetQuota& Get(uint32_t number) const;

 private:
  [[nodiscard]] Result<void> MakeLocalHolds(FleetQuota& quota) WEIR_REQUIRES(mutex_);

  const uint32_t nodes_;
  const Clock& clock_;
  mutable base::Mutex mutex_;
  std::vector<std::unique_ptr<FleetQuota>> all_ WEIR_GUARDED_BY(mutex_);
  std::unordered_map<std::string, const FleetQuota*> by_text_ WEIR_GUARDED_BY(mutex_);
  std::shared_ptr<MemoryStore> holds_ WEIR_GUARDED_BY(mutex_);  // of local_holds
};

}  // namespace weir::shared
