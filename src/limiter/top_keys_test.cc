#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "testing/random.h"
#include "testing/twin.h"

namespace weir {
namespace {

Limiter Watched(const char* quota, const Clock& clock, uint32_t keys, uint32_t sample) {
  return *Limiter::Create(*Quota::Parse(quota), {.budget_bytes = size_t{1} << 20, .clock = &clock},
                          {.top_keys = keys, .top_keys_sample = sample});
}

TEST(TopKeys, AreCountedByEveryWayOfAskingAndSurviveAnUpdate) {
  ManualClock clock(testing::Noon());
  Limiter limiter = Watched("5/h fixed-window", clock, 10, 1);
  for (int i = 0; i < 8; ++i) {
    limiter.Check("often");
  }
  limiter.Check("at a time", limiter.Now());
  const std::string_view batch[] = {"batch", "batch", "often"};
  Decision decisions[3];
  limiter.CheckMany(batch, decisions);
  limiter.Check("receipt", CheckOptions{});
  limiter.Check("often", 0);
  limiter.Check("often", CheckOptions{.mode = ChargeMode::kDryRun});
  limiter.Check("", 1);
  ASSERT_TRUE(limiter.Update(*Quota::Parse("5/h burst 5")).ok());
  limiter.Check("batch");
  const std::vector<TopKey> top = limiter.TopKeys(10);
  ASSERT_EQ(top.size(), 4U);
  EXPECT_EQ(top[0].key, "often");
  EXPECT_EQ(top[0].count, 9U);
  EXPECT_EQ(top[0].denied, 4U);
  EXPECT_EQ(top[0].error, 0U);
  EXPECT_EQ(top[1].key, "batch");
  EXPECT_EQ(top[1].count, 3U);
  EXPECT_EQ(limiter.TopKeys(1).size(), 1U);
}

TEST(TopKeys, AreNoneUnlessAskedFor) {
  ManualClock clock(testing::Noon());
  Limiter limiter = Watched("5/h", clock, 0, 64);
  limiter.Check("key");
  EXPECT_TRUE(limiter.TopKeys(10).empty());
}

TEST(TopKeys, FindTheHeavyOnesAmongManyFromSeveralThreadsAndASample) {
  ManualClock clock(testing::Noon());
  constexpr uint32_t kSample = 16;
  constexpr uint64_t kEach = 200'000;
  Limiter limiter = Watched("1000000/h", clock, 64, kSample);
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&limiter, thread] {
      testing::Random random(thread + 1);
      for (uint64_t i = 0; i < kEach; ++i) {
        // Three keys with a tenth each, the rest spread over many.
        const uint64_t draw = random.Below(10);
        limiter.Check(draw < 3 ? "heavy " + std::to_string(draw)
                               : "light " + std::to_string(random.Below(50'000)));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const std::vector<TopKey> top = limiter.TopKeys(3);
  ASSERT_EQ(top.size(), 3U);
  for (const TopKey& key : top) {
    EXPECT_EQ(key.key.substr(0, 6), "heavy ");
    // A tenth of both threads'; the sample's root is 800, the error at most 1/64 a thread.
    EXPECT_GE(key.count + 5000, 2 * kEach / 10);
    EXPECT_LE(key.count - key.error, 2 * kEach / 10 + 5000);
  }
}

TEST(TopKeys, OptionsAreChecked) {
  const auto message = [](LimiterOptions own) {
    const auto limiter = Limiter::Create(*Quota::Parse("5/h"), MemoryOptions{}, own);
    return limiter.ok() ? std::string() : limiter.error().message;
  };
  EXPECT_EQ(message({.top_keys = 4097}), "top_keys: 4097 is not allowed; the most is 4096");
  EXPECT_NE(message({.top_keys_sample = 0}).find("top_keys_sample: 0 is not allowed"),
            std::string::npos);
  EXPECT_NE(message({.top_keys_sample = 100}).find("a power of two"), std::string::npos);
}

TEST(TopKeys, AreCountedByHoldsTakenTogether) {
  ManualClock clock(testing::Noon());
  Limiter limiter = Watched("concurrency 1 lease 30s", clock, 10, 1);
  const std::string_view keys[] = {"held", "held", "held"};
  Acquired acquired[3];
  limiter.AcquireMany(keys, acquired);
  const std::vector<TopKey> top = limiter.TopKeys(10);
  ASSERT_EQ(top.size(), 1U);
  EXPECT_EQ(top[0].count, 3U);
  EXPECT_EQ(top[0].denied, 2U);
}

// Three nodes with far more keys than counters, each with favourites of its own and one in common.
TEST(TopKeys, OfSeveralNodesAreMergedWithinTheirBounds) {
  ManualClock clock(testing::Noon());
  testing::Random random(7);
  std::map<std::string, uint64_t> asked;
  uint64_t total = 0;
  std::vector<TopList> lists;
  for (int node = 0; node < 3; ++node) {
    Limiter limiter = Watched("5/h fixed-window", clock, 20, 1);
    for (int i = 0; i < 5000; ++i) {
      const uint64_t kind = random.Below(10);
      const std::string key = kind == 0   ? "common"
                              : kind == 1 ? "of node " + std::to_string(node)
                                          : "key " + std::to_string(random.Below(1000));
      limiter.Check(key);
      ++asked[key];
      ++total;
    }
    lists.push_back(limiter.TopKeyList(node == 0 ? 8 : 100));
    EXPECT_EQ(lists.back().total, 5000U);
  }
  const TopList merged = MergeTopLists(lists, 10);
  EXPECT_EQ(merged.total, total);
  ASSERT_EQ(merged.keys.size(), 10U);
  EXPECT_EQ(merged.keys[0].key, "common");
  std::map<std::string, uint64_t> absent = asked;
  for (const TopKey& key : merged.keys) {
    EXPECT_LE(asked[key.key], key.count) << key.key;
    EXPECT_GE(asked[key.key], key.count - key.error) << key.key;
    EXPECT_GE(asked[key.key], key.denied) << key.key;
    absent.erase(key.key);
  }
  for (const auto& [key, count] : absent) {
    EXPECT_LE(count, merged.absent_most) << key;
  }
  // Merging is no worse for a node that noted nothing.
  lists.push_back({});
  EXPECT_EQ(MergeTopLists(lists, 10).absent_most, merged.absent_most);
}

}  // namespace
}  // namespace weir
