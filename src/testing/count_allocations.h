// Replaces operator new of the program that includes it, in one file, by one that counts.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace weir::testing {

inline std::atomic<uint64_t> allocations{0};

inline void* CountedMemory(std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size == 0 ? 1 : size);
}

}  // namespace weir::testing

// GCC inlines these in some builds and then takes free for the wrong partner of new.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

// NOLINTBEGIN(misc-new-delete-overloads,misc-definitions-in-headers): the other forms call these.
void* operator new(std::size_t size) {
  if (void* const memory = weir::testing::CountedMemory(size)) {
    return memory;
  }
  std::abort();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return weir::testing::CountedMemory(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
// NOLINTEND(misc-new-delete-overloads,misc-definitions-in-headers)
