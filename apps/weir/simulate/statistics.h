// What the tour measures about a run. Exact, and nothing but arrivals and decisions go in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weir/time.h"

#include "apps/weir/simulate/workload.h"

namespace weir::simulate {

// One byte a request: 1 admitted, 0 denied. (vector<bool> cannot be viewed as a span.)
using Decisions = std::vector<uint8_t>;

// The truth: every admitted request of the last window, key by key.
class ExactLog {
 public:
  ExactLog(size_t keys, Duration window) : window_(window), keys_(keys) {}

  // Units admitted to this key in (now - window, now]. REQUIRES: `now` never falls.
  uint64_t Inside(uint32_t key, Duration now);
  void Add(const Request& request);

 private:
  struct Entry {
    Duration at;
    uint32_t cost;
  };
  struct Key {
    std::vector<Entry> entries;
    size_t oldest = 0;  // the first entry that may still be inside
    uint64_t inside = 0;
  };

  Duration window_;
  std::vector<Key> keys_;
};

struct WrongDecisions {
  uint64_t false_allow = 0;  // admitted although the last window had no room for it
  uint64_t false_deny = 0;   // denied although the last window had room
};

// How long those who were admitted had to wait before they started.
struct Waits {
  Duration mean{};
  Duration p99{};  // a hundredth waited longer
  Duration longest{};
};

// Time is cut into equal parts for the pictures.
struct Bins {
  Duration duration{};
  size_t count = 1;

  // Where part i begins. Stamp * count does not fit into 64 bits for windows of years.
  [[nodiscard]] Duration Edge(size_t i) const noexcept;
};

// How an algorithm did. Counts are of requests, windows and bins of units.
struct Score {
  uint64_t admitted = 0;
  uint64_t denied = 0;
  uint64_t worst_window = 0;  // the most units of one key in any window (t - W, t]
  WrongDecisions wrong;
  uint64_t at_once = 0;  // the most units of one key at work at the same time
  uint64_t differ = 0;   // decisions unlike those of an exact log that decides by itself
  Waits waits;
  std::vector<uint64_t> admitted_bins;
  // The fullest window of any key that was asked about in each part.
  std::vector<uint64_t> window_bins;
};

// Asks at every request what an exact log of the requests admitted so far would have said. The log
// follows the algorithm's own history: a log with a history of its own would call every decision
// wrong that is merely taken at another moment.
// REQUIRES: as many decisions as requests.
[[nodiscard]] Score Judge(const Workload& workload, std::span<const uint8_t> decisions,
                          Duration window, uint64_t limit, const Bins& bins);

// The same for an algorithm that delays: what it admitted counts when it starts, except in
// admitted_bins, which stand beside what was offered.
// REQUIRES: as many waits as requests; per key, starts in order of arrival.
[[nodiscard]] Score JudgeStarts(const Workload& workload, std::span<const uint8_t> decisions,
                                std::span<const Duration> waits, Duration window, uint64_t limit,
                                const Bins& bins);

[[nodiscard]] Waits MeasureWaits(std::span<const uint8_t> decisions,
                                 std::span<const Duration> waits);

// The most units of one key that are at work at the same time, if what was admitted starts when it
// comes.
[[nodiscard]] uint64_t MostAtOnce(const Workload& workload, std::span<const uint8_t> decisions);

// What an exact sliding log admits of the workload if it is the one that decides.
[[nodiscard]] Decisions DecideExactly(const Workload& workload, Duration window, uint64_t limit);

[[nodiscard]] uint64_t CountDifferences(std::span<const uint8_t> a, std::span<const uint8_t> b);

// Units offered in each part.
[[nodiscard]] std::vector<uint64_t> Histogram(std::span<const Request> requests, const Bins& bins);

}  // namespace weir::simulate
