// Counters that cost a decision one plain store: each thread has a cell of its own.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/in_place.h"
#include "base/thread_index.h"

namespace weir::store {

struct alignas(64) CounterCell {
  std::atomic<uint64_t> allowed{0};
  std::atomic<uint64_t> denials{0};
  std::atomic<uint64_t> refusals{0};
  std::atomic<uint64_t> overflow{0};
  std::atomic<uint64_t> reclaims{0};
  std::atomic<uint64_t> lost_races{0};
  std::atomic<uint64_t> promotions{0};
  std::atomic<uint64_t> leases{0};
};

class Counters {
 public:
  // Threads beyond this share the last cell and pay for a locked add there.
  static constexpr uint32_t kOwnCells = 255;

  // The calling thread's view.
  class Mine {
   public:
    // Relaxed throughout: counts stand alone. The owner's load and store need no lock prefix since
    // nobody else writes the cell.
    void Add(std::atomic<uint64_t> CounterCell::* counter, uint64_t by) const noexcept {
      std::atomic<uint64_t>& value = cell_.*counter;
      if (shared_) [[unlikely]] {
        value.fetch_add(by, std::memory_order_relaxed);
      } else {
        value.store(value.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
      }
    }

   private:
    friend class Counters;

    Mine(CounterCell& cell, bool shared) noexcept : cell_(cell), shared_(shared) {}

    CounterCell& cell_;
    bool shared_;
  };

  [[nodiscard]] Mine Get() noexcept {
    const uint32_t index = base::ThreadIndex();
    return index < kOwnCells ? Mine(cells_[index], false) : Mine(cells_[kOwnCells], true);
  }

  // Whether the calling thread has a cell of its own, as it does from its first Get on, and holds
  // no leases.
  [[nodiscard]] [[gnu::always_inline]] static bool HasOwn() noexcept {
    return base::tls_free_index < kOwnCells;
  }

  // REQUIRES: HasOwn().
  [[nodiscard]] [[gnu::always_inline]] CounterCell& Own() noexcept {
    return cells_[base::tls_free_index];
  }

  // REQUIRES: index < kOwnCells, and it is the calling thread's.
  [[nodiscard]] [[gnu::always_inline]] CounterCell& OwnAt(uint32_t index) noexcept {
    return cells_[index];
  }

  // REQUIRES: the counter is in the calling thread's own cell.
  [[gnu::always_inline]] static void Increment(std::atomic<uint64_t>& value) noexcept {
    base::Increment(value);
  }

  [[nodiscard]] uint64_t Sum(std::atomic<uint64_t> CounterCell::* counter) const noexcept {
    uint64_t sum = 0;
    for (const CounterCell& cell : cells_) {
      // Relaxed: a sum of what each thread has counted so far; nothing rests on their order.
      sum += (cell.*counter).load(std::memory_order_relaxed);
    }
    return sum;
  }

 private:
  CounterCell cells_[kOwnCells + 1];
};

}  // namespace weir::store
