#include "rules/bound_set.h"

#include <utility>

#include "algorithm/calendar.h"
#include "base/key_hash.h"
#include "base/spelling.h"
#include "base/time_zone.h"
#include "rules/rule_set_state.h"

namespace weir::rules {

namespace {

// Which quota of which rule this is. The gap of min-gap, always the last, keeps its own whatever
// becomes of the list before it.
std::string IdentityOf(const RuleView& view, const RuleVariant& variant, size_t place,
                       Precision precision) {
  const bool is_gap = place + 1 == variant.quotas.size() &&
                      variant.quotas[place].quota.algorithm() == Algorithm::kMinGap;
  return view.name + '\n' + (variant.is_override ? "=" : "") + variant.tier + '\n' +
         (is_gap ? "gap" : std::to_string(place)) +
         (precision == Precision::kSketch ? "\nsketch" : "");
}

Error Failed(const RuleView& view, const RuleQuota& quota, const Error& why) {
  return {why.code, "rule " + base::Quoted(view.name) + ": " + quota.text + ": " + why.message};
}

bool IsHeld(const Quota& quota) {
  return quota.algorithm() == Algorithm::kConcurrency;
}

}  // namespace

Result<Limiter*> Registry::Find(const std::string& identity, const Quota& quota,
                                Precision precision) {
  std::unique_ptr<Limiter>& limiter = limiters_[identity];
  // What is held is not what was charged, so the one cannot become the other.
  if (limiter != nullptr && IsHeld(limiter->quota()) != IsHeld(quota)) {
    replaced_.push_back(std::move(limiter));
  }
  if (limiter == nullptr) {
    auto made = Limiter::Create(quota, store_, {.precision = precision, .top_keys = top_keys_});
    if (!made) {
      return made.error();
    }
    limiter = std::make_unique<Limiter>(*std::move(made));
    // Alike in every process that has the same rule: none of their keys is in it.
    scopes_[limiter.get()] = base::HashKeySeeded(identity, 0);
  }
  return limiter.get();
}

Result<const SharedQuota*> Registry::Share(const Limiter& limiter, const Quota& quota) {
  if (shared_ == nullptr) {
    return nullptr;
  }
  return shared_->Bind(quota, scopes_.at(&limiter));
}

RuleCounters& Registry::Counters(std::string_view rule) {
  std::unique_ptr<RuleCounters>& counters = counters_[std::string(rule)];
  if (counters == nullptr) {
    counters = std::make_unique<RuleCounters>();
  }
  return *counters;
}

Result<Binding> Bind(std::shared_ptr<const RuleSet> rules, Registry& registry) {
  Binding binding{.set = std::make_unique<BoundSet>(), .changes = {}};
  BoundSet& set = *binding.set;
  set.rules = std::move(rules);
  set.compiled = set.rules->state().compiled.get();
  set.slots = std::make_unique<BoundSlot[]>(set.compiled->slot_count);
  set.needs_wall = set.compiled->has_deadlines;
  for (const CompiledRule& rule : set.compiled->rules) {
    const RuleView& view = *rule.view;
    set.counters.push_back(&registry.Counters(view.name));
    for (size_t v = 0; !view.disabled && v < view.variants.size(); ++v) {
      const RuleVariant& variant = view.variants[v];
      for (size_t i = 0; i < variant.quotas.size(); ++i) {
        const RuleQuota& quota = variant.quotas[i];
        const Precision precision = rule.model->precision;
        auto limiter =
            registry.Find(IdentityOf(view, variant, i, precision), quota.quota, precision);
        if (!limiter) {
          return Failed(view, quota, limiter.error());
        }
        const auto shared = registry.Share(**limiter, quota.quota);
        if (!shared) {
          return Failed(view, quota, shared.error());
        }
        const auto slot = static_cast<uint32_t>(rule.first_slot[v] + i);
        set.slots[slot].limiter = *limiter;
        set.slots[slot].quota.store(&quota, std::memory_order_relaxed);
        set.slots[slot].shared.store(*shared, std::memory_order_relaxed);
        if (!((*limiter)->quota() == quota.quota)) {
          binding.changes.push_back({slot, &quota, view.apply, precision});
        }
      }
    }
  }
  return binding;
}

WallTime NextWindow(const Quota& quota, WallTime wall) {
  if (quota.algorithm() == Algorithm::kCalendar) {
    const auto zone = base::TimeZone::Load(quota.time_zone());
    if (zone) {
      const int64_t wall_ns = wall.time_since_epoch().count();
      return WallTime(Duration(algorithm::PeriodAt(quota.period(), **zone, wall_ns).end_ns));
    }
    return wall;  // the zone has gone since the quota was made: nothing to wait for
  }
  const int64_t window_ns = quota.window().count();
  const int64_t into_ns = wall.time_since_epoch().count() % window_ns;
  return wall + Duration(window_ns - into_ns);
}

}  // namespace weir::rules
