// What a server says about itself at one moment: counters from /metrics, top keys from /v1/top.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"
#include "weir/time.h"

namespace weir::top {

struct TopKey {
  std::string key;
  bool cut = false;  // it goes on
  uint64_t count = 0;
  uint64_t denied = 0;
  uint64_t error = 0;  // by how much the count may be too large
};

struct RuleSnapshot {
  std::string rule;
  uint64_t allowed = 0;
  uint64_t denied = 0;
  uint64_t refused = 0;
  uint64_t shadow_denied = 0;
  std::vector<TopKey> keys = {};

  [[nodiscard]] uint64_t decisions() const noexcept { return allowed + denied + refused; }
};

struct Snapshot {
  Timestamp at{};
  std::string version;
  uint64_t connections = 0;
  uint64_t slots = 0;
  uint64_t live_slots = 0;
  bool rules_up_to_date = true;
  std::vector<RuleSnapshot> rules;  // in the server's order

  [[nodiscard]] const RuleSnapshot* Find(std::string_view rule) const noexcept;
};

// Families that it does not know are left out; a line that is none of the format is an error.
[[nodiscard]] Result<Snapshot> ReadMetrics(std::string_view text);

// Adds {"rules":[{"rule","keys":[{"key","cut","count","denied","error"}]}]} to the rules of
// `snapshot`.
[[nodiscard]] Result<void> ReadTopKeys(std::string_view json, Snapshot& snapshot);

}  // namespace weir::top
