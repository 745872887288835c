// What the tour measures about a run. Pure functions over arrivals and decisions, exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weir/time.h"

namespace weir::simulate {

// One byte a request: 1 admitted, 0 denied. (vector<bool> cannot be viewed as a span.)
using Decisions = std::vector<uint8_t>;

// The most stamps that lie in any window (t - window, t]. REQUIRES: stamps in order.
[[nodiscard]] uint64_t WorstWindow(std::span<const Duration> stamps, Duration window) noexcept;

struct WrongDecisions {
  uint64_t false_allow = 0;  // admitted although the last window already held the limit
  uint64_t false_deny = 0;   // denied although the last window had room
};

// Asks at every request what an exact log of the requests admitted so far would have said. The log
// follows the algorithm's own history: a log with a history of its own would call every decision
// wrong that is merely taken at another moment.
// REQUIRES: arrivals in order, as many decisions as arrivals.
[[nodiscard]] WrongDecisions CountWrong(std::span<const Duration> arrivals,
                                        std::span<const uint8_t> decisions, Duration window,
                                        uint64_t limit) noexcept;

// How many arrivals fall into each of `bins` equal parts of [0, duration).
[[nodiscard]] std::vector<uint64_t> Histogram(std::span<const Duration> arrivals, Duration duration,
                                              size_t bins);

// The arrivals that were admitted.
[[nodiscard]] std::vector<Duration> Admitted(std::span<const Duration> arrivals,
                                             std::span<const uint8_t> decisions);

}  // namespace weir::simulate
