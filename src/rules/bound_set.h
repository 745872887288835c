// A compiled set joined with limiters.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/limiter.h"
#include "weir/result.h"
#include "weir/rules.h"

#include "rules/compiled_set.h"
#include "rules/rule_counters.h"

namespace weir::rules {

struct BoundSlot {
  Limiter* limiter = nullptr;  // null: the rule is disabled
  // The one that the limiter counts by: the file's, or the one before it until its time has come.
  std::atomic<const RuleQuota*> quota{nullptr};
  // The same, as the shared store has it; null without one.
  std::atomic<const SharedQuota*> shared{nullptr};
};

// A quota that is to change later.
struct PendingChange {
  uint32_t slot = 0;
  const RuleQuota* target = nullptr;
  WallTime due{};
};

struct BoundSet {
  std::shared_ptr<const RuleSet> rules;
  const CompiledSet* compiled = nullptr;
  std::unique_ptr<BoundSlot[]> slots;
  std::vector<RuleCounters*> counters;  // by rule

  std::vector<PendingChange> pending;                // guarded by the mutex of Apply
  std::vector<std::unique_ptr<RuleQuota>> in_force;  // those that differ from the file's
  std::atomic<int64_t> next_due_ns{std::numeric_limits<int64_t>::max()};
  bool needs_wall = false;
};

// Limiters and counters by what they are for, kept for as long as the RuleLimiter lives: a rule
// that goes and comes back finds its counts, and a store never gives back what a limiter took of
// it.
class Registry {
 public:
  Registry(std::shared_ptr<MemoryStore> store, std::shared_ptr<SharedStore> shared,
           uint32_t top_keys)
      : store_(std::move(store)), shared_(std::move(shared)), top_keys_(top_keys) {}

  // The limiter of this identity, made with `quota` if there is none, or if the one there is cannot
  // become it.
  [[nodiscard]] Result<Limiter*> Find(const std::string& identity, const Quota& quota,
                                      Precision precision);
  // What the shared store makes of a limiter's quota; null without such a store.
  [[nodiscard]] Result<const SharedQuota*> Share(const Limiter& limiter, const Quota& quota);
  [[nodiscard]] RuleCounters& Counters(std::string_view rule);

 private:
  std::shared_ptr<MemoryStore> store_;
  std::shared_ptr<SharedStore> shared_;
  uint32_t top_keys_;
  std::unordered_map<std::string, std::unique_ptr<Limiter>> limiters_;
  std::unordered_map<const Limiter*, uint64_t> scopes_;  // of the identities
  std::vector<std::unique_ptr<Limiter>> replaced_;       // replies may still point to them
  std::unordered_map<std::string, std::unique_ptr<RuleCounters>> counters_;
};

struct Change {
  uint32_t slot = 0;
  const RuleQuota* target = nullptr;
  ApplyWhen when = ApplyWhen::kNow;
  Precision precision = Precision::kExact;
};

struct Binding {
  std::unique_ptr<BoundSet> set;
  std::vector<Change> changes;  // of limiters that count by another quota so far
};

// Finds or makes all limiters. On an error nothing that decides has changed.
[[nodiscard]] Result<Binding> Bind(std::shared_ptr<const RuleSet> rules, Registry& registry);

// When the window that `wall` is in ends. Buckets and gaps have none, so a stretch of the same
// length stands in for it.
[[nodiscard]] WallTime NextWindow(const Quota& quota, WallTime wall);

}  // namespace weir::rules
