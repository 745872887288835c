#include "base/wide_math.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "testing/random.h"

namespace weir::base {
namespace {

using testing::Random;

uint64_t AnyNumber(Random& random) {
  switch (random.Below(4)) {
    case 0:
      return random.Scaled(1, kUint64Max);
    case 1:
      return kUint64Max - random.Below(4);
    case 2:
      return (uint64_t{1} << random.Below(64)) + random.Below(3) - 1;
    default:
      return random.Below(5);
  }
}

TEST(WideMath, SaturatesInsteadOfWrapping) {
  EXPECT_EQ(SaturatingAdd(1, 2), 3U);
  EXPECT_EQ(SaturatingAdd(kUint64Max, 1), kUint64Max);
  EXPECT_EQ(SaturatingMul(uint64_t{1} << 32, uint64_t{1} << 31), uint64_t{1} << 63);
  EXPECT_EQ(SaturatingMul(uint64_t{1} << 32, uint64_t{1} << 32), kUint64Max);
  EXPECT_EQ(MulDivFloor(kUint64Max, kUint64Max, 1), kUint64Max);
  EXPECT_EQ(MulDivFloor(kUint64Max, 3, 3), kUint64Max);
}

TEST(WideMath, RoundsAsItSays) {
  EXPECT_EQ(MulDivFloor(7, 3, 4), 5U);
  EXPECT_EQ(MulDivCeil(7, 3, 4), 6U);
  EXPECT_EQ(MulDivCeil(8, 3, 4), 6U);
  EXPECT_EQ(MulDivCeil(0, 3, 4), 0U);
}

TEST(WideMath, CountsBits) {
  EXPECT_EQ(BitsFor(0), 0U);
  EXPECT_EQ(BitsFor(1), 1U);
  EXPECT_EQ(BitsFor(255), 8U);
  EXPECT_EQ(BitsFor(256), 9U);
  EXPECT_EQ(LowBits(0), 0U);
  EXPECT_EQ(LowBits(3), 7U);
  EXPECT_EQ(LowBits(63), kUint64Max >> 1);
  EXPECT_EQ(LowBits(64), kUint64Max);
}

TEST(Reciprocal, DividesLikeTheProcessorForAnyTwoNumbers) {
  Random random(3);
  for (int i = 0; i < 3'000'000; ++i) {
    const uint64_t divisor = AnyNumber(random) | static_cast<uint64_t>(random.OneIn(3));
    if (divisor == 0) {
      continue;
    }
    const Reciprocal reciprocal(divisor);
    const uint64_t n = random.OneIn(2) ? AnyNumber(random)
                                       : AnyNumber(random) / divisor * divisor - random.Below(2);
    ASSERT_EQ(reciprocal.Divide(n), n / divisor) << n << " / " << divisor;
  }
}

TEST(Reciprocal, HoldsAtEveryEdge) {
  for (const uint64_t divisor : {uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{1} << 63,
                                 (uint64_t{1} << 63) + 1, kUint64Max - 1, kUint64Max}) {
    for (const uint64_t n : {uint64_t{0}, uint64_t{1}, divisor - 1, divisor, divisor + 1,
                             kUint64Max - 1, kUint64Max}) {
      EXPECT_EQ(Reciprocal(divisor).Divide(n), n / divisor) << n << " / " << divisor;
    }
  }
}

TEST(NarrowReciprocal, DividesLikeTheProcessorBelowHalfTheRange) {
  Random random(4);
  constexpr uint64_t kBelow = uint64_t{1} << 63;
  for (int i = 0; i < 3'000'000; ++i) {
    const uint64_t divisor = std::max<uint64_t>(AnyNumber(random) % kBelow, 1);
    const uint64_t any = AnyNumber(random) % kBelow;
    // Half of them at or just below a multiple of the divisor, where an error would show.
    const uint64_t multiple = any / divisor * divisor;
    const uint64_t n = random.OneIn(2) || multiple == 0 ? any : multiple - random.Below(2);
    ASSERT_EQ(NarrowReciprocal(divisor).Divide(n), n / divisor) << n << " / " << divisor;
  }
}

TEST(NarrowReciprocal, HoldsAtEveryEdge) {
  constexpr uint64_t kLast = (uint64_t{1} << 63) - 1;
  for (unsigned bit = 0; bit < 63; ++bit) {
    for (const uint64_t divisor : {(uint64_t{1} << bit) - 1, uint64_t{1} << bit,
                                   std::min((uint64_t{1} << bit) + 1, kLast)}) {
      if (divisor == 0) {
        continue;
      }
      for (const uint64_t n : {uint64_t{0}, uint64_t{1}, divisor - 1, divisor,
                               kLast / divisor * divisor - 1, kLast / divisor * divisor, kLast}) {
        EXPECT_EQ(NarrowReciprocal(divisor).Divide(n), n / divisor) << n << " / " << divisor;
      }
    }
  }
}

// As vectors divide: the product, cut off, below 2^38.
TEST(ReciprocalUp, TimesANumberIsItsQuotientCutOff) {
  Random random(5);
  constexpr uint64_t kBelow = uint64_t{1} << 38;
  for (int i = 0; i < 3'000'000; ++i) {
    const uint64_t divisor = std::max<uint64_t>(AnyNumber(random) % kBelow, 1);
    const double factor = ReciprocalUp(divisor);
    const auto exact = static_cast<double>(divisor);
    ASSERT_GE(std::fma(factor, exact, -1.0), 0) << divisor;
    ASSERT_LT(std::fma(std::nextafter(factor, 0.0), exact, -1.0), 0) << divisor << ": the least";
    const uint64_t any = AnyNumber(random) % kBelow;
    const uint64_t multiple = any / divisor * divisor;
    const uint64_t n = random.OneIn(2) || multiple == 0 ? any : multiple - random.Below(2);
    ASSERT_EQ(static_cast<uint64_t>(static_cast<double>(n) * factor), n / divisor)
        << n << " / " << divisor;
  }
}

}  // namespace
}  // namespace weir::base
