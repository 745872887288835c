#include "apps/weir/simulate/statistics.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "apps/weir/simulate/traffic.h"

namespace weir::simulate {
namespace {

using std::chrono::seconds;

std::vector<Duration> Seconds(std::initializer_list<int> values) {
  std::vector<Duration> out;
  for (const int value : values) out.emplace_back(seconds(value));
  return out;
}

// Random stamps with many ties and many at exactly one window's distance.
std::vector<Duration> RandomStamps(Random& random, size_t count) {
  std::vector<Duration> stamps;
  stamps.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    stamps.emplace_back(seconds(static_cast<int64_t>(random.Below(40))));
  }
  std::sort(stamps.begin(), stamps.end());
  return stamps;
}

TEST(WorstWindow, OfNothingIsNothing) {
  EXPECT_EQ(WorstWindow({}, seconds(60)), 0U);
}

TEST(WorstWindow, DoesNotCountTwoStampsThatAreExactlyAWindowApart) {
  EXPECT_EQ(WorstWindow(Seconds({0, 60}), seconds(60)), 1U);
  EXPECT_EQ(WorstWindow(Seconds({0, 59}), seconds(60)), 2U);
}

TEST(WorstWindow, FindsTheCrowdAcrossTheEdge) {
  EXPECT_EQ(WorstWindow(Seconds({1, 58, 59, 60, 61, 100, 130}), seconds(60)), 5U);
}

TEST(WorstWindow, AgreesWithTryingEveryWindow) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    const auto stamps = RandomStamps(random, random.Below(30));
    uint64_t worst = 0;
    for (const Duration end : stamps) {
      const auto inside = std::count_if(stamps.begin(), stamps.end(), [&](Duration at) {
        return end - seconds(10) < at && at <= end;
      });
      worst = std::max(worst, static_cast<uint64_t>(inside));
    }
    EXPECT_EQ(WorstWindow(stamps, seconds(10)), worst);
  }
}

TEST(CountWrong, AnExactLogIsNeverWrong) {
  Random random(4);
  for (int round = 0; round < 200; ++round) {
    const auto arrivals = RandomStamps(random, 40);
    std::vector<Duration> log;
    Decisions decisions;
    for (const Duration at : arrivals) {
      const auto inside = std::count_if(log.begin(), log.end(),
                                        [&](Duration stamp) { return stamp > at - seconds(10); });
      decisions.push_back(inside < 3 ? 1 : 0);
      if (inside < 3)
        log.push_back(at);
    }
    const WrongDecisions wrong = CountWrong(arrivals, decisions, seconds(10), 3);
    EXPECT_EQ(wrong.false_allow, 0U);
    EXPECT_EQ(wrong.false_deny, 0U);
    // Turning one decision over is noticed.
    const size_t flipped = random.Below(decisions.size());
    decisions[flipped] = decisions[flipped] == 0 ? 1 : 0;
    const WrongDecisions now = CountWrong(arrivals, decisions, seconds(10), 3);
    EXPECT_GE(now.false_allow + now.false_deny, 1U);
  }
}

TEST(CountWrong, CountsWhatGoesOverAndWhatIsRefusedWithoutNeed) {
  const auto arrivals = Seconds({0, 1, 2, 3, 60, 61});
  // Limit 2: the third admission is one too many; at 60 s the first has left but two are still
  // inside; at 61 s there is room, and it is refused.
  const Decisions decisions = {1, 1, 1, 0, 0, 0};
  const WrongDecisions wrong = CountWrong(arrivals, decisions, seconds(60), 2);
  EXPECT_EQ(wrong.false_allow, 1U);
  EXPECT_EQ(wrong.false_deny, 1U);
}

TEST(Histogram, CountsEveryArrivalOnceAndPutsAnEdgeIntoTheLaterBin) {
  const auto arrivals = Seconds({0, 9, 10, 19, 20, 29, 29});
  EXPECT_EQ(Histogram(arrivals, seconds(30), 3), (std::vector<uint64_t>{2, 2, 3}));
  const auto poisson = Generate(Traffic::kPoisson, {});
  const auto bins = Histogram(poisson, std::chrono::minutes(4), 37);
  EXPECT_EQ(std::accumulate(bins.begin(), bins.end(), uint64_t{0}), poisson.size());
}

TEST(Histogram, CoversWindowsOfYears) {
  const Duration years = std::chrono::hours(24 * 365 * 40);
  const std::vector<Duration> arrivals = {Duration(0), years / 2, years - Duration(1)};
  EXPECT_EQ(Histogram(arrivals, years, 4), (std::vector<uint64_t>{1, 0, 1, 1}));
}

TEST(Admitted, KeepsTheStampsOfWhatWasLetThrough) {
  const Decisions decisions = {1, 0, 1};
  EXPECT_EQ(Admitted(Seconds({1, 2, 3}), decisions), Seconds({1, 3}));
}

}  // namespace
}  // namespace weir::simulate
