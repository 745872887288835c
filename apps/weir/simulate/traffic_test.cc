#include "apps/weir/simulate/traffic.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace weir::simulate {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

size_t CountIn(const std::vector<Duration>& arrivals, Duration from, Duration to) {
  return static_cast<size_t>(std::count_if(arrivals.begin(), arrivals.end(),
                                           [&](Duration at) { return from <= at && at < to; }));
}

TEST(Traffic, SteadyHasEvenGapsAtTheAskedRate) {
  const auto arrivals = Generate(Traffic::kSteady, {});
  ASSERT_EQ(arrivals.size(), 600U);  // 1.5 x 100 a minute for 4 minutes
  for (size_t i = 0; i < arrivals.size(); ++i) {
    EXPECT_EQ(arrivals[i], milliseconds(400) * static_cast<int64_t>(i));
  }
}

TEST(Traffic, EveryTrafficIsInOrderAndInsideTheRunAndBelowItsCeiling) {
  for (const TrafficInfo& info : AllTraffic()) {
    for (const int64_t limit : {1, 7, 100, 5000}) {
      for (const int64_t rate_milli : {10, 900, 1500, 20'000}) {
        for (uint64_t seed = 0; seed < 5; ++seed) {
          const TrafficSpec spec{.limit = limit,
                                 .window = seconds(7),
                                 .duration = seconds(23),
                                 .rate_milli = rate_milli,
                                 .seed = seed};
          const auto arrivals = Generate(info.traffic, spec);
          EXPECT_TRUE(std::is_sorted(arrivals.begin(), arrivals.end())) << info.name;
          EXPECT_LE(arrivals.size(), CountCeiling(spec)) << info.name;
          if (arrivals.empty())
            continue;
          EXPECT_GE(arrivals.front(), Duration::zero()) << info.name;
          EXPECT_LT(arrivals.back(), spec.duration) << info.name;
        }
      }
    }
  }
}

TEST(Traffic, IsTheSameOnEveryMachine) {
  const auto poisson = Generate(Traffic::kPoisson, {});
  ASSERT_GE(poisson.size(), 3U);
  EXPECT_EQ(poisson[0].count(), 482'211'249);
  EXPECT_EQ(poisson[1].count(), 541'363'848);
  EXPECT_EQ(poisson[2].count(), 669'578'413);
  EXPECT_EQ(poisson.size(), 601U);
  EXPECT_EQ(Generate(Traffic::kBursts, {}).size(), 404U);
  EXPECT_EQ(Generate(Traffic::kOnOff, {}).size(), 541U);
}

TEST(Traffic, AnotherSeedIsOtherTraffic) {
  for (const Traffic traffic : {Traffic::kPoisson, Traffic::kBursts, Traffic::kOnOff}) {
    EXPECT_NE(Generate(traffic, {.seed = 1}), Generate(traffic, {.seed = 2}));
    EXPECT_EQ(Generate(traffic, {.seed = 2}), Generate(traffic, {.seed = 2}));
  }
}

// Streams of neighbouring seeds that were shifts of one another would all have nearly the same
// number of requests; a Poisson count varies by as much as it is.
TEST(Traffic, PoissonCountsVaryFromSeedToSeedAsTheyShould) {
  double sum = 0;
  double squares = 0;
  constexpr int kSeeds = 400;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto count = static_cast<double>(Generate(Traffic::kPoisson, {.seed = seed}).size());
    sum += count;
    squares += count * count;
  }
  const double mean = sum / kSeeds;
  const double variance = squares / kSeeds - mean * mean;
  EXPECT_NEAR(mean, 600, 5);
  EXPECT_NEAR(variance / mean, 1.0, 0.25);
}

TEST(Random, ExponentialHasItsMeanAndItsTail) {
  Random random(99);
  constexpr int kDraws = 200'000;
  double sum = 0;
  int beyond_mean = 0;
  int beyond_three = 0;
  for (int i = 0; i < kDraws; ++i) {
    const Duration gap = random.Exponential(seconds(1));
    sum += static_cast<double>(gap.count()) / 1e9;
    beyond_mean += gap > seconds(1) ? 1 : 0;
    beyond_three += gap > seconds(3) ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 1.0, 0.01);
  EXPECT_NEAR(static_cast<double>(beyond_mean) / kDraws, std::exp(-1.0), 0.005);
  EXPECT_NEAR(static_cast<double>(beyond_three) / kDraws, std::exp(-3.0), 0.003);
}

TEST(Random, BelowStaysBelow) {
  Random random(5);
  std::vector<int> seen(6, 0);
  for (int i = 0; i < 6000; ++i) ++seen.at(random.Below(6));
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
}

TEST(Traffic, EdgePutsTheWholeLimitOnBothSidesOfTheEdgeAndThenPolls) {
  const auto arrivals = Generate(Traffic::kEdge, {});
  EXPECT_EQ(CountIn(arrivals, seconds(0), milliseconds(59'700)), 0U);
  EXPECT_EQ(CountIn(arrivals, milliseconds(59'700), seconds(60)), 100U);
  EXPECT_EQ(CountIn(arrivals, seconds(60), milliseconds(60'300)), 100U);
  EXPECT_NEAR(static_cast<double>(CountIn(arrivals, milliseconds(60'300), seconds(120))), 149, 2);
  // The knock that opens a first-hit window ahead of the next edge.
  EXPECT_EQ(CountIn(arrivals, seconds(120), milliseconds(179'700)), 1U);
}

TEST(Traffic, OnOffRestsForMoreThanHalfTheTime) {
  const auto arrivals = Generate(Traffic::kOnOff, {});
  EXPECT_EQ(CountIn(arrivals, seconds(0), seconds(15)), 0U);
  EXPECT_GT(CountIn(arrivals, seconds(15), seconds(45)), 100U);
  EXPECT_EQ(CountIn(arrivals, seconds(45), seconds(90)), 0U);
  EXPECT_GT(CountIn(arrivals, seconds(90), seconds(120)), 100U);
}

TEST(Traffic, BurstsComeAsCrowds) {
  const auto arrivals = Generate(Traffic::kBursts, {});
  // All requests of half a window lie within a second of its first.
  for (int slot = 0; slot < 8; ++slot) {
    std::vector<Duration> inside;
    for (const Duration at : arrivals) {
      if (at / seconds(30) == slot)
        inside.push_back(at);
    }
    ASSERT_FALSE(inside.empty());
    EXPECT_LT(inside.back() - inside.front(), seconds(1));
  }
}

TEST(Traffic, NamesAreFoundAndOthersAreNot) {
  for (const TrafficInfo& info : AllTraffic()) {
    EXPECT_EQ(FindTraffic(info.name), info.traffic);
    EXPECT_EQ(Info(info.traffic).name, info.name);
  }
  EXPECT_FALSE(FindTraffic("poison").has_value());
}

}  // namespace
}  // namespace weir::simulate
