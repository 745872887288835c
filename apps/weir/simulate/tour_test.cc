// The tour on the real library: what it measures, what it says, and that it fits the terminal.
#include "apps/weir/simulate/tour.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "apps/weir/simulate/advice.h"
#include "apps/weir/simulate/options.h"
#include "apps/weir/simulate/report.h"
#include "apps/weir/text.h"

namespace weir::simulate {

using app::Columns;
namespace {

using app::Charset;
using app::Colors;
using app::Terminal;

Tour MustRun(const RawOptions& raw, size_t width = 80) {
  auto plan = MakePlan(raw);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  plan->bins = PictureColumns(width, plan->spec.duration, plan->limit.window);
  auto tour = RunTour(*std::move(plan));
  EXPECT_TRUE(tour.ok()) << tour.error().message;
  return *std::move(tour);
}

const Score& ScoreOf(const Tour& tour, std::string_view name, Traffic traffic) {
  for (const Stage& stage : tour.stages) {
    if (stage.name != Info(traffic).name)
      continue;
    for (size_t i = 0; i < stage.scores.size(); ++i) {
      if (tour.plan.contenders[i].name() == name)
        return stage.scores[i];
    }
  }
  ADD_FAILURE() << "no " << name;
  return tour.stages.front().scores.front();
}

TEST(Tour, TheAdversaryReachesTheWorstWindowThatEachAlgorithmAllows) {
  const Tour tour = MustRun({.algorithms = {"all"}, .traffic = {"edge"}, .limit = "100/min"});
  EXPECT_EQ(ScoreOf(tour, "fixed-window", Traffic::kEdge).worst_window, 200U);
  EXPECT_EQ(ScoreOf(tour, "sliding-window", Traffic::kEdge).worst_window, 200U);
  EXPECT_EQ(ScoreOf(tour, "first-hit", Traffic::kEdge).worst_window, 199U);
  EXPECT_EQ(ScoreOf(tour, "token-bucket", Traffic::kEdge).worst_window, 199U);
  EXPECT_EQ(ScoreOf(tour, "leaky-bucket", Traffic::kEdge).worst_window, 199U);
}

TEST(Tour, ASmallBurstKeepsTheAdversaryCloseToTheLimit) {
  const Tour tour = MustRun({.algorithms = {"token-bucket"}, .traffic = {"edge"}, .burst = "20"});
  EXPECT_EQ(ScoreOf(tour, "token-bucket", Traffic::kEdge).worst_window, 119U);
}

TEST(Tour, NoTrafficGoesBeyondWhatAnAlgorithmPromises) {
  for (const char* limit : {"100/min", "10/s", "3/h", "1/min"}) {
    for (const char* rate : {"0.5", "1", "3"}) {
      for (const char* seed : {"1", "2", "3"}) {
        const Tour tour =
            MustRun({.algorithms = {"all"}, .limit = limit, .rate = rate, .seed = seed});
        for (size_t i = 0; i < tour.totals.size(); ++i) {
          const Contender& contender = tour.plan.contenders[i];
          EXPECT_LE(tour.totals[i].worst_window, contender.WorstPossible())
              << contender.name() << " " << limit << " " << rate;
        }
      }
    }
  }
}

TEST(Tour, LeakyBucketDecidesAsTokenBucketDoes) {
  const Tour tour = MustRun({.algorithms = {"token-bucket", "leaky-bucket"}, .burst = "30"});
  for (const Stage& stage : tour.stages) {
    EXPECT_EQ(stage.scores[0].admitted, stage.scores[1].admitted);
    EXPECT_EQ(stage.scores[0].admitted_bins, stage.scores[1].admitted_bins);
  }
}

TEST(Tour, AQueueStartsNoMoreThanTheLimitInAnyWindowAndSaysHowLongItTook) {
  const Tour tour = MustRun({.algorithms = {"queue", "leaky-bucket"}, .burst = "50", .rate = "2"});
  EXPECT_LE(tour.totals[0].worst_window, 100U);
  EXPECT_EQ(tour.totals[0].wrong.false_allow, 0U);
  EXPECT_EQ(tour.totals[0].admitted, tour.totals[1].admitted) << "it delays, it admits no other";
  for (const Stage& stage : tour.stages) {
    const Waits& waits = stage.scores[0].waits;
    EXPECT_LE(waits.mean, waits.longest);
    EXPECT_LE(waits.p99, waits.longest);
    EXPECT_LE(waits.longest, tour.plan.contenders[0].quota().longest_wait());
    EXPECT_EQ(stage.scores[1].waits.longest, Duration::zero());
  }
  const Waits& edge = ScoreOf(tour, "queue", Traffic::kEdge).waits;
  EXPECT_EQ(edge.longest, tour.plan.contenders[0].quota().longest_wait()) << "all of it at once";
  const std::string text = Report(tour, {80, Colors::kNone, Charset::kAscii});
  EXPECT_NE(text.find("waits: mean "), std::string::npos) << text;
}

// What a limit on those at work must do, spelled out: of the requests admitted so far those that
// have not ended leave room for this one, or not.
Decisions DecideByCounting(const Workload& workload, uint64_t places) {
  Decisions decisions;
  for (const Request& request : workload.requests) {
    uint64_t busy = 0;
    for (size_t i = 0; i < decisions.size(); ++i) {
      const Request& other = workload.requests[i];
      if (decisions[i] != 0 && other.key == request.key && other.at + other.service > request.at)
        busy += other.cost;
    }
    decisions.push_back(busy + request.cost <= places ? 1 : 0);
  }
  return decisions;
}

TEST(Tour, ConcurrencyAdmitsIffAPlaceIsFree) {
  for (const char* service : {"6s", "1s-11s", "100ms", "30s-3min", "1ns"}) {
    for (const char* cost : {"1", "1-4"}) {
      const Tour tour = MustRun(
          {.algorithms = {"concurrency:8", "token-bucket"}, .cost = cost, .service = service});
      for (size_t i = 0; i < tour.stages.size(); ++i) {
        const Workload workload =
            MakeWorkload(tour.plan.traffic[i], tour.plan.spec, tour.plan.cost, tour.plan.service);
        EXPECT_EQ(*tour.plan.contenders[0].Decide(workload), DecideByCounting(workload, 8))
            << service << " " << cost << " " << tour.stages[i].name;
        EXPECT_LE(tour.stages[i].scores[0].at_once, 8U);
      }
      EXPECT_LE(tour.totals[0].worst_window,
                tour.plan.contenders[0].WorstPossible(tour.LargestCost()));
    }
  }
  const Tour tour =
      MustRun({.algorithms = {"concurrency:8", "token-bucket"}, .traffic = {"bursts"}});
  EXPECT_EQ(tour.stages[0].scores[0].at_once, 8U);
  EXPECT_GT(tour.stages[0].scores[1].at_once, 50U) << "a bucket lets a crowd in";
  const std::string text = Report(tour, {80, Colors::kNone, Charset::kAscii});
  EXPECT_NE(text.find("8 at once"), std::string::npos) << text;
  EXPECT_NE(text.find("at most 8 at work at once"), std::string::npos) << text;
  EXPECT_EQ(Report(MustRun({}), {80, Colors::kNone, Charset::kAscii}).find("at work at once"),
            std::string::npos);
}

TEST(Tour, ConcurrencyHasAsManyPlacesAsTheLimitKeepsBusy) {
  const auto places = [](const char* limit, const char* service) {
    return MustRun({.algorithms = {"concurrency"}, .service = service, .limit = limit})
        .plan.contenders[0]
        .quota()
        .limit();
  };
  EXPECT_EQ(places("100/min", ""), 10U);
  EXPECT_EQ(places("100/min", "6s"), 10U);
  EXPECT_EQ(places("100/min", "6100ms"), 11U);
  EXPECT_EQ(places("100/min", "1ms"), 1U);
  EXPECT_EQ(places("1000/s", "100ms-300ms"), 200U);
  EXPECT_EQ(places("1000/s", "366d"), 65535U);
}

TEST(Tour, MinGapNeverGoesOverTheLimit) {
  const Tour tour = MustRun({.algorithms = {"min-gap"}, .rate = "10"});
  EXPECT_LE(tour.totals[0].worst_window, 100U);
  EXPECT_EQ(tour.totals[0].wrong.false_allow, 0U);
}

TEST(Tour, SteadyTrafficBelowTheLimitIsAdmittedWhole) {
  const Tour tour =
      MustRun({.algorithms = {"all"}, .traffic = {"steady"}, .service = "6s", .rate = "0.9"});
  for (const Total& total : tour.totals) {
    EXPECT_EQ(total.admitted, total.offered);
    EXPECT_EQ(total.wrong.false_allow + total.wrong.false_deny, 0U);
  }
}

TEST(Tour, CountsAddUp) {
  const Tour tour = MustRun({.algorithms = {"all"}});
  for (const Stage& stage : tour.stages) {
    for (const Score& score : stage.scores) {
      EXPECT_EQ(score.admitted + score.denied, stage.offered);
      for (size_t i = 0; i < stage.offered_bins.size(); ++i) {
        EXPECT_LE(score.admitted_bins[i], stage.offered_bins[i]);
      }
    }
  }
}

TEST(Tour, NoCostGoesBeyondWhatAnAlgorithmPromises) {
  for (const char* cost : {"1-10", "7", "50-100"}) {
    const Tour tour = MustRun({.algorithms = {"all", "min-gap"}, .cost = cost, .rate = "3"});
    for (size_t i = 0; i < tour.totals.size(); ++i) {
      EXPECT_LE(tour.totals[i].worst_window,
                tour.plan.contenders[i].WorstPossible(tour.LargestCost()))
          << tour.plan.contenders[i].name() << " " << cost;
    }
  }
}

TEST(Tour, AllLeavesOutWhatMakesNoSense) {
  auto names = [](const RawOptions& raw) {
    std::set<std::string> out;
    const TourPlan plan = *MakePlan(raw);
    for (const Contender& contender : plan.contenders) out.insert(contender.name());
    return out;
  };
  const auto minute = names({.algorithms = {"all"}});
  EXPECT_EQ(minute.count("calendar"), 0U);
  EXPECT_EQ(minute.count("min-gap"), 1U);
  EXPECT_EQ(minute.size(), AllKinds().size() - 1);
  EXPECT_EQ(names({.algorithms = {"all"}, .limit = "100/d"}).count("calendar"), 1U);
  EXPECT_EQ(names({.algorithms = {"all"}, .cost = "1-5"}).count("min-gap"), 0U);
}

TEST(Tour, ACalendarDayTurnsWhereAWindowOfADayDoes) {
  const Tour tour = MustRun({.algorithms = {"calendar", "fixed-window"}, .limit = "100/d"});
  for (const Stage& stage : tour.stages) {
    EXPECT_EQ(stage.scores[0].admitted_bins, stage.scores[1].admitted_bins) << stage.name;
    EXPECT_EQ(stage.scores[0].worst_window, stage.scores[1].worst_window) << stage.name;
  }
}

TEST(Tour, TheAdversaryReachesTwiceACalendarQuota) {
  const Tour tour = MustRun({.algorithms = {"calendar"}, .traffic = {"edge"}, .limit = "100/d"});
  EXPECT_EQ(ScoreOf(tour, "calendar", Traffic::kEdge).worst_window, 200U);
}

TEST(Contender, KnowsTheBytesOfItsSlots) {
  auto bytes = [](const char* name, const char* limit) {
    return MakePlan({.algorithms = {name}, .limit = limit})->contenders[0].DecibytesPerKey();
  };
  EXPECT_EQ(bytes("token-bucket", "100/min"), 150U);
  EXPECT_EQ(bytes("token-bucket", "7/min"), 300U);  // no whole microseconds
  EXPECT_EQ(bytes("sliding-window", "100/min"), 300U);
  EXPECT_EQ(bytes("min-gap", "100/min"), 150U);
  // Records: the stamps of 100 units are 800 bytes, the counters of 61 slices 488.
  EXPECT_GE(bytes("sliding-log", "100/min"), 8000U);
  EXPECT_LE(bytes("sliding-log", "100/min"), 9600U);
  EXPECT_GE(bytes("sliced-window", "100/min"), 4880U);
  EXPECT_LE(bytes("sliced-window", "100/min"), 6500U);
}

TEST(Tour, TheLogMakesNoMistakeAndSlicesAdmitNoneTooMany) {
  const Tour tour = MustRun({.algorithms = {"sliding-log", "sliced-window"}});
  for (const Stage& stage : tour.stages) {
    EXPECT_EQ(stage.scores[0].wrong.false_allow, 0U) << stage.name;
    EXPECT_EQ(stage.scores[0].wrong.false_deny, 0U) << stage.name;
    EXPECT_EQ(stage.scores[1].wrong.false_allow, 0U) << stage.name;
    EXPECT_LE(stage.scores[1].worst_window, 100U) << stage.name;
  }
}

TEST(Applies, LeavesOutWhatCannotHoldTheLimit) {
  const Limit many{.limit = Quota::kMaxLogLimit + 1};
  EXPECT_TRUE(Applies(*FindKind("sliding-log"), {}, 1));
  EXPECT_FALSE(Applies(*FindKind("sliding-log"), many, 1));
  EXPECT_TRUE(Applies(*FindKind("sliced-window"), many, 1));
}

TEST(Remark, SaysThatACostCanNeverPass) {
  const Tour tour = MustRun({.traffic = {"steady"}, .cost = "101"});
  EXPECT_NE(Remark(tour, tour.stages[0]).find("can never pass"), std::string::npos);
}

TEST(Advice, NamesTheBestByEachMeasure) {
  const Tour tour = MustRun({});
  std::set<std::string> picked;
  for (const Advice& advice : Advise(tour)) {
    picked.insert(tour.plan.contenders[advice.contender].name());
  }
  // Each of the four is the answer to something: that is what makes them the four to show.
  EXPECT_EQ(picked, (std::set<std::string>{"fixed-window", "sliding-window", "token-bucket:100",
                                           "token-bucket:20"}));
  EXPECT_TRUE(Advise(MustRun({.algorithms = {"min-gap"}})).empty());
}

TEST(Remark, NamesWhoWentOverAndWhoDidNot) {
  const Tour tour = MustRun({.algorithms = {"fixed-window", "min-gap"}, .traffic = {"edge"}});
  const std::string text = Remark(tour, tour.stages[0]);
  EXPECT_EQ(text.rfind("fixed-window let 200 through in 1 min, min-gap never more than ", 0), 0U)
      << text;
}

TEST(Remark, SaysSoWhenNothingHappened) {
  const Tour tour = MustRun({.traffic = {"steady"}, .rate = "0.5"});
  EXPECT_EQ(Remark(tour, tour.stages[0]),
            "nobody went over the limit, and nobody was refused without need");
}

TEST(Report, FitsTheWidthAndTheCharset) {
  for (const size_t width : {kMinWidth, size_t{80}, size_t{120}, size_t{200}}) {
    const Tour tour = MustRun({.algorithms = {"all", "token-bucket:20"}}, width);
    for (const Charset charset : {Charset::kAscii, Charset::kUtf8}) {
      const std::string text = Report(tour, {width, Colors::kNone, charset});
      size_t from = 0;
      while (from < text.size()) {
        const size_t end = text.find('\n', from);
        const std::string_view line = std::string_view(text).substr(from, end - from);
        EXPECT_LE(Columns(line), width) << line;
        EXPECT_TRUE(line.empty() || line.back() != ' ') << "'" << line << "'";
        from = end + 1;
      }
      EXPECT_EQ(text.find('\x1b'), std::string::npos);
      const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return c > 0; });
      EXPECT_EQ(ascii, charset == Charset::kAscii);
    }
  }
}

TEST(Report, ShowsTheNumbersThatWereMeasured) {
  const Tour tour = MustRun({.algorithms = {"fixed-window"}, .traffic = {"edge"}});
  const std::string text = Report(tour, {80, Colors::kNone, Charset::kAscii});
  EXPECT_NE(text.find("=====|===== 2.00x"), std::string::npos) << text;
  EXPECT_NE(text.find("2L = 200"), std::string::npos) << text;
}

TEST(Report, KeepsColumnsApartWhenNamesAreLong) {
  const Tour tour = MustRun({.algorithms = {"token-bucket:4000000", "min-gap"}, .rate = "0.1"});
  const std::string text = Report(tour, {80, Colors::kNone, Charset::kAscii});
  EXPECT_NE(text.find("token-bucket:4000000  40000.99x  B+L-1 = 4000099 B at"), std::string::npos)
      << text;
}

TEST(Report, IsTheSameEveryTime) {
  const Terminal terminal{80, Colors::kAnsi, Charset::kUtf8};
  EXPECT_EQ(Report(MustRun({}), terminal), Report(MustRun({}), terminal));
}

TEST(Catalogue, NamesEveryAlgorithmAndTraffic) {
  const std::string text = Catalogue({});
  for (const KindInfo& info : AllKinds()) {
    EXPECT_NE(text.find(info.name), std::string::npos);
    EXPECT_EQ(FindKind(info.name), &info);
  }
  for (const TrafficInfo& info : AllTraffic()) EXPECT_NE(text.find(info.name), std::string::npos);
}

}  // namespace
}  // namespace weir::simulate
