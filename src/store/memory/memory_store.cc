#include <string>

#include "weir/store.h"

#include "store/memory/shared_state.h"

namespace weir {

namespace {

std::string Text(Duration duration) {
  return std::to_string(duration.count()) + " ns";
}

Result<void> Validate(const MemoryOptions& options) {
  if (options.budget_bytes < MemoryStore::kMinBudgetBytes) {
    return Error::Invalid("budget_bytes: " + std::to_string(options.budget_bytes) +
                          " is too small; the least is " +
                          std::to_string(MemoryStore::kMinBudgetBytes));
  }
  if (options.wide_percent < -1 || options.wide_percent > 100) {
    return Error::Invalid("wide_percent: " + std::to_string(options.wide_percent) +
                          " is not allowed; choose 0 to 100, or -1 for half");
  }
  if (options.record_percent < -1 || options.record_percent > 100) {
    return Error::Invalid("record_percent: " + std::to_string(options.record_percent) +
                          " is not allowed; choose 0 to 100, or -1 for none");
  }
  if (options.sketch_percent < -1 || options.sketch_percent > 50 ||
      (options.sketch_percent == 0 && options.overflow == OverflowPolicy::kSketch)) {
    return Error::Invalid("sketch_percent: " + std::to_string(options.sketch_percent) +
                          " is not allowed; choose 1 to 50, -1 for a 32nd of the budget, or 0 with "
                          "another overflow policy than the sketch");
  }
  if (options.max_skew < store::TableClock::kMinSkew ||
      options.max_skew > store::TableClock::kMaxSkew) {
    return Error::Invalid("max_skew: " + Text(options.max_skew) + " is not allowed; choose from " +
                          Text(store::TableClock::kMinSkew) + " to " +
                          Text(store::TableClock::kMaxSkew));
  }
  if (!store::HasSimd(options.simd)) {
    return Error::Invalid(
        "simd: this processor (or build) lacks the instructions asked for; choose kAuto");
  }
  return {};
}

}  // namespace

MemoryStore::MemoryStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
MemoryStore::~MemoryStore() = default;

Result<std::shared_ptr<MemoryStore>> MemoryStore::Create(const MemoryOptions& options) {
  if (auto valid = Validate(options); !valid) {
    return valid.error();
  }
  auto state = std::make_unique<State>(options);
  const auto granted = [](const auto& part) { return part == nullptr || part->ok(); };
  if (!granted(state->tables[0]) || !granted(state->tables[1]) || !granted(state->records) ||
      !granted(state->sketch)) {
    return Error{ErrorCode::kOverloaded, "budget_bytes: the system did not grant " +
                                             std::to_string(options.budget_bytes) +
                                             " bytes of memory"};
  }
  return std::shared_ptr<MemoryStore>(new MemoryStore(std::move(state)));
}

StoreStats MemoryStore::Stats() const {
  const store::Counters& counters = state_->counters;
  using Cell = store::CounterCell;
  StoreStats stats;
  stats.denials = counters.Sum(&Cell::denials);
  stats.decisions = counters.Sum(&Cell::allowed) + stats.denials;
  stats.refusals = counters.Sum(&Cell::refusals);
  stats.overflow = counters.Sum(&Cell::overflow);
  stats.reclaims = counters.Sum(&Cell::reclaims);
  stats.lost_races = counters.Sum(&Cell::lost_races);
  stats.promotions = counters.Sum(&Cell::promotions);
  stats.leases = counters.Sum(&Cell::leases);
  stats.leases_returned = state_->leases.returned.load(std::memory_order_relaxed);
  stats.lease_units_returned = state_->leases.units_returned.load(std::memory_order_relaxed);
  for (const auto& table : state_->tables) {
    if (table != nullptr) {
      stats.slots += table->slot_count();
      stats.live_slots += store::CountLive(*state_, *table);
      stats.huge_pages = stats.huge_pages || table->huge();
    }
  }
  if (state_->records != nullptr) {
    stats.records = state_->records->count();
    stats.huge_pages = stats.huge_pages || state_->records->huge();
  }
  stats.budget_bytes = state_->options.budget_bytes;
  stats.simd = state_->simd;
  return stats;
}

void MemoryStore::Maintain() {
  state_->housekeeping.Refresh(store::Housekeeping::Wait::kForOthers);
}

}  // namespace weir
