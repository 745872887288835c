#include "apps/weir/simulate/tour.h"

#include <algorithm>
#include <utility>

namespace weir::simulate {
namespace {

Result<Stage> RunStage(const TourPlan& plan, const Workload& workload) {
  const auto limit = static_cast<uint64_t>(plan.limit.limit);
  const Bins bins{plan.spec.duration, plan.bins};
  Stage stage;
  stage.name = workload.name;
  stage.line = workload.line;
  stage.offered = workload.requests.size();
  stage.keys = workload.keys.size();
  for (const Request& request : workload.requests) {
    stage.units += request.cost;
    stage.largest_cost = std::max<uint64_t>(stage.largest_cost, request.cost);
    stage.never_fit += request.cost > limit ? 1 : 0;
  }
  stage.offered_bins = Histogram(workload.requests, bins);
  const Decisions truth = DecideExactly(workload, plan.limit.window, limit);
  for (const Contender& contender : plan.contenders) {
    std::vector<Duration> waits;
    auto decisions = contender.Decide(workload, &waits);
    if (!decisions)
      return decisions.error();
    Score score;
    if (contender.Delays()) {
      score = JudgeStarts(workload, *decisions, waits, plan.limit.window, limit, bins);
    } else {
      score = Judge(workload, *decisions, plan.limit.window, limit, bins);
      score.at_once = MostAtOnce(workload, *decisions);
    }
    score.differ = CountDifferences(*decisions, truth);
    stage.scores.push_back(std::move(score));
  }
  return stage;
}

void Add(Tour& tour, Stage stage) {
  for (size_t i = 0; i < stage.scores.size(); ++i) {
    const Score& score = stage.scores[i];
    Total& total = tour.totals[i];
    total.offered += stage.offered;
    total.admitted += score.admitted;
    total.differ += score.differ;
    total.wrong.false_allow += score.wrong.false_allow;
    total.wrong.false_deny += score.wrong.false_deny;
    if (score.worst_window >= total.worst_window) {
      total.worst_window = score.worst_window;
      total.worst_stage = tour.stages.size();
    }
  }
  tour.stages.push_back(std::move(stage));
}

}  // namespace

uint64_t Tour::LargestCost() const noexcept {
  uint64_t largest = 1;
  for (const Stage& stage : stages) largest = std::max(largest, stage.largest_cost);
  return largest;
}

Result<Tour> RunTour(TourPlan plan) {
  Tour tour;
  tour.totals.resize(plan.contenders.size());
  if (plan.trace) {
    auto stage = RunStage(plan, *plan.trace);
    if (!stage)
      return stage.error();
    Add(tour, *std::move(stage));
  }
  for (const Traffic traffic : plan.traffic) {
    auto stage = RunStage(plan, MakeWorkload(traffic, plan.spec, plan.cost, plan.service));
    if (!stage)
      return stage.error();
    Add(tour, *std::move(stage));
  }
  tour.plan = std::move(plan);
  return tour;
}

}  // namespace weir::simulate
