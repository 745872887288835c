#include "apps/weir/simulate/workload.h"

#include <algorithm>

#include "weir/quota.h"

#include "apps/weir/text.h"

namespace weir::simulate {

using app::ParseDuration;
using app::ParseWhole;

Result<CostRange> ParseCost(std::string_view text) {
  const size_t dash = std::min(text.find('-'), text.size());
  const auto least = ParseWhole(text.substr(0, dash));
  const auto most = dash < text.size() ? ParseWhole(text.substr(dash + 1)) : least;
  const auto largest = static_cast<uint64_t>(Quota::kMaxLimit);
  if (!least || !most || *least == 0 || *least > *most || *most > largest) {
    return Error::Invalid("a whole number from 1 to " + std::to_string(largest) +
                          ", as in 5, or a range of them, smaller first, as in 1-10");
  }
  return CostRange{static_cast<uint32_t>(*least), static_cast<uint32_t>(*most)};
}

void DrawCosts(std::span<Request> requests, const CostRange& range, uint64_t seed) {
  // A stream of its own: costs must not follow from arrivals that the same seed has made.
  Random random(~seed);
  const uint64_t width = uint64_t{range.most} - range.least + 1;
  for (Request& request : requests) {
    request.cost = range.least + static_cast<uint32_t>(random.Below(width));
  }
}

Result<ServiceRange> ParseService(std::string_view text) {
  const size_t dash = std::min(text.find('-'), text.size());
  const auto least = ParseDuration(text.substr(0, dash));
  const auto most = dash < text.size() ? ParseDuration(text.substr(dash + 1)) : least;
  if (!least || !most || *least <= Duration::zero() || *least > *most || *most > Quota::kMaxLease) {
    return Error::Invalid(
        "a time from 1ns to 366d, as in 200ms, or a range of them, shorter first, as in 50ms-2s");
  }
  return ServiceRange{*least, *most};
}

ServiceRange UsualService(Duration window) noexcept {
  const Duration most = std::min(window / 20 * 3, Quota::kMaxLease);
  return {std::max(window / 20, Duration(1)), std::max(most, Duration(1))};
}

void DrawServices(std::span<Request> requests, const ServiceRange& range, uint64_t seed) {
  Random random(seed ^ 0x5e71ce);  // a stream of its own, as for costs
  const auto width = static_cast<uint64_t>((range.most - range.least).count()) + 1;
  for (Request& request : requests) {
    const Duration drawn = range.least + Duration(static_cast<int64_t>(random.Below(width)));
    if (request.service == Duration::zero())
      request.service = drawn;
  }
}

Workload MakeWorkload(Traffic traffic, TrafficSpec spec, const CostRange& range,
                      const ServiceRange& service) {
  const int64_t twice_mean = int64_t{range.least} + range.most;
  spec.limit = std::max<int64_t>(2 * spec.limit / twice_mean, 1);
  Workload workload;
  workload.name = Info(traffic).name;
  workload.line = Info(traffic).line;
  workload.keys = {"tour"};
  for (const Duration at : Generate(traffic, spec)) workload.requests.push_back({.at = at});
  DrawCosts(workload.requests, range, spec.seed);
  DrawServices(workload.requests, service, spec.seed);
  return workload;
}

}  // namespace weir::simulate
