// The lines of a table, how keys find theirs, and the overflow bits.
//
// A key's home is one line; when that is full it goes to one of the next kProbe - 1. A line that a
// key went past carries an overflow bit, and a search ends at the first line without one. So that a
// table that was over-full once does not search far for ever, there are two bits, one per epoch:
// going past a line, or finding a key beyond its home, sets the bit of the current epoch, and the
// sweeper clears the other one. It does so only after every state that was written before the
// current epoch began has expired (housekeeping.h), so a key that is still live is always found.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mapped_memory.h"
#include "base/spin_lock.h"
#include "base/wide_math.h"
#include "store/memory/line.h"

namespace weir::store {

// Installs of keys that share a home line are serialised by its stripe.
struct Stripe {
  base::SpinLock lock;
};

class Table {
 public:
  // How far from home a key may live. At 62 % load 97 % of keys are at home.
  static constexpr unsigned kProbe = 16;

  Table(algorithm::SlotKind kind, size_t budget_bytes, base::MappedMemory::Pages pages) noexcept;

  [[nodiscard]] bool ok() const noexcept { return memory_.data() != nullptr; }
  [[nodiscard]] algorithm::SlotKind kind() const noexcept { return kind_; }
  [[nodiscard]] uint64_t line_count() const noexcept { return homes_.count + kProbe - 1; }
  [[nodiscard]] size_t bytes() const noexcept { return memory_.size(); }
  [[nodiscard]] bool huge() const noexcept { return memory_.huge(); }

  [[nodiscard]] uint64_t slot_count() const noexcept {
    return line_count() *
           (kind_ == algorithm::SlotKind::kCompact ? CompactLayout::kSlots : WideLayout::kSlots);
  }

  // Where keys are at home: the lines but the last few, which only take what overflows.
  struct Homes {
    Line* lines = nullptr;
    uint64_t count = 0;

    [[nodiscard]] uint64_t IndexOf(uint64_t hash) const noexcept {
      return base::MulHigh(hash, count);
    }
    [[nodiscard]] Line& Of(uint64_t hash) const noexcept { return lines[IndexOf(hash)]; }
  };

  [[nodiscard]] const Homes& homes() const noexcept { return homes_; }
  [[nodiscard]] uint64_t HomeOf(uint64_t hash) const noexcept { return homes_.IndexOf(hash); }
  [[nodiscard]] Line& line(uint64_t index) const noexcept { return homes_.lines[index]; }
  [[nodiscard]] Stripe& StripeOf(uint64_t home) const noexcept {
    return stripes_[home & stripe_mask_];
  }

  // Total given back to keys that share this counter; see GiveBack in engine.h. Keys share one by
  // their hash, so that few of them do.
  [[nodiscard]] std::atomic<uint64_t>& RefundsOf(uint64_t hash) const noexcept {
    return refunds_ns_[hash & refund_mask_];
  }

  // Relaxed: a thread that still uses the epoch before sets a bit that is kept for another horizon.
  [[nodiscard]] unsigned epoch() const noexcept { return epoch_.load(std::memory_order_relaxed); }
  void FlipEpoch() noexcept { epoch_.store(1 - epoch(), std::memory_order_relaxed); }

 private:
  algorithm::SlotKind kind_;
  base::MappedMemory memory_;
  Homes homes_;
  Stripe* stripes_ = nullptr;
  std::atomic<uint64_t>* refunds_ns_ = nullptr;
  uint64_t stripe_mask_ = 0;
  uint64_t refund_mask_ = 0;
  std::atomic<unsigned> epoch_{0};
};

template <class Layout>
[[nodiscard]] inline bool Overflowed(Line& line) noexcept {
  // Acquire: a search that ends here must not have read the line from before the bit was set.
  const uint64_t bits = Layout::EpochWord(line, 0).load(std::memory_order_acquire) |
                        Layout::EpochWord(line, 1).load(std::memory_order_acquire);
  return (bits & kAuxBit) != 0;
}

// Whether the lines from home up to, not including, home + distance carry the current epoch's bit.
template <class Layout>
[[nodiscard]] inline bool PathProtected(const Table& table, uint64_t home,
                                        unsigned distance) noexcept {
  if (WEIR_MUTANT(kUnprotectedHit)) {
    return true;
  }
  const unsigned epoch = table.epoch();
  for (unsigned i = 0; i < distance; ++i) {
    if ((Layout::EpochWord(table.line(home + i), epoch).load(std::memory_order_acquire) &
         kAuxBit) == 0) {
      return false;
    }
  }
  return true;
}

// REQUIRES: the stripe of `home` is held.
template <class Layout>
inline void ProtectPath(const Table& table, uint64_t home, unsigned distance) noexcept {
  const unsigned epoch = table.epoch();
  for (unsigned i = 0; i < distance; ++i) {
    std::atomic<uint64_t>& word = Layout::EpochWord(table.line(home + i), epoch);
    if ((word.load(std::memory_order_relaxed) & kAuxBit) == 0) {
      // Release: a search that sees the bit also sees what was installed before it.
      word.fetch_or(kAuxBit, std::memory_order_acq_rel);
    }
  }
}

}  // namespace weir::store
