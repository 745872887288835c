#include "store/memory/housekeeping.h"

#include <algorithm>
#include <type_traits>

#include "algorithm/fixed_window.h"
#include "algorithm/gcra.h"
#include "algorithm/min_gap.h"
#include "algorithm/sliding_window.h"
#include "store/memory/generations.h"
#include "store/memory/shared_state.h"

namespace weir::store {

namespace {

using algorithm::CompactTicks;
using algorithm::Moment;
using algorithm::Plan;
using algorithm::WideTicks;

using CompactBucket = algorithm::Gcra<CompactTicks>;

// A pass goes at least this fast on tables so small that it costs nothing, and on large ones takes
// about this many lines, some ten microseconds, at each refresh of the clock.
constexpr uint64_t kLinesPerStep = 256;
constexpr uint64_t kStepNs = 250'000'000;
// A live state may be looked at with clocks that differ by the skew on both sides.
constexpr uint64_t kHorizonMinNs = 10'000'000'000;
// Passes this many times as often as a state's clock wraps leave a factor of four to spare.
constexpr uint64_t kPassesPerWrap = 8;
constexpr uint64_t kCountedLinesMax = uint64_t{64} << 10;

// Calls `visit` with the policy of a wide plan's algorithm.
template <class Visitor>
auto VisitWide(const Plan& plan, Visitor&& visit) {
  switch (plan.algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      return visit(algorithm::Gcra<WideTicks>{});
    case Algorithm::kMinGap:
      return visit(algorithm::MinGap<WideTicks>{});
    case Algorithm::kSlidingWindow:
      return visit(algorithm::SlidingWindow{});
    case Algorithm::kFixedWindow:
      if (plan.start == WindowStart::kFirstHit) {
        return visit(algorithm::FirstHitWindow{});
      }
      break;
    case Algorithm::kCalendar:
    case Algorithm::kSlidingLog:  // never in a slot
    case Algorithm::kSlicedWindow:
    case Algorithm::kConcurrency:
      break;
  }
  return visit(algorithm::FixedWindow{});
}

// An instant at which whatever is open at the floor was not.
template <class Policy>
typename Policy::Now Past(const Plan& plan, typename Policy::Now floor) noexcept {
  if (WEIR_MUTANT(kEmptyIsExpired)) {
    return floor;
  }
  if constexpr (std::is_same_v<Policy, algorithm::FirstHitWindow>) {
    floor.tick -= plan.window_ticks;
  } else if constexpr (Policy::kUsesWindows) {
    floor.id -= 2;
  }
  return floor;
}

// Whether a state that was in range of its clock at `from_ns` has expired at `to_ns`. Its clock may
// have wrapped in between, so the way there is gone in steps that are short against a wrap; within
// half a wrap every state expires.
template <class ExpiredAt>
bool ExpiresOnTheWay(uint64_t from_ns, uint64_t to_ns, uint64_t wrap_ns,
                     ExpiredAt&& expired) noexcept {
  const uint64_t step_ns = std::max<uint64_t>(1, wrap_ns / kPassesPerWrap);
  for (uint64_t at_ns = from_ns; to_ns - at_ns > step_ns; at_ns += step_ns) {
    if (expired(at_ns)) {
      return true;
    }
  }
  return expired(to_ns);
}

void SweepCompact(Line& line, uint64_t from_ns, uint64_t floor_ns) noexcept {
  const Plan unused;
  constexpr uint64_t kWrapNs = CompactTicks::kTickNs << CompactTicks::kPayloadBits;
  for (unsigned slot = 0; slot < CompactLayout::kSlots; ++slot) {
    Snapshot snapshot = CompactLayout::Read(line, slot);
    const uint64_t payload = CompactLayout::Payload(snapshot.value);
    if (CompactLayout::IdentityAt(line, slot, snapshot) != 0 &&
        ExpiresOnTheWay(from_ns, floor_ns, kWrapNs, [&](uint64_t at_ns) {
          return CompactBucket::Expired(unused, payload, CompactBucket::At(unused, {.ns = at_ns}));
        })) {
      // Losing against a charge is fine: the slot is live again and in the present.
      CompactLayout::Commit(
          snapshot, CompactLayout::Generation(snapshot.value),
          CompactBucket::Stale(unused, CompactBucket::At(unused, {.ns = floor_ns})));
    }
  }
}

// The windows of other keys may be shifted by an unknown phase; seen without it they end no
// earlier, so what has expired here has expired for them.
void SweepWide(const SharedState& state, Line& line, uint64_t from_ns, uint64_t floor_ns) noexcept {
  for (unsigned slot = 0; slot < WideLayout::kSlots; ++slot) {
    Snapshot snapshot = WideLayout::Read(line, slot);
    const uint64_t identity = WideLayout::IdentityAt(line, slot, snapshot);
    const Binding* const binding =
        identity != 0 ? state.BindingOf(WideLayout::QuotaOf(identity)) : nullptr;
    if (binding == nullptr) {
      continue;
    }
    const Plan& plan = binding->PlanOf(WideLayout::Generation(snapshot.value));
    VisitWide(plan, [&](auto policy) {
      using Policy = decltype(policy);
      if (ExpiresOnTheWay(from_ns, floor_ns, plan.wrap_ns, [&](uint64_t at_ns) {
            return Reclaimable<Policy>(plan, WideLayout::Payload(snapshot.value),
                                       Policy::At(plan, binding->MomentAt(at_ns, 0)));
          })) {
        // Under the current plan, so that states of a generation die out with it.
        const Plan& current = binding->plan();
        const auto floor = Policy::At(current, binding->MomentAt(floor_ns, 0));
        WideLayout::Commit(snapshot, current.generation,
                           Policy::Stale(current, Past<Policy>(current, floor)));
      }
    });
  }
}

// Brings the states of one generation of a binding to its current one.
void ConvertWide(const Binding& binding, unsigned generation, Line& line,
                 uint64_t floor_ns) noexcept {
  const Plan& current = binding.plan();
  const Moment moment = binding.MomentAt(floor_ns, 0);
  for (unsigned slot = 0; slot < WideLayout::kSlots; ++slot) {
    Snapshot snapshot = WideLayout::Read(line, slot);
    while (WideLayout::QuotaOf(WideLayout::IdentityAt(line, slot, snapshot)) == binding.id &&
           WideLayout::Generation(snapshot.value) == generation) {
      const uint64_t payload = WideLayout::Payload(snapshot.value);
      const bool done = VisitWide(current, [&](auto policy) {
        using Policy = decltype(policy);
        const Plan& from = binding.PlanOf(generation);
        return WideLayout::Commit(
            snapshot, current.generation,
            Reclaimable<Policy>(from, payload, Policy::At(from, moment))
                ? Policy::Stale(current, Past<Policy>(current, Policy::At(current, moment)))
                : BringForward<Policy>(binding, current, generation, payload, moment));
      });
      if (done) {
        break;
      }
    }
  }
}

template <class Layout>
void ClearOldEpoch(const Table& table, Line& line) noexcept {
  // Relaxed: a glance, so that lines without the mark are not written. Then a read-modify-write, so
  // that no change of what shares the word is lost; acq_rel, as all changes of such words.
  std::atomic<uint64_t>& word = Layout::EpochWord(line, 1 - table.epoch());
  if ((word.load(std::memory_order_relaxed) & kAuxBit) != 0) {
    word.fetch_and(~kAuxBit, std::memory_order_acq_rel);
    WEIR_TEST_POINT(kCleared);
  }
}

}  // namespace

bool WideExpired(const SharedState& state, uint64_t identity, uint64_t value,
                 uint64_t floor_ns) noexcept {
  const Binding* const binding = state.BindingOf(WideLayout::QuotaOf(identity));
  if (binding == nullptr) {
    return false;
  }
  const Plan& plan = binding->PlanOf(WideLayout::Generation(value));
  return VisitWide(plan, [&](auto policy) {
    using Policy = decltype(policy);
    return Reclaimable<Policy>(plan, WideLayout::Payload(value),
                               Policy::At(plan, binding->MomentAt(floor_ns, 0)));
  });
}

uint64_t CountLive(const SharedState& state, const Table& table) noexcept {
  const Plan unused;
  const uint64_t floor_ns = state.clock.floor_ns();
  const uint64_t stride = table.line_count() / kCountedLinesMax + 1;
  uint64_t live = 0;
  uint64_t looked_at = 0;
  for (uint64_t i = 0; i < table.line_count(); i += stride) {
    ++looked_at;
    Line& line = table.line(i);
    if (table.kind() == algorithm::SlotKind::kCompact) {
      const CompactBucket::Now floor = CompactBucket::At(unused, {.ns = floor_ns});
      for (unsigned slot = 0; slot < CompactLayout::kSlots; ++slot) {
        const Snapshot snapshot = CompactLayout::Read(line, slot);
        live += static_cast<uint64_t>(
            CompactLayout::IdentityAt(line, slot, snapshot) != 0 &&
            !CompactBucket::Expired(unused, CompactLayout::Payload(snapshot.value), floor));
      }
    } else {
      for (unsigned slot = 0; slot < WideLayout::kSlots; ++slot) {
        const Snapshot snapshot = WideLayout::Read(line, slot);
        const uint64_t identity = WideLayout::IdentityAt(line, slot, snapshot);
        live += static_cast<uint64_t>(identity != 0 &&
                                      !WideExpired(state, identity, snapshot.value, floor_ns));
      }
    }
  }
  return base::MulDivFloor(live, table.line_count(), std::max<uint64_t>(looked_at, 1));
}

void Housekeeping::AddTable(Table* table) noexcept {
  const base::MutexLock lock(mutex_);
  if (table != nullptr) {
    sweeps_[sweep_count_++] = Sweep{.table = table, .epoch_began_ns = last_ns_};
  }
}

void Housekeeping::AddQuota(uint64_t horizon_ns, uint64_t wrap_ns) noexcept {
  const base::MutexLock lock(mutex_);
  horizon_ns_ = std::max(horizon_ns_, horizon_ns);
  wrap_ns_ = std::min(wrap_ns_, wrap_ns);
}

void Housekeeping::Retire(const Binding& binding, unsigned generation) noexcept {
  if (binding.table->kind() == algorithm::SlotKind::kCompact) {
    return;  // an instant in microseconds, whatever the plan
  }
  const base::MutexLock lock(mutex_);
  const uint64_t floor_ns = state_.clock.floor_ns();
  const Table& table = *binding.table;
  for (uint64_t i = 0; i < table.line_count(); ++i) {
    ConvertWide(binding, generation, table.line(i), floor_ns);
  }
}

void Housekeeping::Start(uint64_t now_ns) noexcept {
  const base::MutexLock lock(mutex_);
  last_ns_ = now_ns;
  ReadWall(now_ns);
  // Relaxed: this thread has just stored it.
  first_wall_offset_ns_ = wall_offset_ns_.load(std::memory_order_relaxed);
}

void Housekeeping::ReadWall(uint64_t now_ns) noexcept {
  const int64_t wall_ns = state_.clock.source().WallNow().time_since_epoch().count();
  // Relaxed: the offset stands alone; nothing else is published with it.
  wall_offset_ns_.store(wall_ns - static_cast<int64_t>(now_ns), std::memory_order_relaxed);
}

bool Housekeeping::Refresh(Wait wait) noexcept {
  if (wait == Wait::kSkipIfBusy) {
    if (!mutex_.TryLock()) {
      return false;
    }
  } else {
    mutex_.Lock();
  }
  const uint64_t source_ns = state_.clock.ReadSource();
  // Compared as a signed distance, since a large step back makes the unsigned reading wrap.
  const auto step = static_cast<int64_t>(source_ns - last_ns_);
  if (step < 0) {
    state_.clock.Rebase(static_cast<uint64_t>(-step));
  }
  const uint64_t now_ns = step > 0 ? source_ns : last_ns_;
  ReadWall(now_ns);
  for (unsigned i = 0; i < sweep_count_; ++i) {
    Work(sweeps_[i], now_ns, now_ns - last_ns_);
  }
  if (state_.sketch != nullptr) {
    state_.sketch->Sweep(now_ns, now_ns - state_.clock.max_skew_ns());
  }
  last_ns_ = now_ns;
  const bool leases_out = state_.leases.marks.Rest();
  state_.clock.Publish(now_ns);
  mutex_.Unlock();
  if (leases_out) {
    LeaseOffice::ReturnIdle(state_);
  }
  return true;
}

uint64_t Housekeeping::PassPeriodNs(const Table& table) const {
  const uint64_t gentle = (table.line_count() / kLinesPerStep + 1) * kStepNs;
  return std::max<uint64_t>(1, std::min(gentle, wrap_ns_ / kPassesPerWrap));
}

void Housekeeping::Work(Sweep& sweep, uint64_t now_ns, uint64_t elapsed_ns) {
  Table& table = *sweep.table;
  const uint64_t skew_ns = state_.clock.max_skew_ns();
  const uint64_t from_ns = last_ns_ - skew_ns;
  const uint64_t floor_ns = now_ns - skew_ns;
  const uint64_t lines = table.line_count();
  const uint64_t due = std::min(base::MulDivCeil(lines, elapsed_ns, PassPeriodNs(table)), lines);
  // A stamp of the epoch before may lie two skews after its end, and what it wrote must have
  // expired at the floor, one skew before the reading. Compared with the reading that is published
  // already: whoever misses a key behind a cleared bit sees a floor at which the key had expired.
  const uint64_t keep_ns = std::max(horizon_ns_, kHorizonMinNs) + 4 * skew_ns;
  const uint64_t published_ns = WEIR_MUTANT(kClearUnpublished) ? now_ns : last_ns_;
  for (uint64_t i = 0; i < due; ++i) {
    if (sweep.cursor == 0) {
      sweep.clearing = published_ns >= sweep.epoch_began_ns + keep_ns;
    }
    Line& line = table.line(sweep.cursor);
    if (table.kind() == algorithm::SlotKind::kCompact) {
      SweepCompact(line, from_ns, floor_ns);
      if (sweep.clearing) {
        ClearOldEpoch<CompactLayout>(table, line);
      }
    } else {
      SweepWide(state_, line, from_ns, floor_ns);
      if (sweep.clearing) {
        ClearOldEpoch<WideLayout>(table, line);
      }
    }
    if (++sweep.cursor == lines) {
      sweep.cursor = 0;
      if (sweep.clearing) {
        table.FlipEpoch();
        sweep.epoch_began_ns = now_ns;
      }
    }
  }
}

}  // namespace weir::store
