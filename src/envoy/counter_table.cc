#include "envoy/counter_table.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "base/wide_math.h"

namespace weir::envoy {

namespace {

constexpr uint64_t kCountMax = Quota::kMaxLimit;
// Of the memory, for keys that find the table full.
constexpr size_t kOverflowShare = 8;
constexpr size_t kMaxOverflowLimiters = 1024;
// A thread may be put aside between reading the clock and counting.
constexpr Duration kMaxSkew = std::chrono::seconds(10);

Decision Ask(Limiter& limiter, std::string_view key, uint64_t hits, Timestamp now,
             Receipt* receipt) noexcept {
  const CheckOptions options{.cost = std::min(hits, Cost::kMax),
                             .mode = hits == 0 ? ChargeMode::kAdmit : ChargeMode::kCountAlways,
                             .now = now,
                             .receipt = receipt};
  return limiter.Check(key, options);
}

// A key longer than the store takes, by its beginning and a hash of all of it.
std::string Shortened(std::string_view key) {
  constexpr size_t kKept = 1000;
  return std::string(key.substr(0, kKept)) + std::to_string(key.size()) + "#" +
         std::to_string(std::hash<std::string_view>{}(key));
}

}  // namespace

Result<std::unique_ptr<CounterTable>> CounterTable::Create(size_t memory_bytes,
                                                           const Clock& clock) {
  std::unique_ptr<CounterTable> table(new CounterTable());
  const size_t overflow_bytes =
      std::max(memory_bytes / kOverflowShare, MemoryStore::kMinBudgetBytes);
  MemoryOptions options{.budget_bytes = memory_bytes - memory_bytes / kOverflowShare,
                        .overflow = OverflowPolicy::kAllow,
                        .keys = KeyPolicy::kBinary,
                        .max_skew = kMaxSkew,
                        .clock = &clock,
                        // Units on lease are counted before they are used; here counts are told.
                        .hot_keys = false,
                        .wide_percent = 100};
  auto store = MemoryStore::Create(options);
  if (!store) {
    return store.error();
  }
  table->store_ = *store;
  table->unix_offset_ns_ =
      clock.WallNow().time_since_epoch().count() - clock.Now().time_since_epoch().count();
  options.budget_bytes = overflow_bytes;
  options.overflow = OverflowPolicy::kSketch;
  store = MemoryStore::Create(options);
  if (!store) {
    return store.error();
  }
  table->overflow_store_ = *store;
  for (size_t i = 0; i < kUnits; ++i) {
    const int64_t seconds = SecondsOf(static_cast<Unit>(i));
    if (seconds == 0) {
      continue;
    }
    const auto quota = Quota::FixedWindow(kCountMax, std::chrono::seconds(seconds));
    if (!quota) {
      return quota.error();
    }
    auto limiter = Limiter::Create(*quota, table->store_);
    if (!limiter) {
      return limiter.error();
    }
    table->by_unit_[i] = *std::move(limiter);
  }
  return table;
}

int64_t CounterTable::UnixSeconds(Timestamp now) const noexcept {
  return (now.time_since_epoch().count() + unix_offset_ns_) / 1'000'000'000;
}

Count CounterTable::Add(Unit unit, std::string_view key, uint64_t hits, uint32_t limit,
                        Timestamp now, Receipt* receipt) noexcept {
  if (key.size() > kMaxKeyBytes) [[unlikely]] {
    return Add(unit, Shortened(key), hits, limit, now, receipt);
  }
  Limiter& limiter = *by_unit_[static_cast<size_t>(unit)];
  Decision decision = Ask(limiter, key, hits, now, receipt);
  if (decision.problem == Problem::kNowTooFar) [[unlikely]] {
    decision = Ask(limiter, key, hits, limiter.Now(), receipt);
  }
  if (decision.basis == Basis::kOpen) [[unlikely]] {
    overflow_.fetch_add(1, std::memory_order_relaxed);
    return AddOverflow(unit, key, hits, limit, now);
  }
  const uint64_t after = kCountMax - decision.remaining + (decision.allowed() ? 0 : 1);
  return {after - std::min(after, hits), after};
}

void CounterTable::GiveBack(Unit unit, Receipt& receipt, Timestamp now) noexcept {
  if (receipt.charged != 0) {
    by_unit_[static_cast<size_t>(unit)]->GiveBack(receipt, now);
  }
}

Limiter* CounterTable::OverflowLimiter(Unit unit, uint32_t limit) {
  const base::MutexLock lock(mutex_);
  const auto found = overflow_limiters_.find({unit, limit});
  if (found != overflow_limiters_.end()) {
    return &found->second;
  }
  if (overflow_limiters_.size() == kMaxOverflowLimiters) {
    return nullptr;
  }
  const auto quota = Quota::FixedWindow(limit, std::chrono::seconds(SecondsOf(unit)));
  if (!quota) {
    return nullptr;  // a limit of nothing needs no counter
  }
  auto limiter = Limiter::Create(*quota, overflow_store_);
  return limiter ? &overflow_limiters_.emplace(std::pair(unit, limit), *std::move(limiter))
                        .first->second
                 : nullptr;
}

Count CounterTable::AddOverflow(Unit unit, std::string_view key, uint64_t hits, uint32_t limit,
                                Timestamp now) noexcept {
  Limiter* const limiter = OverflowLimiter(unit, limit);
  if (limiter == nullptr) {
    return {0, hits};
  }
  const Decision decision = Ask(*limiter, key, hits, now, nullptr);
  const uint64_t after = decision.allowed()
                             ? limit - std::min(limit, decision.remaining)
                             : base::SaturatingAdd(limit, std::max<uint64_t>(hits, 1));
  return {after - std::min(after, hits), after};
}

}  // namespace weir::envoy
