#include "server/rule_switches.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::server {
namespace {

using std::chrono::seconds;

constexpr std::string_view kRules = R"(
rules:
  - {name: login, per: ip, limit: 1/min fixed-window}
  - {name: all, group: all, per: ip, limit: 5/min fixed-window, shadow: true}
)";

struct Bench {
  Bench() : store(*MemoryStore::Create({.budget_bytes = size_t{8} << 20, .clock = &clock})) {
    const auto first = RuleSet::Parse(kRules).rules;
    limiter = *RuleLimiter::Create(first, store, {.clock = &clock});
    switches = std::make_unique<RuleSwitches>(
        first, [this](std::shared_ptr<const RuleSet> rules) -> Result<void> {
          ++applied;
          return refuse ? Result<void>(Error::Invalid("refused")) : limiter->Apply(rules);
        });
  }

  std::string Ask() {
    const Attribute attributes[] = {{"ip", "192.0.2.1"}};
    const RuleVerdict verdict = limiter->Check(attributes);
    return (verdict.allowed() ? "allowed " : "denied ") + std::string(verdict.rule());
  }

  ManualClock clock{WallTime(std::chrono::hours(500'000))};
  std::shared_ptr<MemoryStore> store;
  std::unique_ptr<RuleLimiter> limiter;
  std::unique_ptr<RuleSwitches> switches;
  int applied = 0;
  bool refuse = false;
};

TEST(RuleSwitches, TurnARuleOffAndBackOnWithoutForgettingItsCounts) {
  Bench bench;
  EXPECT_EQ(bench.Ask(), "allowed login");
  EXPECT_EQ(bench.Ask(), "denied login");
  ASSERT_TRUE(bench.switches->Switch("login", RuleMode::kOff, {}).ok());
  EXPECT_EQ(bench.Ask(), "allowed ");
  ASSERT_EQ(bench.switches->all().size(), 1U);
  EXPECT_EQ(bench.switches->all()[0].rule, "login");
  EXPECT_EQ(bench.limiter->rules()->rules()[0].switched, RuleMode::kOff);
  ASSERT_TRUE(bench.switches->Switch("login", RuleMode::kAsWritten, {}).ok());
  EXPECT_EQ(bench.Ask(), "denied login");
  EXPECT_TRUE(bench.switches->all().empty());
}

TEST(RuleSwitches, ShadowCountsAndOnEnforces) {
  Bench bench;
  ASSERT_TRUE(bench.switches->Switch("login", RuleMode::kShadow, {}).ok());
  EXPECT_EQ(bench.Ask(), "allowed ");
  EXPECT_EQ(bench.Ask(), "allowed ");
  EXPECT_EQ(bench.limiter->Counts()[0].shadow_denied, 1U);
  ASSERT_TRUE(bench.switches->Switch("all", RuleMode::kOn, {}).ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(bench.Ask(), "allowed all");
  }
  EXPECT_EQ(bench.Ask(), "denied all") << "what it counted in shadow counts";
  EXPECT_EQ(bench.switches->all().size(), 2U);
}

TEST(RuleSwitches, EndAtTheirTime) {
  Bench bench;
  const uint64_t version = bench.limiter->rules()->version();
  const Timestamp now = bench.clock.Now();
  ASSERT_TRUE(bench.switches->Switch("login", RuleMode::kOff, now + seconds(60)).ok());
  ASSERT_TRUE(bench.switches->Switch("all", RuleMode::kOff, {}).ok());
  EXPECT_NE(bench.limiter->rules()->version(), version);
  const int before = bench.applied;
  bench.switches->EndDue(now + seconds(59));
  EXPECT_EQ(bench.applied, before);
  bench.switches->EndDue(now + seconds(60));
  ASSERT_EQ(bench.switches->all().size(), 1U);
  EXPECT_EQ(bench.switches->all()[0].rule, "all");
  EXPECT_EQ(bench.Ask(), "allowed login");
}

TEST(RuleSwitches, EndWithTheNextRules) {
  Bench bench;
  ASSERT_TRUE(bench.switches->Switch("login", RuleMode::kOff, {}).ok());
  const auto next = RuleSet::Parse("rules: [{name: login, per: ip, limit: 2/min}]").rules;
  bench.refuse = true;
  EXPECT_FALSE(bench.switches->Load(next).ok());
  EXPECT_EQ(bench.switches->all().size(), 1U) << "rules that are not taken change nothing";
  bench.refuse = false;
  ASSERT_TRUE(bench.switches->Load(next).ok());
  EXPECT_TRUE(bench.switches->all().empty());
  EXPECT_EQ(bench.Ask(), "allowed login");
}

TEST(RuleSwitches, AWrongNameChangesNothingAndTheErrorHelps) {
  Bench bench;
  for (const RuleMode mode : {RuleMode::kOff, RuleMode::kAsWritten}) {
    const Result<void> done = bench.switches->Switch("logn", mode, {});
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().message, "no rule is called \"logn\"; did you mean \"login\"?");
  }
  EXPECT_EQ(bench.applied, 0);
  EXPECT_TRUE(bench.switches->all().empty());
}

TEST(RuleSwitches, ModesHaveNames) {
  EXPECT_EQ(ParseRuleMode("off"), RuleMode::kOff);
  EXPECT_EQ(ParseRuleMode("shadow"), RuleMode::kShadow);
  EXPECT_EQ(ParseRuleMode("on"), RuleMode::kOn);
  EXPECT_EQ(ParseRuleMode("as-written"), RuleMode::kAsWritten);
  EXPECT_EQ(ParseRuleMode("OFF"), std::nullopt);
  EXPECT_EQ(ParseRuleMode(""), std::nullopt);
}

}  // namespace
}  // namespace weir::server
