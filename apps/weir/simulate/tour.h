// A tour: every chosen traffic sent through every chosen algorithm, and what came of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/result.h"

#include "apps/weir/simulate/contender.h"
#include "apps/weir/simulate/traffic.h"
#include "apps/weir/simulate/workload.h"

namespace weir::simulate {

struct TourPlan {
  Limit limit;
  TrafficSpec spec;
  std::vector<Traffic> traffic;
  CostRange cost;                 // of made-up traffic
  ServiceRange service;           // of made-up traffic, and of requests recorded without
  bool tells_at_once = false;     // whether how many are at work at once is of interest
  std::optional<Workload> trace;  // recorded traffic; then `traffic` is empty
  std::vector<Contender> contenders;
  size_t bins = 32;  // parts into which time is cut for the pictures
};

// One traffic, all contenders.
struct Stage {
  std::string name;
  std::string line;
  uint64_t offered = 0;  // requests
  uint64_t units = 0;
  uint64_t largest_cost = 1;
  uint64_t never_fit = 0;  // requests that cost more than the limit
  size_t keys = 1;
  std::vector<uint64_t> offered_bins;
  std::vector<Score> scores;  // as TourPlan::contenders
};

// One contender over all stages.
struct Total {
  uint64_t offered = 0;
  uint64_t admitted = 0;
  uint64_t worst_window = 0;
  size_t worst_stage = 0;  // the last one that reached it
  WrongDecisions wrong;
  uint64_t differ = 0;
};

struct Tour {
  TourPlan plan;
  std::vector<Stage> stages;
  std::vector<Total> totals;  // as TourPlan::contenders

  // Over all stages; 1 unless costs were given.
  [[nodiscard]] uint64_t LargestCost() const noexcept;
};

[[nodiscard]] Result<Tour> RunTour(TourPlan plan);

}  // namespace weir::simulate
