#include "store/memory/shared_state.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "base/asymmetric_fence.h"
#include "store/memory/record_engine.h"
#include "store/memory/sketch_engine.h"
#include "store/memory/watch.h"

namespace weir::store {

namespace {

using algorithm::Plan;
using algorithm::SlotKind;

constexpr size_t kSketchShare = 32;  // of the budget, unless the options say how much

// A power of two, as parts are cut in halves; the rest stays with the slots and records.
size_t SketchBytes(const MemoryOptions& options) {
  if (options.sketch_percent == 0 ||
      (options.sketch_percent < 0 && options.overflow != OverflowPolicy::kSketch)) {
    return 0;
  }
  const size_t share = options.sketch_percent < 0 ? options.budget_bytes / kSketchShare
                                                  : options.budget_bytes / 100 *
                                                        static_cast<size_t>(options.sketch_percent);
  return std::max(std::bit_floor(share), Sketch::kMinBytes);
}

size_t Index(SlotKind kind) {
  return static_cast<size_t>(kind);
}

// What turns store time into the time that windows are cut from, given the Unix time at which store
// time would have been 0: in the first minutes of 1970, where devices without a battery wake up,
// and before it, that is negative. Ids must only grow, and a sliced window looks back by one
// window, so whole windows are added or left out until no stamp lies in the first. Fences have to
// grow over a restart as well: all of them count from the same instant.
uint64_t EpochOffset(const Plan& plan, int64_t unix_at_zero_ns) {
  if (plan.algorithm == Algorithm::kConcurrency) {
    constexpr auto kStart = static_cast<int64_t>(TableClock::kStartNs);
    return static_cast<uint64_t>(std::max<int64_t>(unix_at_zero_ns + kStart, 0));
  }
  if (plan.window_ns == 0) {
    return 0;
  }
  const auto window = static_cast<int64_t>(plan.window_ns);
  const int64_t into_window = unix_at_zero_ns % window;
  return static_cast<uint64_t>(into_window < 0 ? into_window + 2 * window : into_window + window);
}

}  // namespace

SharedState::SharedState(const MemoryOptions& chosen)
    : options(chosen),
      secret(base::ProcessSecret()),
      simd(chosen.simd == Simd::kAuto ? BestSimd() : chosen.simd),
      clock(chosen.clock != nullptr ? *chosen.clock : SystemClock(), chosen.max_skew),
      housekeeping(*this),
      next_reservation(base::HashKey("reservations", secret) ^
                       base::SaltFor(reinterpret_cast<uintptr_t>(this))) {
  housekeeping.Start(TableClock::kStartNs);
  if (options.hot_keys) {
    base::AsymmetricFence::Prepare();
    leases.enabled = true;
  }
  const auto pages =
      options.huge_pages ? base::MappedMemory::Pages::kHuge : base::MappedMemory::Pages::kDefault;
  const auto record_percent = static_cast<size_t>(std::max(options.record_percent, 0));
  const size_t sketch_bytes = SketchBytes(options);
  if (sketch_bytes != 0) {
    sketch = std::make_unique<Sketch>(sketch_bytes, pages);
  }
  const size_t exact_bytes = options.budget_bytes - sketch_bytes;
  const size_t record_bytes =
      record_percent == 100 ? exact_bytes : exact_bytes / 100 * record_percent;
  if (record_bytes != 0) {
    records = std::make_unique<Records>(record_bytes, pages);
  }
  const size_t slot_bytes = exact_bytes - record_bytes;
  const auto percent = static_cast<size_t>(options.wide_percent < 0 ? 50 : options.wide_percent);
  const size_t wide_bytes = slot_bytes / 100 * percent;
  const size_t bytes_of[] = {slot_bytes - wide_bytes, wide_bytes};
  for (const SlotKind kind : {SlotKind::kCompact, SlotKind::kWide}) {
    const size_t bytes = bytes_of[Index(kind)];
    if (bytes < MemoryStore::kMinBudgetBytes / 4) {
      continue;
    }
    tables[Index(kind)] = std::make_unique<Table>(kind, bytes, pages);
    housekeeping.AddTable(tables[Index(kind)].get());
  }
}

SharedState::~SharedState() {
  if (leases.enabled) {
    LeaseOffice::Close(*this);
  }
}

Result<Binding*> SharedState::Bind(const Quota& quota, const BindOptions& own) {
  const bool compact =
      !own.wide && algorithm::FitsCompact(quota) && tables[Index(SlotKind::kCompact)] != nullptr;
  const SlotKind kind = algorithm::NeedsRecord(quota) ? SlotKind::kRecord
                        : compact                     ? SlotKind::kCompact
                                                      : SlotKind::kWide;
  if (kind == SlotKind::kRecord && records == nullptr) {
    return Error::Invalid("record_percent: " + std::to_string(options.record_percent) +
                          " leaves no memory for records, which " + quota.ToString() +
                          " needs; give it at least 1, or make the limiter without a store");
  }
  if (kind != SlotKind::kRecord && tables[Index(kind)] == nullptr) {
    return Error::Invalid("wide_percent: " + std::to_string(options.wide_percent) +
                          " leaves no memory for 16-byte slots, which " + quota.ToString() +
                          " needs; give it at least 1, or more budget_bytes");
  }
  Result<Plan> plan = algorithm::Compile(quota, kind);
  if (!plan) {
    return plan.error();
  }
  if (own.sketch_first && sketch == nullptr) {
    return Error::Invalid(
        "precision: the store has no sketch; give it a sketch_percent of at least 1");
  }
  if (own.sketch_first && !CanLeaveSketch(*plan)) {
    return Error::Invalid("precision: " + quota.ToString() +
                          " cannot begin in the sketch; allowed are buckets, gaps, calendar quotas "
                          "and windows that do not begin at the first hit");
  }
  std::unique_ptr<CalendarCache> calendar;
  if (quota.algorithm() == Algorithm::kCalendar) {
    auto zone = base::TimeZone::Load(quota.time_zone());
    if (!zone) {
      return zone.error();
    }
    calendar = std::make_unique<CalendarCache>(quota.period(), *std::move(zone),
                                               housekeeping.wall_offset_ns());
  }
  const base::MutexLock lock(update_mutex);
  if (binding_count == kBindingsMax) {
    return Error{ErrorCode::kOverloaded, "quota: a store holds at most " +
                                             std::to_string(kBindingsMax - 1) +
                                             " quotas over its life; make another store"};
  }
  const uint32_t id = binding_count++;
  // Acquire says more than is needed: only holders of the mutex store here.
  Chunk* chunk = chunks[id / kChunk].load(std::memory_order_acquire);
  if (chunk == nullptr) {
    chunk_owners.push_back(std::make_unique<Chunk>());
    chunk = chunk_owners.back().get();
  }
  auto binding = std::make_unique<Binding>();
  binding->store = this;
  if (kind == SlotKind::kRecord) {
    binding->ops = RecordOpsFor(*plan);
  } else {
    binding->table = tables[Index(kind)].get();
    binding->homes = binding->table->homes();
    binding->ops = OpsFor(*plan, simd);
  }
  binding->id = id;
  binding->sketch_first = own.sketch_first;
  if (own.sketch_first) {
    binding->ops.try_check = binding->ops.try_rest;
    binding->ops.try_check_now = binding->ops.try_rest_now;
    binding->ops.check_many = binding->ops.rest_many;
  }
  if (own.watch != nullptr) {
    Watch::Attach(*binding, own.watch);
  }
  binding->salt = base::SaltFor(id);
  binding->needs_phase = plan->start == WindowStart::kPerKey;
  binding->calendar = std::move(calendar);
  Publish(*binding, *plan);
  Binding* const result = binding.get();
  chunk->bindings[id % kChunk] = std::move(binding);
  // Release: whoever finds the chunk finds this binding complete. Stored again for every binding,
  // since each must be published.
  chunks[id / kChunk].store(chunk, std::memory_order_release);
  return result;
}

void SharedState::Publish(Binding& binding, const Plan& plan) {
  Plan aligned = plan;
  aligned.generation_mark = uint64_t{plan.generation}
                            << (plan.slot == SlotKind::kCompact ? CompactLayout::kPayloadBits
                                                                : WideLayout::kPayloadBits);
  aligned.epoch_offset_ns = EpochOffset(plan, housekeeping.first_wall_offset_ns());
  static std::atomic<uint64_t> last_serial{0};
  // Relaxed: only that no two are the same; the plan that carries it is published below.
  aligned.serial = last_serial.fetch_add(1, std::memory_order_relaxed) + 1;
  if (sketch != nullptr) {
    aligned.sketch = algorithm::PlanSketch(plan, clock.max_skew_ns());
    sketch->AddGroup(aligned.sketch, clock.now_ns());
  }
  plans.push_back(std::make_unique<const Plan>(aligned));
  const Plan& published = *plans.back();
  // Records look after themselves: their stamps do not wrap, and no plan changes what they mean.
  if (published.slot != SlotKind::kRecord) {
    housekeeping.AddQuota(published.horizon_ns, published.wrap_ns);
    if (binding.generations[published.generation].load(std::memory_order_acquire) != nullptr) {
      housekeeping.Retire(binding, published.generation);
    }
  }
  // Release, both: whoever finds the plan by either finds it complete. The generation first, so
  // that a state written under the new plan is never met by somebody who cannot look its plan up.
  binding.generations[published.generation].store(&published, std::memory_order_release);
  binding.current.store(&published, std::memory_order_release);
}

bool SharedState::AdmitSlowly(Timestamp now, uint64_t& now_ns) noexcept {
  if (clock.Tolerates(now_ns) && !housekeeping.Refresh(Housekeeping::Wait::kSkipIfBusy)) {
    return true;
  }
  now_ns = clock.ToStore(now);
  if (!clock.Near(now_ns)) {
    housekeeping.Refresh(Housekeeping::Wait::kForOthers);
    now_ns = clock.ToStore(now);
  }
  return clock.Near(now_ns);
}

uint64_t SharedState::ReadClockSlowly() noexcept {
  const Timestamp now = clock.source().Now();
  uint64_t now_ns = clock.ToStore(now);
  return AdmitSlowly(now, now_ns) ? now_ns : clock.now_ns();
}

}  // namespace weir::store
