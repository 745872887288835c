#include "base/histogram.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir::base {
namespace {

// Values of every magnitude, not only the huge ones that a plain draw gives.
rc::Gen<uint64_t> AnyValue() {
  return rc::gen::mapcat(rc::gen::inRange(0, 42), [](int bits) {
    return rc::gen::inRange<uint64_t>(0, (uint64_t{1} << bits) + 1);
  });
}

std::unique_ptr<Histogram> Filled(const std::vector<uint64_t>& values) {
  auto histogram = std::make_unique<Histogram>();
  for (const uint64_t value : values) {
    histogram->Record(value);
  }
  return histogram;
}

uint64_t Exact(std::vector<uint64_t> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::max<size_t>(rank, 1) - 1];
}

RC_GTEST_PROP(Histogram, PercentilesAreWithinOnePercentAboveTheExactOnes, ()) {
  const auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<uint64_t>>(AnyValue()));
  const auto histogram = Filled(values);
  for (const double share : {0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const uint64_t exact = Exact(values, share);
    const uint64_t found = histogram->ValueAt(share);
    RC_ASSERT(found >= exact);
    RC_ASSERT(found - exact <= exact / 128);
  }
}

RC_GTEST_PROP(Histogram, PartsAddUpToTheWhole, ()) {
  const auto first = *rc::gen::container<std::vector<uint64_t>>(AnyValue());
  const auto second = *rc::gen::container<std::vector<uint64_t>>(AnyValue());
  std::vector<uint64_t> all = first;
  all.insert(all.end(), second.begin(), second.end());
  const auto whole = Filled(all);
  const auto merged = Filled(first);
  merged->Merge(*Filled(second));
  RC_ASSERT(merged->count() == whole->count());
  RC_ASSERT(merged->min() == whole->min());
  RC_ASSERT(merged->max() == whole->max());
  RC_ASSERT(merged->mean() == whole->mean());
  for (const double share : {0.5, 0.99, 1.0}) {
    RC_ASSERT(merged->ValueAt(share) == whole->ValueAt(share));
  }
}

RC_GTEST_PROP(Histogram, BucketsFollowOneAnotherAndHoldEveryValue, ()) {
  const auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<uint64_t>>(AnyValue()));
  uint64_t counted = 0;
  uint64_t next = 0;
  Filled(values)->ForEach([&](uint64_t lowest, uint64_t highest, uint64_t count) {
    RC_ASSERT(lowest >= next);
    RC_ASSERT(highest >= lowest);
    const auto inside = std::count_if(values.begin(), values.end(), [&](uint64_t value) {
      return value >= lowest && value <= highest;
    });
    RC_ASSERT(static_cast<uint64_t>(inside) == count);
    counted += count;
    next = highest + 1;
  });
  RC_ASSERT(counted == values.size());
}

TEST(Histogram, IsAllZeroWhileEmpty) {
  const Histogram empty;
  EXPECT_EQ(empty.count(), 0U);
  EXPECT_EQ(empty.min(), 0U);
  EXPECT_EQ(empty.max(), 0U);
  EXPECT_EQ(empty.mean(), 0);
  EXPECT_EQ(empty.ValueAt(0.99), 0U);
}

TEST(Histogram, CountsWhatIsBeyondItsRangeAndKnowsTheLargest) {
  Histogram histogram;
  histogram.Record(Histogram::kLargest + 12345);
  histogram.Record(1);
  EXPECT_EQ(histogram.count(), 2U);
  EXPECT_EQ(histogram.max(), Histogram::kLargest + 12345);
  EXPECT_EQ(histogram.ValueAt(0.5), 1U);
  EXPECT_GE(histogram.ValueAt(1), Histogram::kLargest);
}

TEST(Histogram, TakesManyOfOneValueAtOnce) {
  Histogram histogram;
  histogram.Record(1000, 99);
  histogram.Record(1'000'000, 1);
  histogram.Record(5, 0);
  EXPECT_EQ(histogram.count(), 100U);
  EXPECT_EQ(histogram.min(), 1000U);
  EXPECT_LE(histogram.ValueAt(0.99), 1007U);
  EXPECT_EQ(histogram.ValueAt(1), 1'000'000U);
}

}  // namespace
}  // namespace weir::base
