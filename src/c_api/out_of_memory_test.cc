// When the C++ runtime finds no memory it throws, and a C caller could not catch that: such a call
// must come back with a status. This program's operator new fails on demand.
#include <cstdlib>
#include <new>
#include <string>

#include <gtest/gtest.h>

#include "weir/weir.h"

namespace {

int allocations_left = -1;  // -1: as many as wanted

void* Allocate(size_t size, size_t alignment) {
  if (allocations_left == 0) {
    throw std::bad_alloc();
  }
  if (allocations_left > 0) {
    --allocations_left;
  }
  void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  return memory != nullptr ? memory : throw std::bad_alloc();
}

}  // namespace

// GCC inlines these in some builds and then takes free for the wrong partner of new.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

// NOLINTBEGIN(misc-new-delete-overloads): the other forms call these.
void* operator new(size_t size) {
  return Allocate(size, alignof(std::max_align_t));
}
void* operator new(size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
// NOLINTEND(misc-new-delete-overloads)

namespace {

weir_store_options Small() {
  weir_store_options options{};
  options.struct_size = sizeof options;
  options.budget_bytes = 1 << 20;
  return options;
}

// Calls with room for 0, 1, 2… allocations until it succeeds; each time before, it says why.
template <class Call>
int FailuresOf(Call call) {
  for (int allowed = 0; allowed < 1000; ++allowed) {
    allocations_left = allowed;
    const int status = call();
    allocations_left = -1;
    if (status >= 0) {
      return allowed;
    }
    EXPECT_EQ(status, WEIR_OVERLOADED);
    EXPECT_STREQ(weir_last_error(), "the system has no memory left");
  }
  return -1;
}

TEST(OutOfMemory, CreatingAStoreSaysSo) {
  const weir_store_options options = Small();
  weir_store* store = nullptr;
  EXPECT_GT(FailuresOf([&] { return weir_store_create(&options, &store); }), 0);
  ASSERT_NE(store, nullptr);
  weir_store_free(store);
}

TEST(OutOfMemory, CreatingAndChangingALimiterSaysSo) {
  const weir_store_options options = Small();
  weir_limiter* limiter = nullptr;
  EXPECT_GT(FailuresOf([&] { return weir_limiter_create("10/min burst 5", &options, &limiter); }),
            0);
  ASSERT_NE(limiter, nullptr);
  EXPECT_GE(FailuresOf([&] { return weir_limiter_update(limiter, "20/min burst 7"); }), 0);
  EXPECT_GE(FailuresOf([&] { return weir_limiter_quota(limiter, nullptr, 0); }), 0);
  EXPECT_EQ(weir_check(limiter, "k", 1, 1, nullptr), 1);
  weir_limiter_free(limiter);
}

}  // namespace
