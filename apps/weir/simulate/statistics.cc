#include "apps/weir/simulate/statistics.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "apps/weir/simulate/at_work.h"

namespace weir::simulate {

uint64_t ExactLog::Inside(uint32_t key, Duration now) {
  Key& log = keys_[key];
  while (log.oldest < log.entries.size() && log.entries[log.oldest].at <= now - window_) {
    log.inside -= log.entries[log.oldest++].cost;
  }
  // What has left is dropped once it is half of the log: each entry is moved once at most.
  if (log.oldest > 16 && 2 * log.oldest > log.entries.size()) {
    log.entries.erase(log.entries.begin(),
                      log.entries.begin() + static_cast<std::ptrdiff_t>(log.oldest));
    log.oldest = 0;
  }
  return log.inside;
}

void ExactLog::Add(const Request& request) {
  Key& log = keys_[request.key];
  log.entries.push_back({request.at, request.cost});
  log.inside += request.cost;
}

Duration Bins::Edge(size_t i) const noexcept {
  const auto n = static_cast<int64_t>(count);
  const auto b = static_cast<int64_t>(i);
  return duration / n * b + Duration(duration.count() % n * b / n);
}

Score Judge(const Workload& workload, std::span<const uint8_t> decisions, Duration window,
            uint64_t limit, const Bins& bins) {
  Score score;
  score.admitted_bins.resize(bins.count);
  score.window_bins.resize(bins.count);
  ExactLog log(workload.keys.size(), window);
  size_t bin = 0;
  uint32_t last_key = 0;
  // A part without requests still begins with what the last key has in its window.
  auto move_to = [&](Duration at) {
    while (bin + 1 < bins.count && at >= bins.Edge(bin + 1)) {
      ++bin;
      score.window_bins[bin] = log.Inside(last_key, bins.Edge(bin));
    }
  };
  for (size_t i = 0; i < workload.requests.size(); ++i) {
    const Request& request = workload.requests[i];
    move_to(request.at);
    last_key = request.key;
    uint64_t inside = log.Inside(request.key, request.at);
    const bool room = inside + request.cost <= limit;
    if (decisions[i] != 0) {
      ++score.admitted;
      score.wrong.false_allow += room ? 0 : 1;
      log.Add(request);
      inside += request.cost;
      score.worst_window = std::max(score.worst_window, inside);
      score.admitted_bins[bin] += request.cost;
    } else {
      ++score.denied;
      score.wrong.false_deny += room ? 1 : 0;
    }
    score.window_bins[bin] = std::max(score.window_bins[bin], inside);
  }
  if (!workload.requests.empty())
    move_to(bins.duration);
  return score;
}

Score JudgeStarts(const Workload& workload, std::span<const uint8_t> decisions,
                  std::span<const Duration> waits, Duration window, uint64_t limit,
                  const Bins& bins) {
  std::vector<size_t> order(decisions.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto start_of = [&](size_t i) { return workload.requests[i].at + waits[i]; };
  // Those that start at once stay in the order in which they came.
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(start_of(a), a) < std::pair(start_of(b), b);
  });
  Workload started;
  started.keys = workload.keys;
  Decisions decided;
  for (const size_t i : order) {
    started.requests.push_back(workload.requests[i]);
    started.requests.back().at = start_of(i);
    decided.push_back(decisions[i]);
  }
  Score score = Judge(started, decided, window, limit, bins);
  score.admitted_bins = Judge(workload, decisions, window, limit, bins).admitted_bins;
  score.at_once = MostAtOnce(started, decided);
  score.waits = MeasureWaits(decisions, waits);
  return score;
}

uint64_t MostAtOnce(const Workload& workload, std::span<const uint8_t> decisions) {
  std::vector<uint64_t> busy(workload.keys.size());
  AtWork<const Request*> at_work;
  uint64_t most = 0;
  for (size_t i = 0; i < decisions.size(); ++i) {
    const Request& request = workload.requests[i];
    at_work.EndUntil(request.at,
                     [&](Duration, const Request* done) { busy[done->key] -= done->cost; });
    if (decisions[i] == 0)
      continue;
    at_work.Add(request.at + request.service, &request);
    most = std::max(most, busy[request.key] += request.cost);
  }
  return most;
}

Waits MeasureWaits(std::span<const uint8_t> decisions, std::span<const Duration> waits) {
  std::vector<Duration> sorted;
  for (size_t i = 0; i < decisions.size(); ++i) {
    if (decisions[i] != 0)
      sorted.push_back(waits[i]);
  }
  if (sorted.empty())
    return {};
  std::sort(sorted.begin(), sorted.end());
  // Whole counts and remainders apart: a million waits of years do not fit into 64 bits.
  const auto count = static_cast<int64_t>(sorted.size());
  Duration mean{};
  int64_t rest = 0;
  for (const Duration wait : sorted) {
    mean += wait / count;
    rest += wait.count() % count;
    mean += Duration(rest / count);
    rest %= count;
  }
  return {mean, sorted[(sorted.size() - 1) * 99 / 100], sorted.back()};
}

Decisions DecideExactly(const Workload& workload, Duration window, uint64_t limit) {
  Decisions decisions;
  decisions.reserve(workload.requests.size());
  ExactLog log(workload.keys.size(), window);
  for (const Request& request : workload.requests) {
    const bool room = log.Inside(request.key, request.at) + request.cost <= limit;
    if (room)
      log.Add(request);
    decisions.push_back(room ? 1 : 0);
  }
  return decisions;
}

uint64_t CountDifferences(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  return std::transform_reduce(a.begin(), a.end(), b.begin(), uint64_t{0}, std::plus<>(),
                               std::not_equal_to<>());
}

std::vector<uint64_t> Histogram(std::span<const Request> requests, const Bins& bins) {
  std::vector<uint64_t> units(bins.count, 0);
  size_t bin = 0;
  for (const Request& request : requests) {
    while (bin + 1 < bins.count && request.at >= bins.Edge(bin + 1)) ++bin;
    units[bin] += request.cost;
  }
  return units;
}

}  // namespace weir::simulate
