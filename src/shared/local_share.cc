#include "shared/local_share.h"

namespace weir::shared {

namespace {

constexpr uint64_t kDayNs = uint64_t{24} * 3600 * 1000000000;

// The longest, so that the share is never more than what the period gives.
uint64_t LongestNs(CalendarPeriod period) noexcept {
  constexpr uint64_t kHourNs = kDayNs / 24;
  switch (period) {
    case CalendarPeriod::kDay:
      return kDayNs + kHourNs;  // clocks are set back
    case CalendarPeriod::kWeek:
      return 7 * kDayNs + kHourNs;
    case CalendarPeriod::kMonth:
      return 31 * kDayNs + kHourNs;
    case CalendarPeriod::kYear:
      return 366 * kDayNs;
  }
  return 366 * kDayNs;
}

}  // namespace

LocalPlan MakeLocalPlan(const Quota& quota, uint32_t nodes) {
  LocalPlan plan;
  plan.nodes = nodes;
  plan.limit = quota.limit();
  plan.burst = quota.burst();
  plan.window_ns = static_cast<uint64_t>(quota.window().count());
  switch (quota.algorithm()) {
    case Algorithm::kTokenBucket:
      plan.linear = true;
      break;
    case Algorithm::kLeakyBucket:
      plan.linear = true;
      break;
    case Algorithm::kMinGap:
      plan.limit = 1;
      plan.burst = 1;
      plan.one_retry = true;
      break;
    case Algorithm::kCalendar:
      plan.window_ns = LongestNs(quota.period());
      plan.windowed = true;
      plan.one_retry = true;
      break;
    case Algorithm::kFixedWindow:
      plan.windowed = true;
      plan.one_retry = true;
      break;
    case Algorithm::kSlidingWindow:
    case Algorithm::kSlidingLog:
    case Algorithm::kSlicedWindow:
    case Algorithm::kConcurrency:
      plan.windowed = true;
      break;
  }
  plan.burst_ns =
      std::min(base::MulDivFloor(plan.burst, plan.window_ns, plan.limit), LocalPlan::kLongest);
  if (quota.undelayed() != 0) {
    // A share of less than one unit would delay even the first.
    const uint64_t most = std::max<uint64_t>(quota.undelayed(), nodes);
    plan.undelayed_ns =
        std::min(base::MulDivFloor(most, plan.window_ns, plan.limit), LocalPlan::kLongest);
  }
  return plan;
}

}  // namespace weir::shared
