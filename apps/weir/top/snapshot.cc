#include "apps/weir/top/snapshot.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace weir::top {

namespace {

// One line of the exposition: name{label="value",…} number
struct Sample {
  std::string_view name;
  std::vector<std::pair<std::string_view, std::string>> labels;
  double value = 0;

  [[nodiscard]] std::string_view Label(std::string_view wanted) const {
    for (const auto& [label, content] : labels) {
      if (label == wanted) {
        return content;
      }
    }
    return {};
  }
};

// Takes `label="value"` from the front, with the format's three escapes undone.
bool TakeLabel(std::string_view& rest, Sample& sample) {
  const size_t equals = rest.find("=\"");
  if (equals == std::string_view::npos) {
    return false;
  }
  std::string content;
  size_t at = equals + 2;
  for (; at < rest.size() && rest[at] != '"'; ++at) {
    if (rest[at] == '\\' && at + 1 < rest.size()) {
      ++at;
      content += rest[at] == 'n' ? '\n' : rest[at];
    } else {
      content += rest[at];
    }
  }
  if (at >= rest.size()) {
    return false;
  }
  sample.labels.emplace_back(rest.substr(0, equals), std::move(content));
  rest.remove_prefix(at + 1);
  return true;
}

std::optional<Sample> ReadSample(std::string_view line) {
  Sample sample;
  const size_t end = line.find_first_of("{ ");
  if (end == std::string_view::npos || end == 0) {
    return std::nullopt;
  }
  sample.name = line.substr(0, end);
  std::string_view rest = line.substr(end);
  if (rest.front() == '{') {
    do {
      rest.remove_prefix(1);
      if (!TakeLabel(rest, sample)) {
        return std::nullopt;
      }
    } while (rest.starts_with(','));
    if (!rest.starts_with('}')) {
      return std::nullopt;
    }
    rest.remove_prefix(1);
  }
  if (!rest.starts_with(' ')) {
    return std::nullopt;
  }
  rest.remove_prefix(1);
  const auto [stop, problem] =
      std::from_chars(rest.data(), rest.data() + rest.size(), sample.value);
  if (problem != std::errc() || stop != rest.data() + rest.size()) {
    return std::nullopt;
  }
  return sample;
}

RuleSnapshot& RuleOf(Snapshot& snapshot, std::string_view name) {
  for (RuleSnapshot& rule : snapshot.rules) {
    if (rule.rule == name) {
      return rule;
    }
  }
  return snapshot.rules.emplace_back(RuleSnapshot{.rule = std::string(name)});
}

void Apply(const Sample& sample, Snapshot& snapshot) {
  const auto value = static_cast<uint64_t>(std::max(0.0, sample.value));
  if (sample.name == "weir_decisions_total") {
    RuleSnapshot& rule = RuleOf(snapshot, sample.Label("rule"));
    const std::string_view outcome = sample.Label("outcome");
    if (outcome == "allowed") {
      rule.allowed = value;
    } else if (outcome == "denied") {
      rule.denied = value;
    } else if (outcome == "refused") {
      rule.refused = value;
    } else if (outcome == "shadow_denied") {
      rule.shadow_denied = value;
    }
  } else if (sample.name == "weir_build_info") {
    snapshot.version = sample.Label("version");
  } else if (sample.name == "weir_connections_open") {
    snapshot.connections = value;
  } else if (sample.name == "weir_store_slots") {
    snapshot.slots = value;
  } else if (sample.name == "weir_store_slots_live") {
    snapshot.live_slots = value;
  } else if (sample.name == "weir_rules_up_to_date") {
    snapshot.rules_up_to_date = value != 0;
  }
}

}  // namespace

const RuleSnapshot* Snapshot::Find(std::string_view rule) const noexcept {
  const auto found = std::find_if(rules.begin(), rules.end(),
                                  [rule](const RuleSnapshot& one) { return one.rule == rule; });
  return found == rules.end() ? nullptr : &*found;
}

Result<Snapshot> ReadMetrics(std::string_view text) {
  Snapshot snapshot;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line.front() == '#') {
      continue;
    }
    // Histograms end in +Inf, which is a label here and never a value.
    const std::optional<Sample> sample = ReadSample(line);
    if (!sample) {
      return Error::Invalid("not a line of Prometheus' text format: '" +
                            std::string(line.substr(0, 80)) + "'");
    }
    Apply(*sample, snapshot);
  }
  if (snapshot.version.empty()) {
    return Error::Invalid("no weir_build_info among the metrics: not the admin address of weir?");
  }
  return snapshot;
}

Result<void> ReadTopKeys(std::string_view json, Snapshot& snapshot) {
  const auto wrong = [](std::string_view why) {
    return Error::Invalid("/v1/top: " + std::string(why) + "; expected {\"rules\":[…]}");
  };
  simdjson::dom::parser parser;
  simdjson::dom::array rules;
  if (const auto code = parser.parse(json.data(), json.size())["rules"].get(rules);
      code != simdjson::SUCCESS) {
    return wrong(simdjson::error_message(code));
  }
  for (const simdjson::dom::element one : rules) {
    std::string_view name;
    simdjson::dom::array keys;
    if (one["rule"].get(name) != simdjson::SUCCESS || one["keys"].get(keys) != simdjson::SUCCESS) {
      return wrong("a rule without its name or keys");
    }
    RuleSnapshot& rule = RuleOf(snapshot, name);
    for (const simdjson::dom::element entry : keys) {
      TopKey key;
      std::string_view text;
      if (entry["key"].get(text) != simdjson::SUCCESS ||
          entry["cut"].get(key.cut) != simdjson::SUCCESS ||
          entry["count"].get(key.count) != simdjson::SUCCESS ||
          entry["denied"].get(key.denied) != simdjson::SUCCESS ||
          entry["error"].get(key.error) != simdjson::SUCCESS) {
        return wrong("a key without its counts");
      }
      key.key = text;
      rule.keys.push_back(std::move(key));
    }
  }
  return {};
}

}  // namespace weir::top
