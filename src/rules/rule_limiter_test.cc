#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "weir/rules.h"

#include "rules/test_rules.h"

namespace weir::rules {
namespace {

using namespace std::chrono_literals;

TEST(RuleLimiter, CountsByAddress) {
  TestRules at("rules: [{name: per-ip, per: ip, limit: 2/min fixed-window}]");
  EXPECT_EQ(at.Ask({{"ip", "192.0.2.1"}}), "allowed by per-ip");
  EXPECT_EQ(at.Ask({{"ip", "192.0.2.1:443"}}), "allowed by per-ip");
  EXPECT_EQ(at.Ask({{"ip", "::ffff:192.0.2.1"}}), "denied by per-ip");
  EXPECT_EQ(at.Ask({{"ip", "192.0.2.2"}}), "allowed by per-ip");
  EXPECT_EQ(at.Ask({{"user", "x"}}), "allowed");
}

TEST(RuleLimiter, TheMostSpecificOfAGroupWinsAndGroupsApplyTogether) {
  TestRules at(R"(
rules:
  - {name: all, per: ip, limit: 5/min fixed-window}
  - {name: login, when: {method: POST, path: /login}, per: ip, limit: 1/min fixed-window}
  - {name: user, per: user, limit: 3/min fixed-window}
)");
  EXPECT_EQ(at.Ask({{"ip", "a"}, {"method", "POST"}, {"path", "/login"}}), "allowed by login");
  EXPECT_EQ(at.Ask({{"ip", "a"}, {"method", "POST"}, {"path", "/login?x=1"}}), "denied by login");
  EXPECT_EQ(at.Ask({{"ip", "a"}, {"method", "GET"}, {"path", "/login"}}), "allowed by all");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(at.Ask({{"ip", "b"}, {"user", "u"}}), "allowed by user");
  }
  EXPECT_EQ(at.Ask({{"ip", "b"}, {"user", "u"}}), "denied by user");
  // Refused, and so charged to neither.
  EXPECT_EQ(at.Left("all", {{"ip", "b"}}), 2U);
}

TEST(RuleLimiter, Ipv6IsCountedByTheNetwork) {
  TestRules at(R"(
rules:
  - {name: net, per: ip, limit: 1/min fixed-window}
  - {name: host, group: host, per: ip, ipv6-prefix: 128, limit: 9/min}
)");
  EXPECT_EQ(at.Keys({{"ip", "2001:db8:1:2:3:4:5:6%eth0"}}),
            "net=2001:db8:1:2:: host=2001:db8:1:2:3:4:5:6");
  EXPECT_EQ(at.Keys({{"ip", "[2001:db8:1:2::9]:443"}}), "net=2001:db8:1:2:: host=2001:db8:1:2::9");
  EXPECT_EQ(at.Keys({{"ip", "64:ff9b::c000:201"}}), "net=192.0.2.1 host=192.0.2.1");
  // What is no address is counted as it is.
  EXPECT_EQ(at.Keys({{"ip", "unix:"}}), "net=unix: host=unix:");
}

TEST(RuleLimiter, CompositeKeysAreUnambiguous) {
  TestRules at("rules: [{name: a, per: [user, x], limit: 1/min}]");
  EXPECT_EQ(at.Keys({{"user", "a|b"}, {"x", "c"}}), "a=a\\|b|c");
  EXPECT_EQ(at.Keys({{"user", "a"}, {"x", "b|c"}}), "a=a|b\\|c");
  EXPECT_EQ(at.Keys({{"user", "a\\"}, {"x", "|"}}), "a=a\\\\|\\|");
  EXPECT_EQ(at.Keys({{"user", std::string_view("a\0b", 3)}, {"x", "c"}}), "a=a\\0b|c");
  const std::string long_a(200, 'a');
  const std::string long_b = std::string(199, 'a') + "b";
  const std::string key_a = at.Keys({{"user", long_a}, {"x", "c"}});
  const std::string key_b = at.Keys({{"user", long_b}, {"x", "c"}});
  EXPECT_NE(key_a, key_b);
  EXPECT_EQ(key_a.size(), 2U + 64 + 2 + 32 + 2);
}

TEST(RuleLimiter, ResetsWhatARequestIsCountedBy) {
  TestRules at(R"(
rules:
  - {name: ip, group: ip, per: ip, limit: 1/h}
  - {name: user, group: user, per: user, limits: [2/h, 1/min sliding-log]}
  - {name: seen, group: seen, per: user, limit: 1/h, shadow: true}
)");
  const std::vector<Attribute> bob = {{"ip", "192.0.2.1"}, {"user", "bob"}};
  const auto outcomes = [](const std::vector<RuleReset>& all) {
    std::string text;
    for (const RuleReset& one : all) {
      text += one.rule + (one.outcome == ResetOutcome::kDone ? "+ " : "- ");
    }
    return text;
  };
  EXPECT_EQ(outcomes(at.limiter->Reset(bob)), "ip- user- user- seen- ");
  ASSERT_EQ(at.Ask(bob), "allowed by ip");
  ASSERT_EQ(at.Ask(bob), "denied by ip");
  EXPECT_EQ(outcomes(at.limiter->Reset(bob, "ip")), "ip+ ");
  EXPECT_EQ(at.Ask(bob), "denied by user") << "the rule that was not named has counted";
  EXPECT_EQ(outcomes(at.limiter->Reset(bob)), "ip+ user+ user+ seen+ ");
  EXPECT_EQ(at.Ask(bob), "allowed by ip");
  EXPECT_TRUE(at.limiter->Reset({}, "").empty()) << "meets no rule";
  EXPECT_TRUE(at.limiter->Reset(bob, "none").empty());
}

TEST(RuleLimiter, ShowsDigestsOfKeysThatAreSecrets) {
  TestRules at(R"(
rules:
  - {name: by-key, group: a, when: {api_key: {prefix: sk_}}, per: api_key | ip, limit: 90000/h}
  - {name: by-cookie, group: b, per: ["header:cookie", ip], limit: 90000/h}
  - {name: by-ip, group: c, per: ip, limit: 90000/h}
)",
               {.top_keys = 10});
  const std::string secret = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";
  const std::string cookie = "session=" + secret;
  const std::vector<Attribute> request = {
      {"api_key", secret}, {"header:cookie", cookie}, {"ip", "192.0.2.1"}};
  for (int i = 0; i < 2000; ++i) {
    at.Ask(request);
  }
  const Explanation explained = at.limiter->Explain(request);
  EXPECT_EQ(explained.rules[0].key.size(), 13U);
  EXPECT_EQ(explained.rules[0].key.front(), '#');
  EXPECT_EQ(explained.rules[2].key, "192.0.2.1");
  const std::string other_key = "pk_" + secret;
  const std::vector<Attribute> other = {{"api_key", other_key}, {"ip", "192.0.2.1"}};
  for (const Explanation& one : {explained, at.limiter->Explain(other)}) {
    EXPECT_EQ(ToText(one).find(secret), std::string::npos) << ToText(one);
    EXPECT_EQ(ToJson(one).find(secret), std::string::npos);
  }
  const auto leaks = [&secret](const RuleParse& parsed) {
    std::string all;
    for (const RuleIssue& issue : parsed.issues) {
      all += ToString(issue);
    }
    if (parsed.rules != nullptr) {
      all += parsed.rules->rules().front().when;
    }
    return all.find(secret) != std::string::npos;
  };
  for (const std::string& matcher :
       {secret, "{regex: '" + secret + "|x'}", "{regex: '[" + secret + "'}",
        "{glob: '*" + secret + "?'}", "{contains: " + secret + "}", "{suffix: " + secret + "}"}) {
    EXPECT_FALSE(leaks(RuleSet::Parse("rules: [{name: a, when: {api_key: " + matcher +
                                      "}, per: ip, limit: 1/h}]")))
        << matcher;
  }
  const std::string twice = "{rule: a, key: " + secret + ", limit: 2/h}";
  EXPECT_FALSE(leaks(RuleSet::Parse("rules: [{name: a, per: api_key, limit: 1/h}]\noverrides: [" +
                                    twice + ", " + twice + "]")));
  for (const char* rule : {"by-key", "by-cookie"}) {
    const std::vector<TopKey> top = at.limiter->TopKeys(rule, 10);
    ASSERT_EQ(top.size(), 1U) << rule;
    EXPECT_TRUE(top[0].hidden);
    EXPECT_EQ(top[0].key.find("sk_"), std::string::npos);
  }
  EXPECT_EQ(at.limiter->TopKeys("by-key", 1)[0].key, explained.rules[0].key);
  EXPECT_EQ(at.limiter->TopKeys("by-ip", 1)[0].key, "192.0.2.1");
}

TEST(RuleLimiter, TakesTheFirstThatIsPresent) {
  TestRules at("rules: [{name: a, per: api_key | user | ip, limit: 1/min}]");
  EXPECT_EQ(at.Keys({{"ip", "192.0.2.1"}, {"user", "u"}}), "a=user=u");
  EXPECT_EQ(at.Keys({{"ip", "192.0.2.1"}, {"user", ""}}), "a=ip=192.0.2.1");
  EXPECT_EQ(at.Keys({{"x", "y"}}), "");
}

TEST(RuleLimiter, RoutesAndParametersAreKeys) {
  TestRules at(R"(
rules:
  - name: item
    when: {path: ["/users/{id}/posts", "/u/{id}"]}
    per: ["path:id", route]
    limit: 1/min
  - {name: any, group: any, per: route, limit: 1/min}
)");
  EXPECT_EQ(at.Keys({{"path", "/users/7/posts?x=/"}}),
            "item=7|/users/{id}/posts any=/users/7/posts");
  EXPECT_EQ(at.Keys({{"path", "//u/8/"}}), "item=8|/u/{id} any=//u/8/");
  EXPECT_EQ(at.Keys({{"path", "/x"}, {"route", "/named"}}), "any=/named");
}

TEST(RuleLimiter, MissingAttributesAreSkippedDeniedOrShared) {
  TestRules at(R"(
rules:
  - {name: skip, group: a, per: user, limit: 1/min}
  - {name: shared, group: b, per: [user, ip], on-missing: shared, limit: 1/min}
  - {name: deny, group: c, when: {path: /strict}, per: user, on-missing: deny, limit: 1/min}
)");
  EXPECT_EQ(at.Keys({{"ip", "192.0.2.1"}}), "shared=\\-|192.0.2.1");
  EXPECT_EQ(at.Ask({{"path", "/strict"}}), "denied by deny: missing attribute");
  EXPECT_EQ(at.Ask({{"path", "/strict"}, {"user", "u"}}), "allowed by skip");
}

TEST(RuleLimiter, TiersByTableAndByMultiplier) {
  TestRules at(R"(
tiers: {premium: 5x, half: 0.5x}
rules:
  - {name: table, per: user, by: plan, limit: {pro: 30/h, staff: unlimited, default: 10/h}}
  - {name: times, group: t, per: user, by: tier, limit: 4/min, burst: 2}
)");
  EXPECT_EQ(at.Part("table", {{"user", "a"}}).limit, 10U);
  EXPECT_EQ(at.Part("table", {{"user", "b"}, {"plan", "pro"}}).limit, 30U);
  EXPECT_EQ(at.Part("table", {{"user", "c"}, {"plan", "unheard of"}}).limit, 10U);
  EXPECT_EQ(at.Keys({{"user", "d"}, {"plan", "staff"}}), "times=d");
  EXPECT_EQ(at.Part("times", {{"user", "e"}, {"tier", "premium"}}).limit, 10U);
  EXPECT_EQ(at.Part("times", {{"user", "f"}, {"tier", "half"}}).limit, 1U);
  EXPECT_EQ(at.Part("times", {{"user", "g"}}).limit, 2U);
}

TEST(RuleLimiter, OverridesHoldUntilTheyExpire) {
  TestRules at(R"(
rules: [{name: plan, per: user, limit: 1/h}, {name: pair, per: [user, x], limit: 1/h}]
overrides:
  - {rule: plan, key: alice, limit: 7/h, expires: "2026-07-01T13:00:00Z"}
  - {rule: plan, key: bob, limit: unlimited}
  - {rule: pair, key: [alice, "a|b"], limit: 9/h}
)");
  EXPECT_EQ(at.Part("plan", {{"user", "alice"}}).limit, 7U);
  EXPECT_EQ(at.Part("plan", {{"user", "carol"}}).limit, 1U);
  EXPECT_EQ(at.Keys({{"user", "bob"}}), "");
  EXPECT_EQ(at.Part("pair", {{"user", "alice"}, {"x", "a|b"}}).limit, 9U);
  at.clock.Advance(1h);
  EXPECT_EQ(at.Part("plan", {{"user", "alice"}}).limit, 1U);
}

TEST(RuleLimiter, ListsComeBeforeRules) {
  TestRules at(R"(
rules: [{name: all, per: ip, limit: 1/h}]
block: [203.0.113.0/24, {api_key: [k1, k2], expires: 2026-07-02}, "2001:db8::/32"]
allow: [203.0.113.7, 10.0.0.0/8, {user: monitor}]
)");
  EXPECT_EQ(at.Ask({{"ip", "203.0.113.7"}}), "denied: blocked");  // block wins
  EXPECT_EQ(at.Ask({{"ip", "::ffff:203.0.113.9"}}), "denied: blocked");
  EXPECT_EQ(at.Ask({{"ip", "2001:db8:1::1"}}), "denied: blocked");
  EXPECT_EQ(at.Ask({{"api_key", "k2"}}), "denied: blocked");
  at.clock.Advance(24h);
  EXPECT_EQ(at.Ask({{"api_key", "k2"}}), "allowed");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(at.Ask({{"ip", "10.1.2.3"}}), "allowed");
    EXPECT_EQ(at.Ask({{"ip", "192.0.2.3"}, {"user", "monitor"}}), "allowed");
  }
}

TEST(RuleLimiter, UnlimitedBlockDisabledAndExpired) {
  TestRules at(R"(
rules:
  - {name: base, per: ip, limit: 1/h fixed-window}
  - {name: internal, when: {ip: 10.0.0.0/8}, per: ip, unlimited: true}
  - {name: gone, group: g1, when: {path: /old/**}, block: true}
  - {name: off, group: g2, disabled: true, block: true, when: {ip: present}}
  - {name: soon, when: {path: /sale}, per: ip, limit: 3/h, expires: "2026-07-01T12:00:01Z"}
)");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(at.Ask({{"ip", "10.0.0.9"}}), "allowed");
  }
  EXPECT_EQ(at.Ask({{"ip", "10.0.0.9"}, {"path", "/old"}}), "denied by gone: blocked");
  EXPECT_EQ(at.Ask({{"ip", "192.0.2.1"}, {"path", "/sale"}}), "allowed by soon");
  at.clock.Advance(1s);
  EXPECT_EQ(at.Ask({{"ip", "192.0.2.1"}, {"path", "/sale"}}), "allowed by base");
  EXPECT_EQ(at.Ask({{"ip", "192.0.2.1"}, {"path", "/sale"}}), "denied by base");
}

TEST(RuleLimiter, TheDefaultIsForWhatNoRuleMatches) {
  TestRules at(R"(
rules:
  - {name: api, when: {path: /api/**}, per: ip, limit: 9/h}
  - {name: dark, when: {path: /dark}, per: ip, limit: 9/h, shadow: true}
default: {per: ip, limit: 1/h}
)");
  EXPECT_EQ(at.Ask({{"ip", "a"}, {"path", "/api"}}), "allowed by api");
  EXPECT_EQ(at.Ask({{"ip", "a"}, {"path", "/x"}}), "allowed by default");
  EXPECT_EQ(at.Ask({{"ip", "b"}, {"path", "/dark"}}), "allowed by default");
}

TEST(RuleLimiter, ShadowRulesCountAloneAndNeverDecide) {
  TestRules at(R"(
rules:
  - {name: real, per: ip, limit: 3/h fixed-window}
  - {name: candidate, per: ip, limit: 1/h fixed-window, shadow: true}
)");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(at.Ask({{"ip", "a"}}), "allowed by real");
  }
  EXPECT_EQ(at.Ask({{"ip", "a"}}), "denied by real");
  const auto counts = at.limiter->Counts();
  EXPECT_EQ(counts[0].allowed, 3U);
  EXPECT_EQ(counts[0].denied, 1U);
  EXPECT_EQ(counts[1].allowed, 1U);
  EXPECT_EQ(counts[1].shadow_denied, 3U);
  EXPECT_EQ(counts[1].denied, 0U);
}

TEST(RuleLimiter, CanariesTakeAShareOfTheKeysTheSameOnEveryNode) {
  const char* const text = "rules: [{name: a, per: user, limit: 1/h, canary: 20%}]";
  TestRules one(text, {.fleet_secret = 1});
  TestRules other(text, {.fleet_secret = 1});
  TestRules stranger(text, {.fleet_secret = 2});
  int in = 0;
  int differ = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string user = "user" + std::to_string(i);
    const std::string keys = one.Keys({{"user", user}});
    in += keys.empty() ? 0 : 1;
    EXPECT_EQ(keys, other.Keys({{"user", user}}));
    differ += keys == stranger.Keys({{"user", user}}) ? 0 : 1;
  }
  EXPECT_NEAR(in, 400, 80);
  EXPECT_GT(differ, 100);
}

TEST(RuleLimiter, CostsComeFromTheRuleAndTheRequest) {
  TestRules at(R"(
rules:
  - {name: fixed, group: a, per: user, limit: 100/h, cost: 3}
  - {name: tokens, group: b, per: user, limit: 100/h,
     cost: {attribute: tokens, default: 2, max: 50}}
)");
  at.Ask({{"user", "a"}, {"tokens", "10"}}, 2);
  EXPECT_EQ(at.Left("fixed", {{"user", "a"}}), 94U);
  EXPECT_EQ(at.Left("tokens", {{"user", "a"}}), 80U);
  at.Ask({{"user", "b"}, {"tokens", "many"}});
  EXPECT_EQ(at.Left("tokens", {{"user", "b"}}), 98U);
  at.Ask({{"user", "c"}, {"tokens", "999999999999"}});
  EXPECT_EQ(at.Left("tokens", {{"user", "c"}}), 50U);
}

TEST(RuleLimiter, PeeksAndDryRunsChargeNothing) {
  TestRules at("rules: [{name: a, per: ip, limit: 2/h}, {name: b, per: user, limit: 1/h}]");
  const std::vector<Attribute> request = {{"ip", "x"}, {"user", "u"}};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(at.Ask(request, 0), "allowed by a");
    EXPECT_EQ(at.Keys(request), "a=x b=u");
  }
  EXPECT_EQ(at.Left("a", request), 2U);
  EXPECT_EQ(at.limiter->Counts()[0].allowed, 0U);
}

TEST(RuleLimiter, GivesBackWhatWasCharged) {
  TestRules at("rules: [{name: a, per: ip, limit: 2/h}, {name: b, per: user, limit: 3/h}]");
  const std::vector<Attribute> request = {{"ip", "x"}, {"user", "u"}};
  {
    const RuleLimiter::Pin pin = at.limiter->pin();
    at.limiter->Check(pin, {.attributes = request, .cost = 2, .keep_receipts = true}, at.reply);
  }
  ASSERT_TRUE(at.reply.allowed());
  EXPECT_EQ(at.limiter->GiveBack(at.reply), 2U);
  EXPECT_EQ(at.limiter->GiveBack(at.reply), 0U);
  EXPECT_EQ(at.Left("a", request), 2U);
  EXPECT_EQ(at.Left("b", request), 3U);
}

TEST(RuleLimiter, NoKeyHasAPortInIt) {
  TestRules at("rules: [{name: a, per: ip, limit: 2/h}]");
  for (const char* const ip : {"1.2.3.4:80", "1.2.3.4:99999", "1.2.3.4:0080"}) {
    EXPECT_EQ(at.limiter->Explain(std::vector<Attribute>{{"ip", ip}}).rules[0].key, "1.2.3.4")
        << ip;
  }
  for (const auto& [ip, key] : {std::pair("[2001:db8::1]:99999", "2001:db8::"),
                                std::pair("01.2.3.4:80", "01.2.3.4"), std::pair("a:80", "a")}) {
    EXPECT_EQ(at.limiter->Explain(std::vector<Attribute>{{"ip", ip}}).rules[0].key, key) << ip;
  }
}

TEST(RuleLimiter, RefusesWhatIsTooMuch) {
  TestRules at("rules: [{name: a, per: ip, limit: 2/h}]");
  const std::string long_value(kMaxAttributeBytes + 1, 'x');
  EXPECT_EQ(at.Ask({{"ip", long_value}}), "refused: attribute too long");
  EXPECT_EQ(at.Ask({{"cookie", long_value}, {"ip", "192.0.2.1"}}), at.Ask({{"ip", "192.0.2.2"}}))
      << "no rule asks for it";
  EXPECT_EQ(at.Ask(std::vector<Attribute>(kMaxAttributes + 1, {"a", "b"})),
            "refused: too many attributes");
  EXPECT_EQ(at.Ask({{"ip", "x"}}, 3), "refused by a");
}

TEST(RuleLimiter, TellsOfRulesThatOnlyMeetFreshKeys) {
  TestRules at("rules: [{name: id, per: id, limit: 2/h}, {name: user, per: user, limit: 1M/h}]");
  for (int i = 0; i < 10'001; ++i) {
    at.Ask({{"id", std::to_string(i)}, {"user", "u"}});
  }
  const auto counts = at.limiter->Counts();
  EXPECT_TRUE(counts[0].meets_fresh_keys);
  EXPECT_FALSE(counts[1].meets_fresh_keys);
}

TEST(RuleLimiter, HostsAndMethodsAreComparedAsTheyMean) {
  TestRules at(R"(
rules: [{name: a, when: {host: API.example.com, method: post}, per: ip, limit: 1/h}]
)");
  EXPECT_EQ(at.Keys({{"ip", "x"}, {"host", "api.EXAMPLE.com:8443"}, {"method", "POST"}}), "a=x");
  EXPECT_EQ(at.Keys({{"ip", "x"}, {"host", "api.example.com."}, {"method", "POST"}}), "a=x");
  EXPECT_EQ(at.Keys({{"ip", "x"}, {"host", "example.com"}, {"method", "POST"}}), "");
}

TEST(RuleLimiter, TopKeysOfARule) {
  TestRules at("rules: [{name: a, per: user, limit: 1000/s}]", {.top_keys = 4});
  for (int i = 0; i < 4000; ++i) {
    at.Ask({{"user", i % 4 == 0 ? "rare" : "often"}});
  }
  const auto keys = at.limiter->TopKeys("a", 2);
  ASSERT_FALSE(keys.empty());
  EXPECT_EQ(keys[0].key, "often");
  EXPECT_TRUE(at.limiter->TopKeys("b", 2).empty());
}

TEST(RuleLimiter, SaysWhyAStoreDoesNotDo) {
  const auto rules = MustParse("rules: [{name: log, per: ip, limit: 5/min sliding-log}]");
  const auto store = MemoryStore::Create({.budget_bytes = size_t{1} << 20});
  const auto limiter = RuleLimiter::Create(rules, *store);
  ASSERT_FALSE(limiter.ok());
  EXPECT_NE(limiter.error().message.find("rule \"log\": 5/min sliding-log: record_percent"),
            std::string::npos)
      << limiter.error().message;
}

}  // namespace
}  // namespace weir::rules
