// Rules that count in a store which several processes share, here a plain counter of units by scope
// and key that tells what it was asked.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/rules.h"

#include "rules/test_rules.h"

namespace weir::rules {
namespace {

class CountingStore final : public SharedStore {
 public:
  Result<const SharedQuota*> Bind(const Quota& quota, uint64_t scope) override {
    if (quota.limit() == 13) {
      return Error::Invalid("limit: 13 brings bad luck");
    }
    for (const auto& bound : quotas) {
      if (bound->quota == quota && bound->scope == scope) {
        return bound.get();
      }
    }
    quotas.push_back(std::make_unique<SharedQuota>(quota, scope));
    return quotas.back().get();
  }

  void Decide(SharedRequest& request) noexcept override {
    ++questions;
    last_id = std::string(request.id);
    if (during != nullptr) {
      std::exchange(during, nullptr)();
    }
    const auto fits = [&](const SharedAsk& ask) {
      return UsedOf(ask) + ask.cost.units <= ask.quota->quota.limit();
    };
    bool all = true;
    for (const SharedAsk& ask : request.asks) {
      all = all && (ask.apart || fits(ask));
    }
    for (SharedAsk& ask : request.asks) {
      const uint64_t limit = ask.quota->quota.limit();
      ask.decision = {};
      ask.decision.limit = static_cast<uint32_t>(limit);
      if (away) {
        ask.trouble = StoreTrouble::kTimeout;
        const bool allow = ask.on_failure == OnStoreFailure::kAllow;
        ask.decision.outcome = allow ? Outcome::kAllowed : Outcome::kDenied;
        ask.decision.basis = allow ? Basis::kOpen : Basis::kClosed;
        continue;
      }
      const bool mine = fits(ask);
      ask.decision.outcome = mine ? Outcome::kAllowed : Outcome::kDenied;
      if (mine && (ask.apart || all) && request.mode != ChargeMode::kDryRun) {
        UsedOf(ask) += ask.cost.units;
        ask.decision.charged = static_cast<uint32_t>(ask.cost.units);
        ask.receipt.quota = ask.quota;
        ask.receipt.key[0] = std::hash<std::string_view>{}(ask.key);
        ask.receipt.charged = ask.decision.charged;
      }
      ask.decision.remaining = static_cast<uint32_t>(limit - UsedOf(ask));
    }
  }

  uint32_t GiveBack(std::span<SharedReceipt> receipts) noexcept override {
    uint32_t most = 0;
    for (SharedReceipt& receipt : receipts) {
      if (receipt.charged != 0) {
        used[{receipt.quota->scope, receipt.key[0]}] -= receipt.charged;
        most = std::max(most, std::exchange(receipt.charged, 0));
      }
    }
    return most;
  }
  bool Renew(SharedReceipt&, Duration) noexcept override { return false; }
  ResetOutcome Reset(const SharedQuota& quota, std::string_view key) noexcept override {
    return used.erase({quota.scope, std::hash<std::string_view>{}(key)}) != 0
               ? ResetOutcome::kDone
               : ResetOutcome::kUnknown;
  }
  void Reserve(SharedRequest&, uint64_t, Duration, std::string_view) noexcept override {}
  SharedSettlement Settle(std::string_view, uint64_t) noexcept override { return {}; }
  bool RenewReserved(std::string_view, Duration) noexcept override { return false; }
  std::string Bound(const SharedQuota&, OnStoreFailure) const override { return "never more"; }
  SharedStoreStats Stats() const override { return {}; }

  std::vector<std::unique_ptr<SharedQuota>> quotas;
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> used;
  int questions = 0;
  bool away = false;
  std::string last_id;
  std::function<void()> during;  // once, while a question is under way

 private:
  uint64_t& UsedOf(const SharedAsk& ask) {
    return used[{ask.quota->scope, std::hash<std::string_view>{}(ask.key)}];
  }
};

class SharedRules : public testing::Test {
 protected:
  TestRules Make(std::string_view text) { return TestRules(text, {.shared = store_}); }

  std::shared_ptr<CountingStore> store_ = std::make_shared<CountingStore>();
};

constexpr std::string_view kTwoRules = R"(
rules:
  - {name: per-ip, per: ip, limit: 3/min}
  - {name: per-user, per: user, limit: 2/min}
)";

TEST_F(SharedRules, OneQuestionForAllQuotasOfARequest) {
  TestRules at = Make(kTwoRules);
  EXPECT_EQ(at.Ask({{"ip", "a"}, {"user", "u"}}), "allowed by per-user");
  EXPECT_EQ(store_->questions, 1);
  EXPECT_EQ(at.Ask({{"ip", "a"}, {"user", "u"}}), "allowed by per-user");
  EXPECT_EQ(at.Ask({{"ip", "a"}, {"user", "u"}}), "denied by per-user");
  EXPECT_EQ(at.Left("per-ip", {{"ip", "a"}}), 1U) << "refused, and so charged to neither";
}

TEST_F(SharedRules, ProcessesCountTogether) {
  TestRules one = Make(kTwoRules);
  TestRules other = Make(kTwoRules);
  EXPECT_EQ(one.Ask({{"user", "u"}}), "allowed by per-user");
  EXPECT_EQ(other.Ask({{"user", "u"}}), "allowed by per-user");
  EXPECT_EQ(one.Ask({{"user", "u"}}), "denied by per-user");
  EXPECT_EQ(other.Ask({{"user", "u"}}), "denied by per-user");
}

TEST_F(SharedRules, ShadowIsAskedApart) {
  TestRules at = Make(R"(
rules:
  - {name: real, per: ip, limit: 3/min}
  - {name: tried, group: b, per: ip, limit: 1/min, shadow: true}
)");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(at.Ask({{"ip", "a"}}), "allowed by real");
  }
  EXPECT_EQ(at.Ask({{"ip", "a"}}), "denied by real");
  EXPECT_EQ(store_->questions, 4);
  EXPECT_EQ(at.limiter->Counts()[1].shadow_denied, 3U);
}

TEST_F(SharedRules, WhatBecomesOfARuleWhoseStoreIsAway) {
  TestRules at = Make(R"(
rules:
  - {name: open, per: ip, limit: 3/min, on-store-failure: allow}
  - {name: shut, per: user, limit: 3/min, on-store-failure: deny}
)");
  store_->away = true;
  EXPECT_EQ(at.Ask({{"ip", "a"}}), "allowed") << "nobody counted, so no rule speaks";
  EXPECT_EQ(at.Ask({{"ip", "a"}, {"user", "u"}}), "denied by shut");
  const RuleLimiter::Pin pin = at.limiter->pin();
  const std::vector<Attribute> asked = {{"user", "u"}};
  at.limiter->Check(pin, {.attributes = asked}, at.reply);
  EXPECT_EQ(at.reply.trouble, StoreTrouble::kTimeout);
  store_->away = false;
  at.limiter->Check(pin, {.attributes = asked}, at.reply);
  EXPECT_TRUE(at.reply.allowed());
  EXPECT_EQ(at.reply.trouble, StoreTrouble::kNone);
}

TEST_F(SharedRules, GivesBackAndStartsAnew) {
  TestRules at = Make(kTwoRules);
  const std::vector<Attribute> asked = {{"ip", "a"}, {"user", "u"}};
  {
    const RuleLimiter::Pin pin = at.limiter->pin();
    at.limiter->Check(pin, {.attributes = asked, .cost = 2, .keep_receipts = true}, at.reply);
  }
  EXPECT_EQ(at.Left("per-user", asked), 0U);
  {
    const RuleLimiter::Pin pin = at.limiter->pin();
    at.limiter->Check(pin, {.attributes = asked, .cost = 0, .keep_receipts = true}, at.reply);
    EXPECT_EQ(at.limiter->GiveBack(at.reply), 0U);
  }
  const std::vector<RuleReset> reset = at.limiter->Reset(asked, "per-user");
  ASSERT_EQ(reset.size(), 1U);
  EXPECT_EQ(reset[0].outcome, ResetOutcome::kDone);
  EXPECT_EQ(at.Left("per-user", asked), 2U);
  EXPECT_EQ(at.Left("per-ip", asked), 1U);
  const RuleLimiter::Pin pin = at.limiter->pin();
  at.limiter->Check(pin, {.attributes = asked, .keep_receipts = true, .id = "once"}, at.reply);
  EXPECT_EQ(store_->last_id, "once");
  EXPECT_EQ(at.limiter->GiveBack(at.reply), 1U);
  EXPECT_EQ(at.limiter->GiveBack(at.reply), 0U) << "once";
  EXPECT_EQ(at.Left("per-ip", asked), 1U);
}

TEST_F(SharedRules, RulesChangeWhileAQuestionIsUnderWay) {
  TestRules at = Make(kTwoRules);
  const std::vector<Attribute> asked = {{"user", "u"}};
  const RuleLimiter::Pin pin = at.limiter->pin();
  store_->during = [&] {
    EXPECT_TRUE(at.limiter->Apply(MustParse("rules: [{name: per-user, per: user, limit: 9/min}]")));
  };
  at.limiter->Check(pin, {.attributes = asked}, at.reply);
  ASSERT_EQ(at.reply.parts().size(), 1U);
  EXPECT_EQ(at.reply.parts()[0].rule->name, "per-user") << "of the version that it began with";
  EXPECT_EQ(at.reply.parts()[0].decision.limit, 2U);
  EXPECT_EQ(at.Left("per-user", asked), 8U) << "what was charged counts under the new quota";
}

TEST_F(SharedRules, AQuotaThatTheStoreRefusesChangesNothing) {
  TestRules at = Make(kTwoRules);
  const Result<void> applied =
      at.limiter->Apply(MustParse("rules: [{name: bad, per: user, limit: 13/min}]"));
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().message, "rule \"bad\": 13/min: limit: 13 brings bad luck");
  EXPECT_EQ(at.Ask({{"user", "u"}}), "allowed by per-user");
}

TEST_F(SharedRules, ExplainTellsTheStoresBound) {
  TestRules at = Make(kTwoRules);
  const std::vector<Attribute> asked = {{"user", "u"}};
  const Explanation told = at.limiter->Explain(asked);
  ASSERT_EQ(told.rules[1].quotas.size(), 1U);
  EXPECT_NE(told.rules[1].quotas[0].bound.find("; never more"), std::string::npos);
  EXPECT_TRUE(store_->used.empty() || store_->used.begin()->second == 0U) << "consumes nothing";
}

}  // namespace
}  // namespace weir::rules
