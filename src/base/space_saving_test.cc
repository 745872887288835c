#include "base/space_saving.h"

#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "testing/random.h"

namespace weir::base {
namespace {

using testing::Random;

struct Truth {
  uint64_t count = 0;
  uint64_t marked = 0;
};

using Truths = std::map<uint64_t, Truth>;

uint64_t HashOf(uint64_t key) {
  return (key + 1) * 0x9e3779b97f4a7c15U;
}

// A few keys often and many seldom.
void Feed(Random& random, SpaceSaving& summary, Truths& truths, uint64_t events) {
  for (uint64_t i = 0; i < events; ++i) {
    const uint64_t key = random.OneIn(3) ? random.Below(10) : random.Below(500);
    const uint64_t count = random.Between(1, 5);
    const bool marked = random.OneIn(4);
    summary.Add(HashOf(key), "key " + std::to_string(key), count, marked);
    Truth& truth = truths[key];
    truth.count += count;
    truth.marked += marked ? count : 0;
  }
}

void CheckBounds(const SpaceSaving& summary, const Truths& truths, uint64_t counters) {
  std::map<std::string, SpaceSaving::Counter> found;
  uint64_t last = ~uint64_t{0};
  for (const SpaceSaving::Counter& counter : summary.Top(counters)) {
    RC_ASSERT(counter.count <= last);
    last = counter.count;
    RC_ASSERT(found.emplace(counter.shown(), counter).second);
  }
  RC_ASSERT(found.size() == std::min<size_t>(counters, truths.size()));
  uint64_t total = 0;
  for (const auto& [key, truth] : truths) {
    total += truth.count;
  }
  RC_ASSERT(summary.total() == total);
  for (const auto& [key, truth] : truths) {
    const auto at = found.find("key " + std::to_string(key));
    if (at == found.end()) {
      RC_ASSERT(truth.count <= summary.AbsentMost());
      RC_ASSERT(truth.count <= total / counters);
      continue;
    }
    const SpaceSaving::Counter& counter = at->second;
    RC_ASSERT(counter.count - counter.error <= truth.count);
    RC_ASSERT(truth.count <= counter.count);
    RC_ASSERT(counter.marked <= truth.marked);
    RC_ASSERT(truth.marked <= counter.marked + counter.error);
  }
}

RC_GTEST_PROP(SpaceSavingBounds, HoldForEveryKey, ()) {
  Random random(*rc::gen::arbitrary<uint64_t>());
  const uint64_t counters = random.Scaled(1, 128);
  SpaceSaving summary(counters);
  Truths truths;
  for (int round = 0; round < 4; ++round) {
    Feed(random, summary, truths, random.Scaled(1, 2000));
    CheckBounds(summary, truths, counters);
  }
}

RC_GTEST_PROP(SpaceSavingBounds, HoldAfterMergesAndForWhatIsCountedAfterThem, ()) {
  Random random(*rc::gen::arbitrary<uint64_t>());
  const uint64_t counters = random.Scaled(1, 128);
  SpaceSaving all(counters);
  Truths truths;
  for (int part = 0; part < 4; ++part) {
    SpaceSaving summary(counters);
    Feed(random, summary, truths, random.Scaled(1, 1000));
    all.Merge(summary);
    CheckBounds(all, truths, counters);
    Feed(random, all, truths, random.Scaled(1, 200));
    CheckBounds(all, truths, counters);
  }
}

TEST(SpaceSaving, IsExactWhileEveryKeyHasACounter) {
  SpaceSaving summary(8);
  for (uint64_t key = 0; key < 8; ++key) {
    for (uint64_t i = 0; i <= key; ++i) {
      summary.Add(HashOf(key), "key " + std::to_string(key), 1, i == 0);
    }
  }
  const auto top = summary.Top(3);
  ASSERT_EQ(top.size(), 3U);
  EXPECT_EQ(top[0].shown(), "key 7");
  EXPECT_EQ(top[0].count, 8U);
  EXPECT_EQ(top[0].error, 0U);
  EXPECT_EQ(top[0].marked, 1U);
  EXPECT_EQ(summary.AbsentMost(), 1U);
}

TEST(SpaceSaving, KeepsTheBeginningOfALongKey) {
  SpaceSaving summary(2);
  const std::string key(1000, 'x');
  summary.Add(1, key, 1, false);
  EXPECT_EQ(summary.Top(1)[0].shown(), key.substr(0, SpaceSaving::kTextBytes));
  EXPECT_EQ(summary.Top(1)[0].bytes, 1000U);
}

}  // namespace
}  // namespace weir::base
