// A tour: every chosen traffic sent through every chosen algorithm, and what came of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/result.h"

#include "apps/weir/simulate/contender.h"
#include "apps/weir/simulate/traffic.h"

namespace weir::simulate {

struct TourPlan {
  Limit limit;
  TrafficSpec spec;
  std::vector<Traffic> traffic;
  std::vector<Contender> contenders;
  size_t bins = 32;  // parts into which time is cut for the pictures
};

// One traffic, all contenders.
struct Stage {
  Traffic traffic{};
  uint64_t offered = 0;
  std::vector<uint64_t> offered_bins;
  std::vector<Score> scores;  // as TourPlan::contenders
};

// One contender over all stages.
struct Total {
  uint64_t offered = 0;
  uint64_t admitted = 0;
  uint64_t worst_window = 0;
  Traffic worst_traffic{};  // the last one that reached it
  WrongDecisions wrong;
};

struct Tour {
  TourPlan plan;
  std::vector<Stage> stages;
  std::vector<Total> totals;  // as TourPlan::contenders
};

[[nodiscard]] Result<Tour> RunTour(TourPlan plan);

}  // namespace weir::simulate
