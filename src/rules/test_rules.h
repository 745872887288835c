// Rules from text, on a store with a clock that is set by hand.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "weir/rules.h"

namespace weir::rules {

// A Wednesday noon.
inline constexpr WallTime kTestStart{std::chrono::sys_days{std::chrono::year(2026) / 7 / 1} +
                                     std::chrono::hours(12)};

inline std::string Messages(const RuleParse& parse) {
  std::string all;
  for (const RuleIssue& issue : parse.issues) {
    all += ToString(issue) + "\n";
  }
  return all;
}

inline std::shared_ptr<const RuleSet> MustParse(std::string_view text) {
  const RuleParse parse = RuleSet::Parse(text, "test.yaml");
  EXPECT_NE(parse.rules, nullptr) << Messages(parse);
  return parse.rules;
}

class TestRules {
 public:
  explicit TestRules(std::string_view text, RuleLimiterOptions options = {})
      : TestRules(MustParse(text), options) {}
  explicit TestRules(std::shared_ptr<const RuleSet> rules, RuleLimiterOptions options = {}) {
    store = *MemoryStore::Create(
        {.budget_bytes = size_t{8} << 20, .clock = &clock, .record_percent = 25});
    options.clock = &clock;
    auto made = RuleLimiter::Create(std::move(rules), store, options);
    EXPECT_TRUE(made.ok()) << (made ? "" : made.error().message);
    limiter = *std::move(made);
  }

  // "allowed by login", "denied by login", "denied: blocked", "allowed".
  std::string Ask(std::vector<Attribute> attributes, Cost cost = 1) {
    const RuleVerdict verdict = limiter->Check(attributes, cost);
    std::string text = verdict.outcome == Outcome::kAllowed  ? "allowed"
                       : verdict.outcome == Outcome::kDenied ? "denied"
                                                             : "refused";
    if (!verdict.rule().empty()) {
      text += " by " + std::string(verdict.rule());
    }
    if (verdict.why != RuleRefusal::kNone) {
      text += ": " + std::string(ToString(verdict.why));
    }
    return text;
  }

  // What the rule has left for the request; it must meet the rule.
  uint32_t Left(std::string_view rule, std::vector<Attribute> attributes) {
    return Part(rule, attributes, 0).remaining;
  }

  Decision Part(std::string_view rule, std::vector<Attribute> attributes, Cost cost = 1) {
    const RuleLimiter::Pin pin = limiter->pin();
    limiter->Check(pin, {.attributes = attributes, .cost = cost}, reply);
    for (const RulePart& part : reply.parts()) {
      if (part.rule->name == rule) {
        return part.decision;
      }
    }
    ADD_FAILURE() << "the request does not meet " << rule;
    return {};
  }

  // The keys of all parts, "rule=key rule=key".
  std::string Keys(std::vector<Attribute> attributes) {
    const RuleLimiter::Pin pin = limiter->pin();
    limiter->Check(pin, {.attributes = attributes, .mode = ChargeMode::kDryRun}, reply);
    std::string text;
    for (const RulePart& part : reply.parts()) {
      text += (text.empty() ? "" : " ") + part.rule->name + "=" + std::string(part.key);
    }
    return text;
  }

  ManualClock clock{kTestStart};
  std::shared_ptr<MemoryStore> store;
  std::unique_ptr<RuleLimiter> limiter;
  RuleReply reply;
};

}  // namespace weir::rules
