// A rule file, read, checked and compiled: which requests meet which quotas, counted by what.
//
//   weir::RuleParse parsed = weir::RuleSet::Load("rules.yaml");
//   for (const weir::RuleIssue& issue : parsed.issues) Log(ToString(issue));
//   if (parsed.rules == nullptr) return;   // an error; every other issue is a warning
//
// A RuleSet never changes, so any thread may read it. weir/rules.h decides requests by one. What a
// file may contain: docs/reference/rules.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/quota.h"
#include "weir/shared_store.h"
#include "weir/time.h"

namespace weir {

// One thing known of a request. Well-known names: ip, method, host, path, user, api_key, tier,
// header:x-name (in lower case); any other name is the caller's own. An empty value counts as
// absent; of two attributes with one name the first counts.
struct Attribute {
  std::string_view name;
  std::string_view value;
};

// What a request and a file may have; more is refused, never cut.
inline constexpr size_t kMaxAttributes = 128;
inline constexpr size_t kMaxAttributeBytes = 2048;
inline constexpr size_t kMaxRuleNameBytes = 64;
inline constexpr size_t kMaxRules = 20'000;
inline constexpr size_t kMaxRegexes = 256;
inline constexpr size_t kMaxRuleFileBytes = size_t{4} << 20;

enum class IssueLevel : uint8_t { kError, kWarning };

// One finding about a rule file.
struct RuleIssue {
  IssueLevel level = IssueLevel::kError;
  std::string file;
  uint32_t line = 0;  // from 1; 0: the file as a whole
  uint32_t column = 0;
  std::string rule;     // its name, if it is about one
  std::string message;  // what was found, what is expected
};

// "rules.yaml:7:12: error: rule "login": limit: ..."
[[nodiscard]] std::string ToString(const RuleIssue& issue);

// What becomes of a request that a rule matches.
enum class RuleAction : uint8_t {
  kLimit,      // it is counted against the rule's quotas
  kUnlimited,  // nothing: the rule keeps less specific ones of its group away
  kBlock,      // it is refused
};

// Whether answers tell of the rule.
enum class HeaderVisibility : uint8_t { kVisible, kHidden };

// When a changed quota begins to count.
enum class ApplyWhen : uint8_t { kNow, kNextWindow };

// What an operator makes of a rule while it runs, whatever its file says.
enum class RuleMode : uint8_t {
  kAsWritten,
  kOff,     // as `disabled: true`
  kShadow,  // as `shadow: true`: counted, without a say
  kOn,      // as neither
};

[[nodiscard]] std::string_view ToString(RuleMode mode) noexcept;

struct RuleSwitch {
  std::string rule;
  RuleMode mode = RuleMode::kAsWritten;
};

inline constexpr WallTime kNever = WallTime(Duration(std::numeric_limits<int64_t>::max()));

// One quota of a rule.
struct RuleQuota {
  Quota quota;
  std::string text;        // quota.ToString()
  uint64_t window_s = 0;   // rounded up; a month counts 30 days, a year 365; 0 for concurrency
  std::string bound = {};  // the most that any window sees, and by how much a count may be off
};

// The quotas of a rule for one tier; the first variant is for every tier without one of its own.
struct RuleVariant {
  std::string tier;
  bool unlimited = false;
  bool is_override = false;  // for keys that an override names; these come last
  std::vector<RuleQuota> quotas = {};
};

// What there is to know of a rule, but for how it matches.
struct RuleView {
  std::string name;
  std::string group;
  std::string when;  // in words: "method POST, path /api/v1/login"
  std::string per;   // "ip", "api_key | ip", "user, route"
  std::string comment;
  std::string owner;
  RuleAction action = RuleAction::kLimit;
  OnStoreFailure on_store_failure = OnStoreFailure::kLocal;
  HeaderVisibility headers = HeaderVisibility::kVisible;
  ApplyWhen apply = ApplyWhen::kNow;
  bool shadow = false;
  bool disabled = false;
  RuleMode switched = RuleMode::kAsWritten;  // the two above are then the operator's
  // It counts by something that must not be seen (an API key, a token, a cookie): where people look
  // its keys are shown as digests.
  bool secret_keys = false;
  bool is_default = false;  // for requests that no other rule matches
  int32_t priority = 0;
  uint32_t canary_permille = 1000;
  WallTime expires = kNever;
  std::vector<RuleVariant> variants;
  std::string file;
  uint32_t line = 0;
};

class RuleSet;

struct RuleParse {
  std::shared_ptr<const RuleSet> rules;  // null if, and only if, one of the issues is an error
  std::vector<RuleIssue> issues;         // all of them, in the order of the file
};

class RuleSet {
 public:
  // `name` stands for the file in issues. YAML, of which JSON is a part; several documents add up.
  [[nodiscard]] static RuleParse Parse(std::string_view text, std::string_view name = "rules");
  [[nodiscard]] static RuleParse Load(const std::string& path);
  // Several files make one set.
  [[nodiscard]] static RuleParse Load(std::span<const std::string> paths);

  RuleSet(const RuleSet&) = delete;
  RuleSet& operator=(const RuleSet&) = delete;
  ~RuleSet();

  // The same rules, some of them switched. An error: there is no such rule.
  [[nodiscard]] RuleParse With(std::span<const RuleSwitch> switches) const;

  // A hash of the text (and of switches): the same on every node that has the same files.
  [[nodiscard]] uint64_t version() const noexcept;
  // In the order of the file; the default rule, if there is one, is the last.
  [[nodiscard]] std::span<const RuleView> rules() const noexcept;

  struct State;  // internal
  [[nodiscard]] const State& state() const noexcept { return *state_; }
  explicit RuleSet(std::unique_ptr<const State> state);

 private:
  std::unique_ptr<const State> state_;
};

// Findings about one set that takes another's place: limits that shrink to a tenth or less, rules
// that are gone.
[[nodiscard]] std::vector<RuleIssue> LintAgainst(const RuleSet& running, const RuleSet& candidate);

// What changes for whom. `text` is one line: "plan: 1000/h -> 500/h for tier pro (lowered)".
struct RuleChange {
  enum class Kind : uint8_t { kAdded, kRemoved, kRaised, kLowered, kChanged };
  Kind kind = Kind::kChanged;
  std::string rule;
  std::string text;
};

[[nodiscard]] std::string_view ToString(RuleChange::Kind kind) noexcept;
[[nodiscard]] std::vector<RuleChange> Diff(const RuleSet& before, const RuleSet& after);

// The JSON Schema of rule files, as published in docs/reference/rules.schema.json.
[[nodiscard]] std::string_view RuleSchema() noexcept;

}  // namespace weir
