// What one rule has decided, counted in stripes so that threads do not meet.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "weir/decision.h"

#include "base/thread_index.h"

namespace weir::rules {

struct RuleTotals {
  uint64_t allowed = 0;
  uint64_t denied = 0;
  uint64_t refused = 0;
  uint64_t shadow_denied = 0;
  uint64_t charged = 0;  // decisions that took something
  uint64_t fresh = 0;    // of these, those that met a key that owed nothing
  std::array<uint64_t, kBases> by_basis{};
};

class RuleCounters {
 public:
  struct alignas(64) Cell {
    std::atomic<uint64_t> allowed{0};
    std::atomic<uint64_t> denied{0};
    std::atomic<uint64_t> refused{0};
    std::atomic<uint64_t> shadow_denied{0};
    std::atomic<uint64_t> charged{0};
    std::atomic<uint64_t> fresh{0};
    std::array<std::atomic<uint64_t>, kBases> by_basis{};
  };

  // Relaxed throughout: each number stands alone.
  void Add(std::atomic<uint64_t> Cell::* number) noexcept { Increment(Mine().*number); }
  void Add(const Decision& decision) noexcept {
    Cell& cell = Mine();
    Increment(cell.by_basis[static_cast<size_t>(decision.basis)]);
    if (decision.allowed() && decision.charged != 0) {
      Increment(cell.charged);
      // A key that owed nothing has all but this left.
      if (uint64_t{decision.remaining} + decision.charged == decision.limit) {
        Increment(cell.fresh);
      }
    }
  }

  [[nodiscard]] RuleTotals Sum() const noexcept {
    RuleTotals total;
    for (const Cell& cell : cells_) {
      total.allowed += cell.allowed.load(std::memory_order_relaxed);
      total.denied += cell.denied.load(std::memory_order_relaxed);
      total.refused += cell.refused.load(std::memory_order_relaxed);
      total.shadow_denied += cell.shadow_denied.load(std::memory_order_relaxed);
      total.charged += cell.charged.load(std::memory_order_relaxed);
      total.fresh += cell.fresh.load(std::memory_order_relaxed);
      for (size_t i = 0; i < kBases; ++i) {
        total.by_basis[i] += cell.by_basis[i].load(std::memory_order_relaxed);
      }
    }
    return total;
  }

  // Of the last kFreshSample charges or more, whether over nine in ten met a fresh key. Guarded by
  // who asks.
  [[nodiscard]] bool JudgeFreshness(const RuleTotals& total) noexcept {
    const uint64_t charged = total.charged - judged_charged_;
    if (charged >= kFreshSample) {
      is_fresh_ = (total.fresh - judged_fresh_) * 10 > charged * 9;
      judged_charged_ = total.charged;
      judged_fresh_ = total.fresh;
    }
    return is_fresh_;
  }

 private:
  static constexpr size_t kStripes = 8;
  static constexpr uint64_t kFreshSample = 10'000;

  [[nodiscard]] static size_t Stripe() noexcept {
    const size_t index = base::ThreadIndex();
    return index < kStripes - 1 ? index : kStripes - 1;
  }
  [[nodiscard]] Cell& Mine() noexcept { return cells_[Stripe()]; }
  void Increment(std::atomic<uint64_t>& number) noexcept {
    // The first threads have a stripe each, and nobody else writes there.
    if (Stripe() != kStripes - 1) {
      number.store(number.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else {
      number.fetch_add(1, std::memory_order_relaxed);
    }
  }

  std::array<Cell, kStripes> cells_;
  uint64_t judged_charged_ = 0;
  uint64_t judged_fresh_ = 0;
  bool is_fresh_ = false;
};

}  // namespace weir::rules
