// Reading or counting a shared word as part of the instruction that wants it. Compilers load an
// atomic into a register first, and where a decision is a hundred instructions long each of them
// counts (docs/decisions/0040). The same thing in plain C++ elsewhere, and for the thread
// sanitizer, which cannot see into these.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__has_feature)
#define WEIR_HAS_FEATURE(feature) __has_feature(feature)
#else
#define WEIR_HAS_FEATURE(feature) 0
#endif
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !WEIR_HAS_FEATURE(thread_sanitizer)
#define WEIR_IN_PLACE 1
#else
#define WEIR_IN_PLACE 0
#endif
#undef WEIR_HAS_FEATURE

namespace weir::base {

// value - word, the word read relaxed.
[[nodiscard]] [[gnu::always_inline]] inline uint64_t Less(
    uint64_t value, const std::atomic<uint64_t>& word) noexcept {
#if WEIR_IN_PLACE
  asm volatile("subq %1, %0" : "+r"(value) : "m"(word) : "cc");
  return value;
#else
  return value - word.load(std::memory_order_relaxed);
#endif
}

// The same with acquire: every load of this processor is one, so only the compiler is to be told.
[[nodiscard]] [[gnu::always_inline]] inline uint64_t LessAcquired(
    uint64_t value, const std::atomic<uint64_t>& word) noexcept {
#if WEIR_IN_PLACE
  asm volatile("subq %1, %0" : "+r"(value) : "m"(word) : "cc", "memory");
  return value;
#else
  return value - word.load(std::memory_order_acquire);
#endif
}

// Whether the word, read with acquire, is 0.
[[nodiscard]] [[gnu::always_inline]] inline bool IsZeroAcquired(
    const std::atomic<uint64_t>& word) noexcept {
#if WEIR_IN_PLACE
  bool zero = false;
  asm volatile("cmpq $0, %1" : "=@ccz"(zero) : "m"(word) : "memory");
  return zero;
#else
  return word.load(std::memory_order_acquire) == 0;
#endif
}

// REQUIRES: nobody else writes the word.
[[gnu::always_inline]] inline void Increment(std::atomic<uint64_t>& word) noexcept {
#if WEIR_IN_PLACE
  asm("addq $1, %0" : "+m"(word) : : "cc");
#else
  word.store(word.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
#endif
}

}  // namespace weir::base
