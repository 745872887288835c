#include "base/in_place.h"

#include <limits>

#include <gtest/gtest.h>

namespace weir::base {
namespace {

TEST(InPlace, TakesAwayWhatTheWordSays) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  for (const uint64_t word : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40, kMost}) {
    const std::atomic<uint64_t> shared{word};
    for (const uint64_t value : {uint64_t{0}, uint64_t{7}, uint64_t{1} << 63, kMost}) {
      EXPECT_EQ(Less(value, shared), value - word);
      EXPECT_EQ(LessAcquired(value, shared), value - word);
    }
    EXPECT_EQ(IsZeroAcquired(shared), word == 0);
  }
}

TEST(InPlace, SeesEveryChange) {
  std::atomic<uint64_t> word{~uint64_t{0}};
  Increment(word);
  EXPECT_EQ(word.load(), 0U);
  EXPECT_TRUE(IsZeroAcquired(word));
  for (uint64_t i = 1; i <= 100; ++i) {
    Increment(word);
    ASSERT_EQ(word.load(), i);
    ASSERT_EQ(Less(1000, word), 1000 - i);
    ASSERT_FALSE(IsZeroAcquired(word));
  }
}

}  // namespace
}  // namespace weir::base
