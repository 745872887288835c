// A rule set in the form that decides. Immutable; compiler.cc makes it, matcher.cc asks it.
//
// A rule with several paths is several alternatives, which differ in how specific they are. All
// alternatives are in one order, the documented one, and their place in it is their rank: in each
// group the matching alternative with the least rank wins.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/rule_set.h"

#include "rules/access_list.h"
#include "rules/attribute_table.h"
#include "rules/regex_bank.h"
#include "rules/request_view.h"
#include "rules/rule_filter.h"
#include "rules/rule_model.h"

namespace weir::rules {

struct CompiledMatcher {
  const Matcher* source = nullptr;
  uint16_t regex = 0;
};

struct CompiledCondition {
  uint16_t attribute = 0;
  std::vector<CompiledMatcher> any;
};

// Where a part of a key comes from.
struct KeySource {
  enum class Kind : uint8_t { kText, kAddress, kRoute, kParameter };
  Kind kind = Kind::kText;
  uint16_t attribute = AttributeTable::kNone;
  std::string name;
  uint8_t ipv4_bits = 32;  // of an address: how much of it counts
};

struct CompiledOverride {
  uint32_t variant = 0;
  WallTime expires = kNever;
};

// So that a key need not be made a string to be looked up.
struct KeyTextHash {
  using is_transparent = void;
  size_t operator()(std::string_view key) const noexcept {
    return base::HashKey(key, base::ProcessSecret());
  }
};

struct CompiledRule {
  const RuleModel* model = nullptr;
  const RuleView* view = nullptr;
  std::vector<CompiledCondition> when;
  std::vector<std::vector<KeySource>> per;
  uint16_t by = AttributeTable::kNone;
  uint16_t cost_attribute = AttributeTable::kNone;
  uint8_t group = 0;
  uint64_t canary_salt = 0;
  std::vector<uint32_t> first_slot;  // by variant
  std::unordered_map<std::string, CompiledOverride, KeyTextHash, std::equal_to<>> overrides;
};

struct Alternative {
  uint32_t rule = 0;
  uint8_t group = 0;
  const PathPattern* pattern = nullptr;
};

// An alternative for a share of its keys, where the key is the same whatever the path.
struct Canary {
  uint32_t key = 0;  // those with equal numbers have equal keys; from 0 on
  uint32_t rank = 0;
  uint32_t permille = 0;
  uint64_t salt = 0;
};

inline constexpr size_t kMaxGroups = kMaxCharges;
inline constexpr uint32_t kNoRank = ~uint32_t{0};

struct CompiledSet {
  SetModel model;
  std::vector<RuleView> views;  // of the rules, in the order of the file
  uint64_t version = 0;

  AttributeTable attributes;
  SpecialAttributes special;
  RegexBank regexes;
  AccessList block;
  AccessList allow;

  std::vector<CompiledRule> rules;        // as the views; those disabled have no alternatives
  std::vector<Alternative> alternatives;  // by rank
  std::vector<std::string> group_names;
  uint64_t shadow_groups = 0;  // a bit for each
  RuleFilter filter;
  std::vector<Canary> canaries;        // by rank
  std::vector<uint32_t> first_canary;  // of each word of ranks; empty if there are no canaries
  uint32_t default_rank = kNoRank;     // of the rule for what no other matches

  uint32_t slot_count = 0;     // quotas of all rules and variants
  bool has_deadlines = false;  // anything expires: decisions need the wall clock
};

}  // namespace weir::rules
