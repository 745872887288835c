// The counters of envoyproxy/ratelimit in weir's memory store: one for each key and unit, in
// windows of that unit from the epoch, whatever limit it is compared with. So a limit may change,
// and a client may bring another one along, and the count is still the same.
//
// A limiter for each unit counts up to 2^32 - 1, which no limit exceeds. A key that finds the table
// full of live ones is counted in a second store, by its own limit, where it shares a sketch with
// others at the worst: never too few, and seldom too many.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "weir/limiter.h"
#include "weir/result.h"
#include "weir/store.h"

#include "base/mutex.h"
#include "envoy/unit.h"

namespace weir::envoy {

struct Count {
  uint64_t before = 0;
  uint64_t after = 0;
};

class CounterTable {
 public:
  static Result<std::unique_ptr<CounterTable>> Create(size_t memory_bytes, const Clock& clock);

  CounterTable(const CounterTable&) = delete;
  CounterTable& operator=(const CounterTable&) = delete;

  // Whole seconds since 1970, of the same clock that windows begin by.
  [[nodiscard]] int64_t UnixSeconds(Timestamp now) const noexcept;

  // Soon the key will be counted.
  void Prefetch(Unit unit, std::string_view key) const noexcept {
    by_unit_[static_cast<size_t>(unit)]->Prefetch(key);
  }

  // Counts hits, or looks if there are none. `limit` matters only when the table is full. With a
  // receipt they can be given back. REQUIRES: a unit with a length.
  Count Add(Unit unit, std::string_view key, uint64_t hits, uint32_t limit, Timestamp now,
            Receipt* receipt = nullptr) noexcept;
  void GiveBack(Unit unit, Receipt& receipt, Timestamp now) noexcept;

  // How many did not fit the table.
  [[nodiscard]] uint64_t overflow() const noexcept {
    return overflow_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const MemoryStore& store() const noexcept { return *store_; }

 private:
  CounterTable() = default;

  Count AddOverflow(Unit unit, std::string_view key, uint64_t hits, uint32_t limit,
                    Timestamp now) noexcept;
  [[nodiscard]] Limiter* OverflowLimiter(Unit unit, uint32_t limit);

  int64_t unix_offset_ns_ = 0;
  std::shared_ptr<MemoryStore> store_;
  std::array<std::optional<Limiter>, kUnits> by_unit_;

  std::atomic<uint64_t> overflow_{0};
  std::shared_ptr<MemoryStore> overflow_store_;
  base::Mutex mutex_;
  std::map<std::pair<Unit, uint32_t>, Limiter> overflow_limiters_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::envoy
