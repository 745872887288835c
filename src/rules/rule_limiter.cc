// The changing side of a RuleLimiter; rule_check.cc is the deciding one.
//
// A change makes everything that takes time first: the set is compiled, limiters are found or made.
// Then the gate is closed for as long as the limiters with other quotas are told of them, so that
// no decision sees some of the old and some of the new.
#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "rules/rule_limiter_state.h"
#include "rules/rule_quota.h"
#include "rules/rule_set_state.h"
#include "rules/secret_attributes.h"

namespace weir {

namespace {

using rules::BoundSet;
using rules::BoundSlot;
using rules::Change;

// A limiter may have been changed too often for now (Limiter::Update).
constexpr Duration kTryAgain = std::chrono::seconds(1);

void Postpone(BoundSet& set, rules::Registry& registry, const Change& change, WallTime due) {
  BoundSlot& slot = set.slots[change.slot];
  auto& kept = set.in_force.emplace_back(
      std::make_unique<RuleQuota>(rules::MakeRuleQuota(slot.limiter->quota(), change.precision)));
  slot.quota.store(kept.get(), std::memory_order_release);
  // It was bound before, so it is not refused now.
  if (const auto shared = registry.Share(*slot.limiter, kept->quota)) {
    slot.shared.store(*shared, std::memory_order_release);
  }
  set.pending.push_back({change.slot, change.target, due});
  set.needs_wall = true;
}

void NoteNextDue(BoundSet& set) {
  int64_t next = std::numeric_limits<int64_t>::max();
  for (const rules::PendingChange& pending : set.pending) {
    next = std::min<int64_t>(next, pending.due.time_since_epoch().count());
  }
  set.next_due_ns.store(next, std::memory_order_release);
}

// REQUIRES: nobody decides. On an error all limiters are as they were.
Result<void> MakeChanges(BoundSet& set, std::span<const Change> changes, rules::Registry& registry,
                         WallTime wall) {
  std::vector<std::pair<Limiter*, Quota>> done;
  for (const Change& change : changes) {
    Limiter& limiter = *set.slots[change.slot].limiter;
    const Quota before = limiter.quota();
    if (change.when == ApplyWhen::kNextWindow) {
      Postpone(set, registry, change, rules::NextWindow(before, wall));
      continue;
    }
    const auto updated = limiter.Update(change.target->quota);
    if (updated) {
      done.emplace_back(&limiter, before);
    } else if (updated.error().code == ErrorCode::kUnavailable) {
      Postpone(set, registry, change, wall + kTryAgain);
    } else {
      for (auto& [changed, quota] : done) {
        // Cannot be refused for what it is: it was this a moment ago.
        (void)changed->Update(quota);
      }
      return updated.error();
    }
  }
  NoteNextDue(set);
  return {};
}

}  // namespace

Result<std::unique_ptr<RuleLimiter>> RuleLimiter::Create(std::shared_ptr<const RuleSet> rules,
                                                         std::shared_ptr<MemoryStore> store,
                                                         const RuleLimiterOptions& options) {
  if (store == nullptr) {
    return Error::Invalid("store: none given; make one with MemoryStore::Create");
  }
  if (options.ipv6_prefix_bits < 1 || options.ipv6_prefix_bits > 128) {
    return Error::Invalid("ipv6_prefix_bits: " + std::to_string(options.ipv6_prefix_bits) +
                          " is not allowed; expected 1 to 128");
  }
  std::unique_ptr<RuleLimiter> limiter(
      new RuleLimiter(std::make_unique<State>(std::move(store), options)));
  if (auto applied = limiter->Apply(std::move(rules)); !applied) {
    return applied.error();
  }
  return limiter;
}

RuleLimiter::RuleLimiter(std::unique_ptr<State> state) : state_(std::move(state)) {}
RuleLimiter::~RuleLimiter() = default;

Result<void> RuleLimiter::Apply(std::shared_ptr<const RuleSet> rules) {
  if (rules == nullptr) {
    return Error::Invalid("rules: none given; see the issues of RuleParse");
  }
  if (state_->gate.IsInside()) {
    return Error::Invalid("the calling thread holds a pin, for which Apply would wait for ever");
  }
  const base::MutexLock lock(state_->mutex);
  auto binding = rules::Bind(std::move(rules), state_->registry);
  if (!binding) {
    return binding.error();
  }
  Result<void> changed;
  std::shared_ptr<BoundSet> other = std::move(binding->set);
  rules::Registry* const registry = &state_->registry;  // a lambda is not told of the mutex
  state_->gate.Exclusively([&] {
    changed = MakeChanges(*other, binding->changes, *registry, state_->clock.WallNow());
    if (changed) {
      std::swap(state_->current, other);
    }
  });
  return changed;  // what was current is freed here, with the gate open again
}

void RuleLimiter::State::MakeDueChangesLocked(BoundSet& set, WallTime wall) {
  auto kept = set.pending.begin();
  for (rules::PendingChange& pending : set.pending) {
    if (wall >= pending.due) {
      BoundSlot& slot = set.slots[pending.slot];
      const auto shared = registry.Share(*slot.limiter, pending.target->quota);
      if (shared && slot.limiter->Update(pending.target->quota)) {
        slot.quota.store(pending.target, std::memory_order_release);
        slot.shared.store(*shared, std::memory_order_release);
        continue;
      }
      pending.due = wall + kTryAgain;
    }
    *kept++ = pending;
  }
  set.pending.erase(kept, set.pending.end());
  NoteNextDue(set);
}

void RuleLimiter::State::MakeDueChanges(BoundSet& set, WallTime wall) noexcept {
  if (mutex.TryLock()) {
    MakeDueChangesLocked(set, wall);
    mutex.Unlock();
  }
}

RuleLimiter::Pin RuleLimiter::pin() noexcept {
  const void* const outer = state_->gate.Enter();
  if (state_->options.shared == nullptr) [[likely]] {
    return {this, outer, state_->current.get()};
  }
  Pin lasting(state_->current);
  state_->gate.Leave(outer);
  return lasting;
}

RuleLimiter::Pin::Pin(Pin&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)),
      outer_(other.outer_),
      set_(other.set_),
      kept_(std::move(other.kept_)) {}

RuleLimiter::Pin::~Pin() {
  if (owner_ != nullptr) {
    owner_->state_->gate.Leave(outer_);
  }
}

const RuleSet& RuleLimiter::Pin::rules() const noexcept {
  return *set_->rules;
}

std::shared_ptr<const RuleSet> RuleLimiter::Pin::share() const noexcept {
  return set_->rules;
}

std::shared_ptr<const RuleSet> RuleLimiter::rules() const {
  const base::MutexLock lock(state_->mutex);
  return state_->current->rules;
}

std::vector<RuleReset> RuleLimiter::Reset(std::span<const Attribute> attributes,
                                          std::string_view rule, std::optional<Timestamp> now) {
  const auto reply = std::make_unique<RuleReply>();
  const Pin held = pin();
  // Looked at for free, so that it tells of every quota, whatever is left of it.
  Check(held, {.attributes = attributes, .cost = 0, .mode = ChargeMode::kDryRun, .now = now},
        *reply);
  std::vector<RuleReset> done;
  for (const RulePart& part : reply->parts()) {
    if (rule.empty() || part.rule->name == rule) {
      done.push_back({.rule = part.rule->name,
                      .quota = part.quota->text,
                      .outcome = part.shared != nullptr
                                     ? state_->options.shared->Reset(*part.shared, part.key)
                                     : part.limiter->Reset(part.key, now)});
    }
  }
  return done;
}

std::vector<RuleCounts> RuleLimiter::Counts() const {
  const base::MutexLock lock(state_->mutex);
  const BoundSet& set = *state_->current;
  std::vector<RuleCounts> all;
  for (size_t i = 0; i < set.counters.size(); ++i) {
    const rules::RuleTotals total = set.counters[i]->Sum();
    all.push_back({.rule = set.compiled->views[i].name,
                   .allowed = total.allowed,
                   .denied = total.denied,
                   .refused = total.refused,
                   .shadow_denied = total.shadow_denied,
                   .by_basis = total.by_basis,
                   .meets_fresh_keys = set.counters[i]->JudgeFreshness(total)});
  }
  return all;
}

std::vector<TopKey> RuleLimiter::TopKeys(std::string_view rule, size_t most) const {
  const base::MutexLock lock(state_->mutex);
  const BoundSet& set = *state_->current;
  std::vector<TopKey> keys;
  for (const rules::CompiledRule& compiled : set.compiled->rules) {
    const RuleView& view = *compiled.view;
    for (size_t v = 0; view.name == rule && !view.disabled && v < view.variants.size(); ++v) {
      // A key meets all quotas of its variant, so the first has seen what all have.
      if (!view.variants[v].quotas.empty()) {
        for (TopKey& key : set.slots[compiled.first_slot[v]].limiter->TopKeys(most)) {
          key.hidden = view.secret_keys;
          key.key = key.hidden ? rules::Hidden(key.key) : std::move(key.key);
          keys.push_back(std::move(key));
        }
      }
    }
  }
  std::sort(keys.begin(), keys.end(),
            [](const TopKey& a, const TopKey& b) { return a.count > b.count; });
  keys.resize(std::min(keys.size(), most));
  return keys;
}

}  // namespace weir
