// The figures of docs/accuracy.md about the sliding counter, measured against an exact log that
// decides the same arrivals by itself. A change of the algorithm that moves them fails here, and
// the document has to follow.
#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "apps/weir/simulate/options.h"
#include "apps/weir/simulate/tour.h"

namespace weir::simulate {
namespace {

struct Measured {
  double differ = 0;  // share of the decisions, as are the next two
  double false_allow = 0;
  double false_deny = 0;
  double worst = 0;  // fullest window / limit
};

Measured Measure(TourPlan plan) {
  const auto limit = static_cast<double>(plan.limit.limit);
  auto tour = RunTour(std::move(plan));
  EXPECT_TRUE(tour.ok()) << tour.error().message;
  const Total& total = tour->totals[0];
  const auto offered = static_cast<double>(total.offered);
  return {static_cast<double>(total.differ) / offered,
          static_cast<double>(total.wrong.false_allow) / offered,
          static_cast<double>(total.wrong.false_deny) / offered,
          static_cast<double>(total.worst_window) / limit};
}

Measured MeasurePoisson(const std::string& rate, const std::string& seed) {
  return Measure(*MakePlan({.algorithms = {"sliding-window"},
                            .traffic = {"poisson"},
                            .duration = "100min",
                            .rate = rate,
                            .seed = seed}));
}

// 200 keys at 5 to 75 % of the limit, each a Poisson process of its own.
Workload Crowd(uint64_t seed) {
  constexpr uint32_t kKeys = 200;
  Workload crowd;
  for (uint32_t key = 0; key < kKeys; ++key) {
    crowd.keys.push_back("key" + std::to_string(key));
    TrafficSpec spec;
    spec.duration = std::chrono::minutes(60);
    spec.rate_milli = 50 + 700 * static_cast<int64_t>(key) / (kKeys - 1);
    spec.seed = seed * kKeys + key;
    for (const Duration at : Generate(Traffic::kPoisson, spec)) {
      crowd.requests.push_back({at, key, 1});
    }
  }
  std::sort(crowd.requests.begin(), crowd.requests.end(), [](const Request& a, const Request& b) {
    return std::pair(a.at, a.key) < std::pair(b.at, b.key);
  });
  return crowd;
}

TEST(SlidingCounterAccuracy, IsExactOnAKeyAtHalfTheLimit) {
  for (const char* seed : {"1", "2", "3"}) {
    EXPECT_EQ(MeasurePoisson("0.5", seed).differ, 0) << seed;
  }
}

TEST(SlidingCounterAccuracy, ErrsInOneOfTenThousandOnQuietTraffic) {
  for (const uint64_t seed : {1U, 2U, 3U}) {
    auto plan = *MakePlan({.algorithms = {"sliding-window"}, .duration = "60min"});
    plan.traffic.clear();
    plan.trace = Crowd(seed);
    const Measured measured = Measure(std::move(plan));
    EXPECT_GT(measured.differ, 0);
    EXPECT_LT(measured.differ, 0.0001);
    EXPECT_LE(measured.worst, 1.2);
  }
}

TEST(SlidingCounterAccuracy, DiffersByAFewPercentNearTheLimitAndMoreBeyondIt) {
  struct Range {
    const char* rate;
    double least;
    double most;
  };
  for (const Range& range : {Range{"0.9", 0.02, 0.05}, Range{"1", 0.07, 0.11},
                             Range{"1.05", 0.10, 0.13}, Range{"1.5", 0.29, 0.33}}) {
    for (const char* seed : {"1", "2", "3"}) {
      const Measured measured = MeasurePoisson(range.rate, seed);
      EXPECT_GE(measured.differ, range.least) << range.rate << " seed " << seed;
      EXPECT_LE(measured.differ, range.most) << range.rate << " seed " << seed;
      EXPECT_LE(measured.worst, 1.2) << range.rate << " seed " << seed;
    }
  }
}

TEST(SlidingCounterAccuracy, IsWrongByItsOwnHistoryMoreOftenThanItDiffers) {
  for (const char* seed : {"1", "2", "3"}) {
    const Measured measured = MeasurePoisson("1", seed);
    EXPECT_GE(measured.false_allow + measured.false_deny, 0.15) << seed;
    EXPECT_LE(measured.false_allow + measured.false_deny, 0.18) << seed;
    EXPECT_GT(measured.false_allow, 2 * measured.false_deny) << seed;
  }
}

TEST(SlidingCounterAccuracy, LetsAnAdversaryHaveTwiceTheLimit) {
  const Measured measured =
      Measure(*MakePlan({.algorithms = {"sliding-window"}, .traffic = {"edge"}}));
  EXPECT_EQ(measured.worst, 2.0);
}

}  // namespace
}  // namespace weir::simulate
