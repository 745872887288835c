#include "apps/weir/simulate/statistics.h"

#include <algorithm>

namespace weir::simulate {

uint64_t WorstWindow(std::span<const Duration> stamps, Duration window) noexcept {
  uint64_t worst = 0;
  size_t oldest = 0;
  for (size_t i = 0; i < stamps.size(); ++i) {
    while (stamps[oldest] <= stamps[i] - window) ++oldest;
    worst = std::max<uint64_t>(worst, i - oldest + 1);
  }
  return worst;
}

WrongDecisions CountWrong(std::span<const Duration> arrivals, std::span<const uint8_t> decisions,
                          Duration window, uint64_t limit) noexcept {
  WrongDecisions wrong;
  uint64_t inside = 0;  // admitted in (now - window, now)
  size_t oldest = 0;    // first arrival that may still be inside
  for (size_t i = 0; i < arrivals.size(); ++i) {
    for (; oldest < i && arrivals[oldest] <= arrivals[i] - window; ++oldest) {
      inside -= decisions[oldest];
    }
    const bool room = inside < limit;
    const bool admitted = decisions[i] != 0;
    if (admitted && !room)
      ++wrong.false_allow;
    if (!admitted && room)
      ++wrong.false_deny;
    inside += decisions[i];
  }
  return wrong;
}

std::vector<uint64_t> Histogram(std::span<const Duration> arrivals, Duration duration,
                                size_t bins) {
  std::vector<uint64_t> counts(bins, 0);
  if (bins == 0)
    return counts;
  // Bin b covers [b * duration / bins, (b + 1) * duration / bins). The edges are computed, not the
  // bin of a stamp: stamp * bins does not fit into 64 bits for windows of years.
  const int64_t total = duration.count();
  const auto n = static_cast<int64_t>(bins);
  auto edge = [&](int64_t b) { return total / n * b + total % n * b / n; };
  size_t bin = 0;
  for (const Duration at : arrivals) {
    while (bin + 1 < bins && at.count() >= edge(static_cast<int64_t>(bin) + 1)) ++bin;
    ++counts[bin];
  }
  return counts;
}

std::vector<Duration> Admitted(std::span<const Duration> arrivals,
                               std::span<const uint8_t> decisions) {
  std::vector<Duration> out;
  for (size_t i = 0; i < arrivals.size(); ++i) {
    if (decisions[i] != 0)
      out.push_back(arrivals[i]);
  }
  return out;
}

}  // namespace weir::simulate
