// What Prometheus reads. Labels are rules, outcomes, bases and protocols, never keys, so that their
// number is bounded by the configuration.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/rules.h"
#include "weir/shared_store.h"
#include "weir/store.h"

#include "redis/status.h"
#include "server/front_counters.h"
#include "server/rule_source.h"
#include "server/rule_switches.h"

namespace weir::server {

// One protocol, over all loops.
struct ProtocolMetrics {
  std::string protocol;
  std::array<uint64_t, LatencyCounters::kBoundsNs.size() + 1> latency{};
  uint64_t latency_sum_ns = 0;
  uint64_t requests = 0;
  uint64_t errors = 0;
  uint64_t protocol_errors = 0;

  void Add(const FrontCounters& counters);
};

struct Metrics {
  StoreStats store;
  std::vector<RuleCounts> rules;
  std::optional<SharedStoreStats> fleet;  // of a store that is shared
  std::vector<redis::NodeStatus> nodes;   // and where it is
  RuleStatus rule_status;
  std::vector<RuleSwitches::One> switches;
  std::vector<ProtocolMetrics> protocols;
  uint64_t connections_open = 0;
  uint64_t connections_accepted = 0;
  uint64_t connections_refused = 0;
  uint64_t connections_timed_out = 0;
  int64_t start_time_s = 0;

  // The text exposition format, version 0.0.4.
  [[nodiscard]] std::string ToText() const;

  // Rules beyond this are added up under the name "_other".
  static constexpr size_t kRulesMax = 500;
};

}  // namespace weir::server
