#include "server/metrics.h"

#include <charconv>

#include "weir/version.h"

namespace weir::server {

namespace {

constexpr double kNsPerSecond = 1e9;

std::string Number(double value) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char character : text) {
    if (character == '\\' || character == '"') {
      escaped += '\\';
      escaped += character;
    } else if (character == '\n') {
      escaped += "\\n";
    } else {
      escaped += character;
    }
  }
  return escaped;
}

// Lines of one exposition.
class Page {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  void Family(std::string_view name, std::string_view type, std::string_view help) {
    text_ += "# HELP " + std::string(name) + " " + std::string(help) + "\n# TYPE " +
             std::string(name) + " " + std::string(type) + "\n";
  }

  void Value(std::string_view name, const Labels& labels, const std::string& value) {
    text_ += name;
    char separator = '{';
    for (const auto& [label, content] : labels) {
      text_ += separator;
      text_ += std::string(label) + "=\"" + Escaped(content) + "\"";
      separator = ',';
    }
    if (separator == ',') {
      text_ += '}';
    }
    text_ += " " + value + "\n";
  }
  void Value(std::string_view name, const Labels& labels, uint64_t value) {
    Value(name, labels, std::to_string(value));
  }

  void Counter(std::string_view name, std::string_view help, uint64_t value) {
    Family(name, "counter", help);
    Value(name, {}, value);
  }
  void Gauge(std::string_view name, std::string_view help, uint64_t value) {
    Family(name, "gauge", help);
    Value(name, {}, value);
  }

  [[nodiscard]] std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

std::vector<RuleCounts> Bounded(const std::vector<RuleCounts>& all) {
  if (all.size() <= Metrics::kRulesMax) {
    return all;
  }
  std::vector<RuleCounts> kept(all.begin(), all.begin() + Metrics::kRulesMax);
  RuleCounts other;
  other.rule = "_other";
  for (size_t i = Metrics::kRulesMax; i < all.size(); ++i) {
    other.allowed += all[i].allowed;
    other.denied += all[i].denied;
    other.refused += all[i].refused;
    other.shadow_denied += all[i].shadow_denied;
    other.meets_fresh_keys |= all[i].meets_fresh_keys;
    for (size_t basis = 0; basis < other.by_basis.size(); ++basis) {
      other.by_basis[basis] += all[i].by_basis[basis];
    }
  }
  kept.push_back(other);
  return kept;
}

void RuleFamilies(const std::vector<RuleCounts>& all, Page& page) {
  const std::vector<RuleCounts> rules = Bounded(all);
  page.Family("weir_decisions_total", "counter", "Decisions that a rule had a say in, by outcome.");
  for (const RuleCounts& rule : rules) {
    page.Value("weir_decisions_total", {{"rule", rule.rule}, {"outcome", "allowed"}}, rule.allowed);
    page.Value("weir_decisions_total", {{"rule", rule.rule}, {"outcome", "denied"}}, rule.denied);
    page.Value("weir_decisions_total", {{"rule", rule.rule}, {"outcome", "refused"}}, rule.refused);
    page.Value("weir_decisions_total", {{"rule", rule.rule}, {"outcome", "shadow_denied"}},
               rule.shadow_denied);
  }
  page.Family("weir_decisions_by_basis_total", "counter",
              "Decisions of a rule's quotas, by what they rest on.");
  for (const RuleCounts& rule : rules) {
    for (size_t basis = 0; basis < rule.by_basis.size(); ++basis) {
      page.Value("weir_decisions_by_basis_total",
                 {{"rule", rule.rule}, {"basis", ToString(static_cast<Basis>(basis))}},
                 rule.by_basis[basis]);
    }
  }
  page.Family("weir_rule_meets_fresh_keys", "gauge",
              "1 if nearly every decision of the rule met a key that owed nothing.");
  for (const RuleCounts& rule : rules) {
    page.Value("weir_rule_meets_fresh_keys", {{"rule", rule.rule}},
               static_cast<uint64_t>(rule.meets_fresh_keys));
  }
}

void ProtocolFamilies(const std::vector<ProtocolMetrics>& protocols, Page& page) {
  page.Family("weir_requests_total", "counter", "Questions answered.");
  for (const ProtocolMetrics& one : protocols) {
    page.Value("weir_requests_total", {{"protocol", one.protocol}}, one.requests);
  }
  page.Family("weir_request_errors_total", "counter", "Questions that were wrong.");
  for (const ProtocolMetrics& one : protocols) {
    page.Value("weir_request_errors_total", {{"protocol", one.protocol}}, one.errors);
  }
  page.Family("weir_protocol_errors_total", "counter",
              "Connections closed for bytes that were none of the protocol.");
  for (const ProtocolMetrics& one : protocols) {
    page.Value("weir_protocol_errors_total", {{"protocol", one.protocol}}, one.protocol_errors);
  }
  page.Family("weir_request_duration_seconds", "histogram",
              "From bytes read to bytes ready to be sent, within the server.");
  for (const ProtocolMetrics& one : protocols) {
    uint64_t sum = 0;
    for (size_t i = 0; i < one.latency.size(); ++i) {
      sum += one.latency[i];
      const bool last = i == LatencyCounters::kBoundsNs.size();
      page.Value("weir_request_duration_seconds_bucket",
                 {{"protocol", one.protocol},
                  {"le", last ? "+Inf"
                              : Number(static_cast<double>(LatencyCounters::kBoundsNs[i]) /
                                       kNsPerSecond)}},
                 sum);
    }
    page.Value("weir_request_duration_seconds_sum", {{"protocol", one.protocol}},
               Number(static_cast<double>(one.latency_sum_ns) / kNsPerSecond));
    page.Value("weir_request_duration_seconds_count", {{"protocol", one.protocol}}, sum);
  }
}

void StoreFamilies(const StoreStats& store, Page& page) {
  page.Counter("weir_store_decisions_total", "Charges decided by the store.", store.decisions);
  page.Counter("weir_store_denials_total", "Charges denied by the store.", store.denials);
  page.Counter("weir_store_overflow_total", "Decisions on keys that found no room.",
               store.overflow);
  page.Counter("weir_store_reclaims_total", "Slots of keys that owed nothing, taken for new keys.",
               store.reclaims);
  page.Counter("weir_store_lost_races_total", "Attempts repeated because another thread was first.",
               store.lost_races);
  page.Gauge("weir_store_slots", "Slots for keys.", store.slots);
  page.Gauge("weir_store_slots_live", "Slots of keys that owe something.", store.live_slots);
  page.Gauge("weir_store_records", "Records in use: logs, slices, holds, reservations.",
             store.records);
  page.Gauge("weir_store_budget_bytes", "Memory of the store.", store.budget_bytes);
}

void FleetFamilies(const SharedStoreStats& fleet, const std::vector<redis::NodeStatus>& nodes,
                   Page& page) {
  page.Family("weir_fleet_decisions_total", "counter",
              "Quotas asked of the shared store, by what the answer rests on.");
  for (size_t basis = 0; basis < fleet.decisions.size(); ++basis) {
    const std::string_view name = ToString(static_cast<Basis>(basis));
    page.Value("weir_fleet_decisions_total", {{"basis", name}}, fleet.decisions[basis]);
  }
  page.Family("weir_fleet_admitted_total", "counter", "Those of them that were allowed.");
  for (size_t basis = 0; basis < fleet.admitted.size(); ++basis) {
    const std::string_view name = ToString(static_cast<Basis>(basis));
    page.Value("weir_fleet_admitted_total", {{"basis", name}}, fleet.admitted[basis]);
  }
  page.Family("weir_fleet_failures_total", "counter",
              "Questions that the shared store did not answer, by cause.");
  for (size_t cause = 1; cause < fleet.troubles.size(); ++cause) {
    page.Value("weir_fleet_failures_total", {{"cause", ToString(static_cast<StoreTrouble>(cause))}},
               fleet.troubles[cause]);
  }
  page.Gauge("weir_fleet_away", "1 while a node of the shared store is out of reach.",
             static_cast<uint64_t>(fleet.away));
  page.Counter("weir_fleet_state_changes_total", "Times that a node went away or came back.",
               fleet.state_changes);
  page.Counter("weir_fleet_repeated_ids_total", "Questions answered from the memory of ids.",
               fleet.repeated_ids);
  page.Counter("weir_fleet_refunds_total",
               "Charges given back since another quota of the request denied.", fleet.refunds);
  page.Counter("weir_fleet_refunds_lost_total", "Those of them that the store did not take.",
               fleet.refunds_lost);
  page.Counter("weir_fleet_unsure_ids_total",
               "Charges with an id of which nobody could find out in time whether they were made.",
               fleet.unsure_ids);
  page.Counter("weir_fleet_repaid_units_total",
               "Units admitted while the store was away, and charged to it since.",
               fleet.repaid_units);
  page.Counter("weir_fleet_repaid_lost_total", "Such units that could not be charged.",
               fleet.repaid_lost);
  page.Gauge("weir_fleet_notes", "Keys remembered for when the store is away.", fleet.notes);
  page.Counter("weir_fleet_notes_evicted_total", "Keys forgotten for want of room.",
               fleet.notes_evicted);
  page.Family("weir_fleet_node_up", "gauge", "1 for each node of Redis that is asked now.");
  for (const redis::NodeStatus& node : nodes) {
    const bool up = node.ready && node.breaker == redis::BreakerState::kClosed;
    page.Value("weir_fleet_node_up", {{"node", node.address}}, static_cast<uint64_t>(up));
  }
  page.Family("weir_fleet_node_breaker_transitions_total", "counter",
              "Times that a node was left alone for failing, or asked again.");
  for (const redis::NodeStatus& node : nodes) {
    page.Value("weir_fleet_node_breaker_transitions_total", {{"node", node.address}},
               node.breaker_transitions);
  }
}

void RuleFileFamilies(const RuleStatus& status, Page& page) {
  page.Counter("weir_rules_loads_total", "Rule sets taken, the first included.", status.loads);
  page.Counter("weir_rules_load_failures_total", "Changes of rule files that were not taken.",
               status.failures);
  page.Gauge("weir_rules_up_to_date", "1 if the rule files as they are now are in effect.",
             static_cast<uint64_t>(status.error.empty()));
  page.Gauge("weir_rules", "Rules in effect.", status.rule_count);
  char version[20];
  const auto end = std::to_chars(version, version + sizeof version, status.version, 16);
  page.Family("weir_rules_info", "gauge", "The version of the rules in effect, as a label.");
  page.Value("weir_rules_info", {{"version", std::string_view(version, end.ptr)}}, 1);
}

}  // namespace

void ProtocolMetrics::Add(const FrontCounters& counters) {
  for (size_t i = 0; i < latency.size(); ++i) {
    latency[i] += counters.latency.count(i);
  }
  latency_sum_ns += counters.latency.sum_ns();
  requests += counters.requests.load(std::memory_order_relaxed);
  errors += counters.errors.load(std::memory_order_relaxed);
  protocol_errors += counters.protocol_errors.load(std::memory_order_relaxed);
}

std::string Metrics::ToText() const {
  Page page;
  page.Family("weir_build_info", "gauge", "The version of weir, as a label.");
  page.Value("weir_build_info", {{"version", kVersion}}, 1);
  page.Gauge("weir_start_time_seconds", "When the server started, in Unix time.",
             static_cast<uint64_t>(start_time_s));
  RuleFamilies(rules, page);
  ProtocolFamilies(protocols, page);
  page.Gauge("weir_connections_open", "Connections.", connections_open);
  page.Counter("weir_connections_accepted_total", "Connections taken.", connections_accepted);
  page.Counter("weir_connections_refused_total", "Connections closed at once for want of room.",
               connections_refused);
  page.Counter("weir_connections_timed_out_total",
               "Connections closed because a message or its answer took too long.",
               connections_timed_out);
  StoreFamilies(store, page);
  if (fleet.has_value()) {
    FleetFamilies(*fleet, nodes, page);
  }
  RuleFileFamilies(rule_status, page);
  page.Family("weir_rule_switched", "gauge", "1 for each rule that an operator has switched.");
  for (const RuleSwitches::One& one : switches) {
    page.Value("weir_rule_switched", {{"rule", one.rule}, {"to", ToString(one.mode)}}, 1);
  }
  return page.Take();
}

}  // namespace weir::server
