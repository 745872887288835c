#include "apps/weir/simulate/statistics.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "weir/quota.h"

#include "apps/weir/simulate/traffic.h"

namespace weir::simulate {
namespace {

using std::chrono::seconds;

std::vector<Duration> Seconds(std::initializer_list<int> values) {
  std::vector<Duration> out;
  for (const int value : values) out.emplace_back(seconds(value));
  return out;
}

Workload OneKey(const std::vector<Duration>& stamps) {
  Workload workload;
  workload.keys = {"k"};
  for (const Duration at : stamps) workload.requests.push_back({at, 0, 1});
  return workload;
}

uint64_t WorstWindow(const std::vector<Duration>& stamps, Duration window) {
  return Judge(OneKey(stamps), Decisions(stamps.size(), 1), window, 1, {}).worst_window;
}

WrongDecisions CountWrong(const std::vector<Duration>& stamps, const Decisions& decisions,
                          Duration window, uint64_t limit) {
  return Judge(OneKey(stamps), decisions, window, limit, {}).wrong;
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

TEST(CountWrong, WeighsCosts) {
  Workload workload = OneKey(Seconds({0, 1, 2, 3, 60}));
  const std::array<uint32_t, 5> costs = {6, 5, 4, 1, 6};
  for (size_t i = 0; i < costs.size(); ++i) workload.requests[i].cost = costs[i];
  // Limit 10. 5 does not fit beside 6 and is admitted; 4 does not fit beside 11 and is refused
  // rightly, as is 1; at 60 s 6 fits beside 5 no more than before.
  const Score score = Judge(workload, Decisions{1, 1, 0, 0, 0}, seconds(60), 10, {});
  EXPECT_EQ(score.wrong.false_allow, 1U);
  EXPECT_EQ(score.wrong.false_deny, 0U);
  EXPECT_EQ(score.worst_window, 11U);
  // Had the 5 been refused, 4 would have filled the limit and the last 6 would fit beside it.
  const Score other = Judge(workload, Decisions{1, 0, 1, 0, 0}, seconds(60), 10, {});
  EXPECT_EQ(other.wrong.false_allow, 0U);
  EXPECT_EQ(other.wrong.false_deny, 1U);
  EXPECT_EQ(other.worst_window, 10U);
}

TEST(CountWrong, KeepsKeysApart) {
  Workload workload = OneKey(Seconds({0, 1, 2, 3}));
  workload.keys = {"a", "b"};
  workload.requests[1].key = workload.requests[3].key = 1;
  // Limit 1: each key's first is right, each key's second is over, although no key saw more than 2.
  const Score score = Judge(workload, Decisions{1, 1, 1, 1}, seconds(60), 1, {});
  EXPECT_EQ(score.wrong.false_allow, 2U);
  EXPECT_EQ(score.worst_window, 2U);
}

TEST(DecideExactly, AdmitsWhatFitsIntoTheLastWindowOfItsKey) {
  Workload workload = OneKey(Seconds({0, 1, 59, 60, 61, 61}));
  workload.keys = {"a", "b"};
  workload.requests[2].key = 1;
  // Limit 2, key a: 0 and 1 fill it, at 60 the first has left, at 61 the second.
  workload.requests[5].cost = 2;  // and nothing is left for two more
  const Decisions decisions = DecideExactly(workload, seconds(60), 2);
  EXPECT_EQ(decisions, (Decisions{1, 1, 1, 1, 1, 0}));
  EXPECT_EQ(CountDifferences(decisions, Decisions{1, 0, 1, 1, 0, 0}), 2U);
}

TEST(Judge, DrawsTheRollingWindowThroughPartsWithoutRequests) {
  const Workload workload = OneKey(Seconds({0, 1, 2, 75}));
  const Score score = Judge(workload, Decisions{1, 1, 1, 1}, seconds(60), 3, {seconds(120), 6});
  // 20 s a part: three requests stay for a minute, the one at 75 s until the end.
  EXPECT_EQ(score.window_bins, (std::vector<uint64_t>{3, 3, 3, 2, 1, 1}));
  EXPECT_EQ(score.admitted_bins, (std::vector<uint64_t>{3, 0, 0, 1, 0, 0}));
}

TEST(Histogram, CountsEveryArrivalOnceAndPutsAnEdgeIntoTheLaterBin) {
  const Workload workload = OneKey(Seconds({0, 9, 10, 19, 20, 29, 29}));
  EXPECT_EQ(Histogram(workload.requests, {seconds(30), 3}), (std::vector<uint64_t>{2, 2, 3}));
  const Workload poisson = OneKey(Generate(Traffic::kPoisson, {}));
  const auto bins = Histogram(poisson.requests, {std::chrono::minutes(4), 37});
  EXPECT_EQ(std::accumulate(bins.begin(), bins.end(), uint64_t{0}), poisson.requests.size());
}

TEST(Histogram, CoversWindowsOfYears) {
  const Duration years = std::chrono::hours(24 * 365 * 40);
  const Workload workload = OneKey({Duration(0), years / 2, years - Duration(1)});
  EXPECT_EQ(Histogram(workload.requests, {years, 4}), (std::vector<uint64_t>{1, 0, 1, 1}));
}

TEST(MeasureWaits, LooksAtWhatWasAdmittedOnly) {
  std::vector<Duration> waits;
  Decisions decisions;
  for (int i = 1; i <= 200; ++i) {
    waits.emplace_back(i);
    decisions.push_back(i <= 101 ? 1 : 0);
  }
  const Waits measured = MeasureWaits(decisions, waits);
  EXPECT_EQ(measured.mean, Duration(51));
  EXPECT_EQ(measured.p99, Duration(100));
  EXPECT_EQ(measured.longest, Duration(101));
  EXPECT_EQ(MeasureWaits({}, {}).longest, Duration::zero());
  const std::vector<Duration> years(1000, Quota::kMaxHorizon);
  EXPECT_EQ(MeasureWaits(Decisions(1000, 1), years).mean, Quota::kMaxHorizon);
}

TEST(JudgeStarts, CountsAWindowByStartsAndTheRestByArrivals) {
  Workload workload;
  workload.keys = {"k"};
  for (int i = 0; i < 4; ++i) workload.requests.push_back({.at = Duration(0)});
  const std::vector<Duration> waits = {Duration(0), Duration(10), Duration(20), Duration(0)};
  const Decisions decisions = {1, 1, 1, 0};
  const Score score =
      JudgeStarts(workload, decisions, waits, Duration(10), 1, Bins{Duration(40), 4});
  EXPECT_EQ(score.admitted, 3U);
  EXPECT_EQ(score.worst_window, 1U);
  EXPECT_EQ(score.wrong.false_allow, 0U);
  EXPECT_EQ(score.admitted_bins, (std::vector<uint64_t>{3, 0, 0, 0}));
  EXPECT_EQ(Judge(workload, decisions, Duration(10), 1, Bins{Duration(40), 4}).worst_window, 3U);
}

TEST(MostAtOnce, CountsUnitsOfOneKeyThatOverlap) {
  Workload workload;
  workload.keys = {"a", "b"};
  workload.requests = {{.at = Duration(0), .key = 0, .cost = 2, .service = Duration(10)},
                       {.at = Duration(3), .key = 1, .cost = 9, .service = Duration(2)},
                       {.at = Duration(5), .key = 0, .cost = 4, .service = Duration(5)},
                       {.at = Duration(9), .key = 0, .cost = 50, .service = Duration(9)},
                       {.at = Duration(10), .key = 0, .cost = 5, .service = Duration(1)}};
  // What ends at an instant makes room for what starts then.
  EXPECT_EQ(MostAtOnce(workload, Decisions{1, 0, 1, 0, 1}), 6U);
  EXPECT_EQ(MostAtOnce(workload, Decisions{1, 1, 1, 0, 1}), 9U) << "keys are not added up";
  EXPECT_EQ(MostAtOnce(workload, Decisions{1, 1, 1, 1, 1}), 56U);
  EXPECT_EQ(MostAtOnce(workload, Decisions{0, 0, 0, 0, 0}), 0U);
}

}  // namespace
}  // namespace weir::simulate
