// Rules that change while they decide.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/rules.h"

#include "rules/test_rules.h"

namespace weir::rules {
namespace {

using namespace std::chrono_literals;

std::string One(std::string_view limit, std::string_view more = "") {
  return "rules: [{name: a, per: user, limit: " + std::string(limit) + std::string(more) + "}]";
}

TEST(Reload, AnUnchangedRuleKeepsItsCounts) {
  TestRules at(One("2/h"));
  at.Ask({{"user", "u"}});
  ASSERT_TRUE(at.limiter->Apply(
      MustParse("rules: [{name: new, per: ip, limit: 1/s}, {name: a, per: user, limit: 2/h}]")));
  EXPECT_EQ(at.Left("a", {{"user", "u"}}), 1U);
  // Away and back again.
  ASSERT_TRUE(at.limiter->Apply(MustParse("rules: []")));
  EXPECT_EQ(at.Ask({{"user", "u"}}), "allowed");
  ASSERT_TRUE(at.limiter->Apply(MustParse(One("2/h"))));
  EXPECT_EQ(at.Left("a", {{"user", "u"}}), 1U);
}

TEST(Reload, ARaiseNeverDeniesAndGivesNoFreshCount) {
  TestRules at(One("10/h"));
  for (int i = 0; i < 10; ++i) {
    at.Ask({{"user", "u"}});
  }
  EXPECT_EQ(at.Ask({{"user", "u"}}), "denied by a");
  ASSERT_TRUE(at.limiter->Apply(MustParse(One("15/h"))));
  EXPECT_EQ(at.Left("a", {{"user", "u"}}), 5U);
  ASSERT_TRUE(at.limiter->Apply(MustParse(One("2/h"))));
  EXPECT_EQ(at.Ask({{"user", "u"}}), "denied by a");
}

TEST(Reload, ANewKindOfQuotaIsTaken) {
  TestRules at(One("10/h"));
  at.Ask({{"user", "u"}});
  ASSERT_TRUE(at.limiter->Apply(MustParse(One("concurrency 3 lease 10s"))));
  EXPECT_EQ(at.Left("a", {{"user", "u"}}), 3U);
  ASSERT_TRUE(at.limiter->Apply(MustParse(One("5/min sliding-log"))));
  EXPECT_EQ(at.Left("a", {{"user", "u"}}), 5U);
}

TEST(Reload, NextWindowWaitsForIt) {
  TestRules at(One("10/h fixed-window"));
  at.clock.Advance(10min);  // 12:10
  ASSERT_TRUE(at.limiter->Apply(MustParse(One("3/h fixed-window", ", apply: next-window"))));
  EXPECT_EQ(at.Part("a", {{"user", "u"}}).limit, 10U);
  EXPECT_EQ(at.reply.parts()[0].quota->text, "10/h fixed-window");
  at.clock.Advance(50min - 1ns);
  EXPECT_EQ(at.Part("a", {{"user", "v"}}).limit, 10U);
  at.clock.Advance(1ns);
  EXPECT_EQ(at.Part("a", {{"user", "w"}}).limit, 3U);
  EXPECT_EQ(at.reply.parts()[0].quota->text, "3/h fixed-window");
}

TEST(Reload, NextWindowOfACalendarIsTheZonesOwn) {
  TestRules at(One("10/day calendar in Europe/Berlin"));
  ASSERT_TRUE(
      at.limiter->Apply(MustParse(One("3/day calendar in Europe/Berlin", ", apply: next-window"))));
  at.clock.Advance(10h - 1s);  // 21:59:59 UTC, a second before midnight in Berlin
  EXPECT_EQ(at.Part("a", {{"user", "u"}}).limit, 10U);
  at.clock.Advance(1s);
  EXPECT_EQ(at.Part("a", {{"user", "u"}}).limit, 3U);
}

TEST(Reload, ChangesThatComeTooOftenAreMadeUpFor) {
  TestRules at(One("10/h"));
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(at.limiter->Apply(MustParse(One(std::to_string(100 + i) + "/h"))));
    EXPECT_EQ(at.limiter->rules()->rules()[0].variants[0].quotas[0].quota.limit(), 100U + i);
    at.Ask({{"user", "u"}});
  }
  for (int i = 0; i < 3 && at.Part("a", {{"user", "v"}}).limit != 139; ++i) {
    at.clock.Advance(3h);
  }
  EXPECT_EQ(at.Part("a", {{"user", "v"}}).limit, 139U);
}

TEST(Reload, WhoHoldsAPinMayNotApply) {
  TestRules at(One("10/h"));
  const RuleLimiter::Pin pin = at.limiter->pin();
  EXPECT_FALSE(at.limiter->Apply(MustParse(One("11/h"))).ok());
  EXPECT_EQ(at.limiter->Apply(nullptr).error().code, ErrorCode::kInvalidArgument);
}

// Two sets in which two rules always have the same limit. A decision that saw one rule of the one
// and one of the other would tell.
TEST(Reload, NoDecisionMixesTwoVersions) {
  const auto text = [](int limit) {
    const std::string n = std::to_string(limit);
    return "rules: [{name: a, per: user, limit: " + n + "/s burst " + n +
           "}, {name: b, per: ip, limit: " + n + "/s burst " + n + "}]";
  };
  const std::shared_ptr<const RuleSet> sets[] = {MustParse(text(1000000)), MustParse(text(2000000)),
                                                 MustParse("rules: []")};
  const auto store = *MemoryStore::Create({.budget_bytes = size_t{8} << 20});
  const auto limiter = *RuleLimiter::Create(sets[0], store);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> decided{0};
  std::atomic<uint64_t> mixed{0};
  std::atomic<uint64_t> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      auto reply = std::make_unique<RuleReply>();
      const std::string user = "u" + std::to_string(i);
      const Attribute request[] = {{"user", user}, {"ip", "192.0.2.1"}};
      while (!stop.load(std::memory_order_relaxed)) {
        const RuleLimiter::Pin pin = limiter->pin();
        limiter->Check(pin, {.attributes = request}, *reply);
        failed += reply->allowed() && reply->version == pin.rules().version() ? 0 : 1;
        if (reply->parts().size() == 2) {
          mixed += reply->parts()[0].decision.limit == reply->parts()[1].decision.limit ? 0 : 1;
        }
        ++decided;
      }
    });
  }
  for (int i = 0; i < 300 || decided.load() < 1000; ++i) {
    ASSERT_TRUE(limiter->Apply(sets[i % 3]));
  }
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(mixed.load(), 0U);
  EXPECT_EQ(failed.load(), 0U);
}

}  // namespace
}  // namespace weir::rules
