#include "shared/key_book.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <new>
#include <string>
#include <utility>

namespace weir::shared {

namespace {

uint32_t Narrow(uint64_t value) noexcept {
  return static_cast<uint32_t>(std::min<uint64_t>(value, std::numeric_limits<uint32_t>::max()));
}

// The debt that an answer shows, as a TAT. Buckets tell it themselves: it is their reset time. A
// window's reset time is when it ends, whatever is in it, so its debt is what is used.
int64_t DebtOf(const LocalPlan& plan, const Decision& decision) noexcept {
  if (!plan.windowed) {
    return decision.reset_after.count();
  }
  const uint64_t used = decision.limit - std::min(decision.remaining, decision.limit);
  return static_cast<int64_t>(
      std::min(base::MulDivCeil(used, plan.window_ns, plan.limit), LocalPlan::kLongest));
}

}  // namespace

Result<std::unique_ptr<KeyBook>> KeyBook::Create(size_t bytes) {
  if (bytes < kMinBytes) {
    return Error::Invalid("memory of keys: " + std::to_string(bytes) +
                          " bytes are not allowed; expected at least " + std::to_string(kMinBytes));
  }
  const size_t sets = std::bit_floor(bytes / (kWays * sizeof(Cell)));
  base::MappedMemory memory(sets * kWays * sizeof(Cell), base::MappedMemory::Pages::kHuge);
  if (memory.data() == nullptr) {
    return Error{ErrorCode::kUnavailable,
                 "memory of keys: the system refuses " + std::to_string(bytes) + " bytes"};
  }
  return std::unique_ptr<KeyBook>(new KeyBook(std::move(memory), sets));
}

// Zeroed memory is cells that were never used.
KeyBook::KeyBook(base::MappedMemory memory, size_t sets)
    : memory_(std::move(memory)),
      sets_(sets),
      cells_(static_cast<Cell*>(memory_.data())),
      tags_(std::make_unique<uint64_t[]>(sets)),
      locks_(std::make_unique<base::SpinLock[]>(kLocks)) {}

KeyBook::Place KeyBook::PlaceOf(const BookKey& key) noexcept {
  const size_t set = key.low & (sets_ - 1);
  return {{cells_ + set * kWays, kWays}, &tags_[set], &locks_[set % kLocks]};
}

// Only cells with the key's tag are looked at: each is a cache line, as a rule a cold one.
KeyBook::Cell* KeyBook::Find(const Place& place, const BookKey& key) noexcept {
  constexpr uint64_t kOnes = 0x0101010101010101U;
  const uint64_t differs = *place.tags ^ (kOnes * TagOf(key));
  // Bytes of zero; above the first of them there may be false alarms.
  for (uint64_t same = (differs - kOnes) & ~differs & (kOnes << 7); same != 0; same &= same - 1) {
    Cell& cell = place.cells[static_cast<size_t>(std::countr_zero(same)) / 8];
    if (cell.key == key) {
      return &cell;
    }
  }
  return nullptr;
}

int64_t KeyBook::TellsUntil(const Cell& cell) noexcept {
  return std::max({cell.reset_ns, cell.tat_ns, cell.retry_ns});
}

KeyBook::Cell& KeyBook::FindOrMake(const Place& place, const BookKey& key,
                                   int64_t now_ns) noexcept {
  if (Cell* const found = Find(place, key)) {
    return *found;
  }
  // Units that are owed outweigh any time.
  const auto worth = [](const Cell& cell) { return std::pair(cell.units != 0, TellsUntil(cell)); };
  Cell* least = place.cells.data();
  for (Cell& cell : place.cells) {
    if (worth(cell) < worth(*least)) {
      least = &cell;
    }
  }
  if (least->units != 0) {
    owing_.fetch_sub(1, std::memory_order_relaxed);
    evicted_owed_.fetch_add(1, std::memory_order_relaxed);
    evicted_.fetch_add(1, std::memory_order_relaxed);
  } else if (TellsUntil(*least) > now_ns) {
    evicted_.fetch_add(1, std::memory_order_relaxed);
  }
  *least = Cell{};
  least->key = key;
  const auto shift = static_cast<unsigned>(8 * (least - place.cells.data()));
  *place.tags = (*place.tags & ~(uint64_t{0xff} << shift)) | TagOf(key) << shift;
  return *least;
}

void KeyBook::NoteReply(const BookKey& key, const BookQuota& quota, const Decision& decision,
                        uint64_t cost, int64_t asked_ns, Denial denial, Word word) noexcept {
  const Place place = PlaceOf(key);
  const base::SpinLockHolder held(*place.lock);
  Cell* found = Find(place, key);
  if (found == nullptr && decision.allowed() && decision.reset_after <= Duration::zero()) {
    return;  // as good as new: there is nothing to remember
  }
  Cell& cell = found != nullptr ? *found : FindOrMake(place, key, asked_ns);
  if (asked_ns < cell.asked_ns) {
    return;  // another loop was told something newer
  }
  const bool changed = cell.quota != quota.number;
  const bool settles = word == Word::kSettling && found != nullptr && cell.asked_ns <= 0;
  cell.quota = quota.number;
  cell.asked_ns = settles ? kReturned : asked_ns;
  cell.reset_ns = asked_ns + decision.reset_after.count();
  cell.remaining = decision.remaining;
  const int64_t tat = asked_ns + DebtOf(quota.plan, decision);
  // With units that the store was not told of yet, its word is not all.
  cell.tat_ns = cell.units == 0 && !settles ? tat : std::max(cell.tat_ns, tat);
  const bool refutes = decision.allowed() && cost >= cell.refused;
  if (changed || refutes || cell.retry_ns <= asked_ns) {
    cell.retry_ns = 0;
    cell.refused = 0;
  }
  if (denial == Denial::kRemember && !decision.allowed() && cost <= Cost::kMax &&
      (cell.retry_ns == 0 || cost <= cell.refused)) {
    cell.retry_ns = asked_ns + decision.retry_after.count();
    cell.refused = Narrow(cost);
  }
}

KeyBook::Settling KeyBook::TakeSettling(const BookKey& key, const BookQuota& quota, uint64_t cost,
                                        int64_t now_ns, Decision& decision) noexcept {
  const LocalPlan& plan = quota.plan;
  const Place place = PlaceOf(key);
  const base::SpinLockHolder held(*place.lock);
  Cell* const cell = Find(place, key);
  if (cell == nullptr || cell->asked_ns > 0 || cell->tat_ns == 0 || cell->quota != quota.number) {
    return Settling::kNot;
  }
  const LocalStep step = TryLocally(plan, {cell->tat_ns}, cost, now_ns);
  if (step.fits) {
    cell->tat_ns = now_ns + step.debt_ns;
    return Settling::kFits;
  }
  decision = Decision();
  decision.basis = Basis::kLocal;
  decision.limit = Narrow(std::max<uint64_t>(plan.burst / plan.nodes, 1));
  decision.remaining = std::min(Narrow(LocalRoom(plan, {cell->tat_ns}, now_ns)), decision.limit);
  decision.reset_after = Duration(std::max<int64_t>(cell->tat_ns - now_ns, 0));
  decision.retry_after = Duration(step.retry_ns);
  return Settling::kDenied;
}

void KeyBook::GiveBackSettling(const BookKey& key, const BookQuota& quota, uint64_t cost) noexcept {
  const Place place = PlaceOf(key);
  const base::SpinLockHolder held(*place.lock);
  Cell* const cell = Find(place, key);
  if (cell != nullptr && cell->asked_ns <= 0 && cell->quota == quota.number) {
    cell->tat_ns -= static_cast<int64_t>(quota.plan.CostNs(cost));
  }
}

bool KeyBook::FindDenial(const BookKey& key, const BookQuota& quota, uint64_t cost, int64_t now_ns,
                         Duration longest, Decision& decision) noexcept {
  const Place place = PlaceOf(key);
  const base::SpinLockHolder held(*place.lock);
  const Cell* const cell = Find(place, key);
  if (cell == nullptr || cell->retry_ns <= now_ns || cell->quota != quota.number ||
      cost < cell->refused || cost > quota.plan.burst ||
      now_ns - cell->asked_ns >= longest.count()) {
    return false;
  }
  int64_t retry = cell->retry_ns - now_ns;
  if (cost > cell->refused && !quota.plan.one_retry) {
    if (!quota.plan.linear) {
      return false;  // it has to wait longer, and nobody here knows how long
    }
    retry += static_cast<int64_t>(
        base::MulDivCeil(cost - cell->refused, quota.plan.window_ns, quota.plan.limit));
  }
  decision = Decision();
  decision.basis = Basis::kCached;
  decision.limit = Narrow(quota.plan.burst);
  decision.remaining = cell->remaining;
  decision.retry_after = Duration(retry);
  decision.reset_after = Duration(std::max<int64_t>(cell->reset_ns - now_ns, 0));
  return true;
}

void KeyBook::ForgetDenial(const BookKey& key) noexcept {
  const Place place = PlaceOf(key);
  const base::SpinLockHolder held(*place.lock);
  if (Cell* const cell = Find(place, key)) {
    cell->retry_ns = 0;
    cell->refused = 0;
  }
}

void KeyBook::Forget(const BookKey& key) noexcept {
  const Place place = PlaceOf(key);
  const base::SpinLockHolder held(*place.lock);
  if (Cell* const cell = Find(place, key)) {
    if (cell->units != 0) {
      owing_.fetch_sub(1, std::memory_order_relaxed);
    }
    *cell = Cell{};
  }
}

uint32_t KeyBook::LastRemaining(const BookKey& key, uint32_t fresh, int64_t now_ns) noexcept {
  const Place place = PlaceOf(key);
  const base::SpinLockHolder held(*place.lock);
  const Cell* const cell = Find(place, key);
  return cell == nullptr || cell->asked_ns <= 0 || cell->reset_ns <= now_ns
             ? fresh
             : std::min(cell->remaining, fresh);
}

bool KeyBook::IsNearLimit(const BookKey& key, uint64_t cost, int64_t now_ns) noexcept {
  const Place place = PlaceOf(key);
  const base::SpinLockHolder held(*place.lock);
  const Cell* const cell = Find(place, key);
  return cell != nullptr && cell->asked_ns > 0 && cell->reset_ns > now_ns &&
         cell->remaining / 2 < cost;
}

void KeyBook::AddUnits(Cell& cell, uint64_t units) noexcept {
  if (units == 0) {
    return;
  }
  if (cell.units == 0) {
    owing_.fetch_add(1, std::memory_order_relaxed);
  }
  cell.units = Narrow(cell.units + units);
}

void KeyBook::Take(const BookKey& key, const BookQuota& quota, uint64_t cost, ChargeMode mode,
                   MayHaveRun known, int64_t now_ns, Decision& decision,
                   LocalReceipt* receipt) noexcept {
  const LocalPlan& plan = quota.plan;
  const Place place = PlaceOf(key);
  const base::SpinLockHolder held(*place.lock);
  const bool writes = mode != ChargeMode::kDryRun && cost != 0;
  Cell looked_at;
  if (const Cell* const found = writes ? nullptr : Find(place, key)) {
    looked_at = *found;
  }
  Cell& cell = writes ? FindOrMake(place, key, now_ns) : looked_at;
  if (cell.tat_ns == 0 || (cell.asked_ns != 0 && cell.reset_ns <= now_ns)) {
    cell.tat_ns = now_ns;  // a stranger, or one that the store would call as good as new by now
  }
  cell.asked_ns = 0;  // from here on the cell goes by itself, until the store speaks again
  cell.quota = quota.number;
  const uint64_t room = LocalRoom(plan, {cell.tat_ns}, now_ns);
  if (mode == ChargeMode::kUpTo) {
    cost = std::min(cost, room);
  }
  const LocalStep step = TryLocally(plan, {cell.tat_ns}, cost, now_ns);
  const bool counts = writes && (step.fits || mode == ChargeMode::kCountAlways);
  if (counts) {
    const auto cost_ns = static_cast<int64_t>(plan.CostNs(cost));
    const int64_t debt = step.fits ? step.debt_ns : step.debt_ns + cost_ns;
    // An overdraft is remembered for as long as the quota could take to refill twice.
    const int64_t most = std::max<int64_t>(2 * static_cast<int64_t>(plan.burst_ns), cost_ns);
    cell.tat_ns = now_ns + std::min(debt, std::max(most, cell.tat_ns - now_ns));
    AddUnits(cell, known == MayHaveRun::kNo ? cost : 0);
  }
  decision = Decision();
  decision.basis = Basis::kLocal;
  decision.outcome = step.fits ? Outcome::kAllowed : Outcome::kDenied;
  decision.limit = Narrow(std::max<uint64_t>(plan.burst / plan.nodes, 1));
  decision.remaining = std::min(Narrow(LocalRoom(plan, {cell.tat_ns}, now_ns)), decision.limit);
  decision.charged = counts ? Narrow(cost) : 0;
  decision.reset_after = Duration(std::max<int64_t>(cell.tat_ns - now_ns, 0));
  decision.retry_after = Duration(step.retry_ns);
  if (step.fits && plan.undelayed_ns != 0) {
    decision.retry_after =
        Duration(std::max<int64_t>(step.debt_ns - static_cast<int64_t>(plan.undelayed_ns), 0));
  }
  if (receipt != nullptr) {
    *receipt = {
        .tat_ns = cell.tat_ns, .charged = decision.charged, .settled = known == MayHaveRun::kYes};
  }
}

uint32_t KeyBook::GiveBack(const BookKey& key, const BookQuota& quota, LocalReceipt& receipt,
                           int64_t now_ns) noexcept {
  const LocalReceipt paid = std::exchange(receipt, {});
  const Place place = PlaceOf(key);
  const base::SpinLockHolder held(*place.lock);
  Cell* const cell = Find(place, key);
  if (cell == nullptr || paid.charged == 0) {
    return 0;
  }
  // As far as it is still owed: since the charge the key may have drained past it.
  const auto cost_ns = static_cast<int64_t>(quota.plan.CostNs(paid.charged));
  const int64_t back =
      std::max<int64_t>(std::min({cost_ns, cell->tat_ns - now_ns, paid.tat_ns - now_ns}), 0);
  cell->tat_ns -= back;
  const auto units = static_cast<uint32_t>(
      base::MulDivFloor(paid.charged, static_cast<uint64_t>(back),
                        static_cast<uint64_t>(std::max<int64_t>(cost_ns, 1))));
  if (!paid.settled && cell->units != 0) {
    cell->units -= std::min(cell->units, paid.charged);
    if (cell->units == 0) {
      owing_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  return units;
}

uint32_t KeyBook::TakeOwedOf(Cell& cell, const LocalPlan& plan, int64_t now_ns) noexcept {
  if (cell.units == 0) {
    return 0;
  }
  const uint64_t owed = StillOwed(plan, cell.reset_ns, cell.tat_ns, cell.units, now_ns);
  cell.units = 0;
  owing_.fetch_sub(1, std::memory_order_relaxed);
  // Until the store speaks, what is known of the key is what was counted here.
  cell.reset_ns = std::max(cell.reset_ns, cell.tat_ns);
  cell.asked_ns = kReturned;
  return static_cast<uint32_t>(owed);
}

uint32_t KeyBook::TakeOwed(const BookKey& key, const BookQuota& quota, int64_t now_ns) noexcept {
  const Place place = PlaceOf(key);
  const base::SpinLockHolder held(*place.lock);
  Cell* const cell = Find(place, key);
  return cell == nullptr ? 0 : TakeOwedOf(*cell, quota.plan, now_ns);
}

void KeyBook::PutOwedBack(const BookKey& key, const BookQuota& quota, uint32_t units,
                          int64_t now_ns) noexcept {
  const Place place = PlaceOf(key);
  const base::SpinLockHolder held(*place.lock);
  Cell& cell = FindOrMake(place, key, now_ns);
  cell.quota = quota.number;
  // As it was before they were taken: the last of the debt is theirs.
  const auto owed_ns = static_cast<int64_t>(quota.plan.CostNs(units));
  cell.tat_ns = std::max(cell.tat_ns, now_ns);
  if (!quota.plan.windowed) {
    cell.reset_ns = std::min(cell.reset_ns, cell.tat_ns - owed_ns);
  }
  cell.asked_ns = 0;
  AddUnits(cell, units);
}

size_t KeyBook::Sweep(size_t& cursor, std::span<const BookQuota* const> quotas,
                      std::span<OwedUnits> owed, int64_t now_ns,
                      const std::function<bool(const BookKey&)>& wanted) {
  size_t count = 0;
  while (cursor < cells() && count + kWays <= owed.size()) {
    const size_t set = cursor / kWays;
    const base::SpinLockHolder held(locks_[set % kLocks]);
    for (Cell& cell : std::span(cells_ + set * kWays, kWays)) {
      if (cell.units != 0 && cell.quota < quotas.size() && (!wanted || wanted(cell.key))) {
        const uint32_t units = TakeOwedOf(cell, quotas[cell.quota]->plan, now_ns);
        if (units != 0) {
          owed[count++] = {cell.key, cell.quota, units};
        }
      }
    }
    cursor = (set + 1) * kWays;
  }
  return count;
}

BookStats KeyBook::Stats(int64_t now_ns) const noexcept {
  constexpr size_t kSampledSets = 512;
  const size_t step = std::max<size_t>(sets_ / kSampledSets, 1);
  uint64_t live = 0;
  size_t looked_at = 0;
  for (size_t set = 0; set < sets_; set += step) {
    const base::SpinLockHolder held(locks_[set % kLocks]);
    for (const Cell& cell : std::span(cells_ + set * kWays, kWays)) {
      live += static_cast<uint64_t>(cell.units != 0 || TellsUntil(cell) > now_ns);
    }
    ++looked_at;
  }
  return {.cells = cells(),
          .live = live * sets_ / std::max<size_t>(looked_at, 1),
          .evicted = evicted_.load(std::memory_order_relaxed),
          .evicted_owed = evicted_owed_.load(std::memory_order_relaxed)};
}

}  // namespace weir::shared
