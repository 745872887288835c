// A fence that costs the one side nothing and the other side a system call, for a word that its
// owner writes all the time and somebody else wants to stop once in a while:
//
//   owner                          the other
//   Publish(mine, value)           stop.store(true); if (!HeavyFence()) give up
//   if (stop.load()) ...           mine.load()
//
// Either the owner sees the stop, or the other sees the value. On Linux the heavy side has every
// processor that runs this process pass a fence (membarrier); where that cannot be had, and under
// the thread sanitizer, which does not know it, both sides use locked instructions.
#pragma once

#include <atomic>
#include <cstdint>

namespace weir::base {

class AsymmetricFence {
 public:
  // Finds out which way to go. Before the first use of the others; again does nothing.
  static void Prepare() noexcept;

  template <class T>
  [[gnu::always_inline]] static void Publish(std::atomic<T>& word, T value) noexcept {
    // Relaxed: set once, before any word that is published here exists.
    if (cheap_.load(std::memory_order_relaxed)) [[likely]] {
      word.store(value, std::memory_order_release);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      word.exchange(value, std::memory_order_seq_cst);
    }
  }

  // False: the kernel refused, and nothing is known.
  [[nodiscard]] static bool Heavy() noexcept;

  // Whether the owner's side is free; for tests and reports.
  [[nodiscard]] static bool cheap() noexcept { return cheap_.load(std::memory_order_relaxed); }

 private:
  // Hidden, so that reading it from a shared library takes one instruction.
  [[gnu::visibility("hidden")]] static std::atomic<bool> cheap_;
};

}  // namespace weir::base
