// A lock held for a few instructions at a time. It yields after a short spin, so that a holder that
// lost its processor is let back in.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "base/mutex.h"

namespace weir::base {

inline void CpuRelax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins a little, then gives the processor away. Call once per failed attempt.
class Backoff {
 public:
  void Wait() noexcept {
    if (++attempts_ < kSpins) {
      CpuRelax();
    } else {
      sched_yield();
    }
  }

 private:
  static constexpr unsigned kSpins = 64;
  unsigned attempts_ = 0;
};

class WEIR_CAPABILITY("spin lock") SpinLock {
 public:
  void Lock() noexcept WEIR_ACQUIRE() {
    Backoff backoff;
    // Acquire pairs with the release in Unlock: what the last holder wrote is seen.
    while (held_.exchange(1, std::memory_order_acquire) != 0) {
      while (held_.load(std::memory_order_relaxed) != 0) {
        backoff.Wait();
      }
    }
  }

  [[nodiscard]] bool TryLock() noexcept WEIR_TRY_ACQUIRE(true) {
    // Acquire as in Lock, if it is got.
    return held_.exchange(1, std::memory_order_acquire) == 0;
  }

  // Release: the next holder sees what this one wrote.
  void Unlock() noexcept WEIR_RELEASE() { held_.store(0, std::memory_order_release); }

  // Tells the compiler what it cannot see: in a lambda that the holder calls.
  void AssertHeld() const noexcept WEIR_ASSERT_HELD() {}

 private:
  std::atomic<uint32_t> held_{0};
};

class WEIR_SCOPED_CAPABILITY SpinLockHolder {
 public:
  explicit SpinLockHolder(SpinLock& lock) noexcept WEIR_ACQUIRE(lock) : lock_(lock) {
    lock_.Lock();
  }

  ~SpinLockHolder() WEIR_RELEASE() { lock_.Unlock(); }
  SpinLockHolder(const SpinLockHolder&) = delete;
  SpinLockHolder& operator=(const SpinLockHolder&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace weir::base
