// A rule file as it was written, checked but not yet compiled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/limiter.h"
#include "weir/rule_set.h"

#include "base/ip_address.h"
#include "rules/issues.h"
#include "rules/path_pattern.h"

namespace weir::rules {

enum class MatcherKind : uint8_t {
  kExact,
  kPrefix,
  kSuffix,
  kContains,
  kAffix,    // begins with `text`, ends with `tail`, and these do not overlap
  kRegex,    // RE2, of the whole value
  kAddress,  // of an address: within `prefix`
  kPresent,
  kAbsent,
};

struct Matcher {
  MatcherKind kind = MatcherKind::kExact;
  std::string text;
  std::string tail;
  std::string shown;  // as it was written: "POST", "glob *.png"
  base::IpPrefix prefix = {};
};

// Holds if one of the matchers does.
struct Condition {
  std::string attribute;
  std::vector<Matcher> any;
};

// The first of these attributes that is there.
struct KeyPart {
  std::vector<std::string> any;
};

enum class OnMissing : uint8_t { kSkip, kDeny, kShared };

struct CostSpec {
  uint64_t units = 1;     // without an attribute, or where it says nothing
  std::string attribute;  // empty: none
  uint64_t most = Cost::kMax;
};

struct RuleModel {
  RuleView view;
  Mark mark;
  std::vector<Condition> when;
  std::vector<PathPattern> paths;  // any of them; empty: every path
  std::vector<KeyPart> per;        // empty: one count for all
  OnMissing on_missing = OnMissing::kSkip;
  CostSpec cost;
  std::string by;  // the attribute that chooses among the variants; empty: there is one
  Precision precision = Precision::kExact;
  uint8_t ipv6_prefix_bits = 0;  // how much of an IPv6 address is one client; 0: as for all rules
};

struct OverrideModel {
  std::string rule;
  std::string key;
  RuleVariant variant;
  WallTime expires = kNever;
  Mark mark;
};

// Of a block or allow list: an address range, or an attribute's value.
struct ListEntry {
  std::string attribute = "ip";
  std::string value;
  std::optional<base::IpPrefix> prefix;
  WallTime expires = kNever;
};

struct SetModel {
  std::vector<RuleModel> rules;
  std::vector<OverrideModel> overrides;
  std::vector<ListEntry> block;
  std::vector<ListEntry> allow;
};

}  // namespace weir::rules
