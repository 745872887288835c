// What a run is fed with: requests of one or many keys, each with a cost, made up or recorded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"
#include "weir/time.h"

#include "apps/weir/simulate/traffic.h"

namespace weir::simulate {

struct Request {
  Duration at{};       // since the start of the run, which is an edge of epoch-aligned windows
  uint32_t key = 0;    // an index into Workload::keys
  uint32_t cost = 1;   // units, above 0
  Duration service{};  // how long it is at work once it has started; 0: not known
};

struct Workload {
  std::string name;
  std::string line;  // what it is, in a line
  std::vector<std::string> keys;
  std::vector<Request> requests;  // in order of time
};

// Costs drawn evenly from [least, most].
struct CostRange {
  uint32_t least = 1;
  uint32_t most = 1;
};

// How long requests are at work, drawn evenly from [least, most].
struct ServiceRange {
  Duration least{};
  Duration most{};
};

// "5" or "1-10". The error says what is allowed.
[[nodiscard]] Result<CostRange> ParseCost(std::string_view text);

// The same seed gives the same costs, whatever the arrivals.
void DrawCosts(std::span<Request> requests, const CostRange& range, uint64_t seed);

// "200ms" or "50ms-2s". The error says what is allowed.
[[nodiscard]] Result<ServiceRange> ParseService(std::string_view text);

// A tenth of the window on average, give or take a half.
[[nodiscard]] ServiceRange UsualService(Duration window) noexcept;

// For requests whose service is not known.
void DrawServices(std::span<Request> requests, const ServiceRange& range, uint64_t seed);

// Requests of one key. spec.limit is in units: with a mean cost of 5 a fifth as many requests make
// up the same load.
[[nodiscard]] Workload MakeWorkload(Traffic traffic, TrafficSpec spec, const CostRange& range,
                                    const ServiceRange& service);

}  // namespace weir::simulate
