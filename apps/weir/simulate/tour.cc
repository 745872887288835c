#include "apps/weir/simulate/tour.h"

#include <utility>

namespace weir::simulate {
namespace {

void Add(Total& total, const Stage& stage, const Score& score) {
  total.offered += stage.offered;
  total.admitted += score.admitted;
  total.wrong.false_allow += score.wrong.false_allow;
  total.wrong.false_deny += score.wrong.false_deny;
  if (score.worst_window >= total.worst_window) {
    total.worst_window = score.worst_window;
    total.worst_traffic = stage.traffic;
  }
}

}  // namespace

Result<Tour> RunTour(TourPlan plan) {
  Tour tour;
  tour.totals.resize(plan.contenders.size());
  for (const Traffic traffic : plan.traffic) {
    const std::vector<Duration> arrivals = Generate(traffic, plan.spec);
    Stage stage;
    stage.traffic = traffic;
    stage.offered = arrivals.size();
    stage.offered_bins = Histogram(arrivals, plan.spec.duration, plan.bins);
    for (size_t i = 0; i < plan.contenders.size(); ++i) {
      auto score = Run(plan.contenders[i], arrivals, plan.limit, plan.spec.duration, plan.bins);
      if (!score)
        return score.error();
      Add(tour.totals[i], stage, *score);
      stage.scores.push_back(*std::move(score));
    }
    tour.stages.push_back(std::move(stage));
  }
  tour.plan = std::move(plan);
  return tour;
}

}  // namespace weir::simulate
