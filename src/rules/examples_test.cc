// The rule files that we show to people do what their comments say.
#include <string>

#include <gtest/gtest.h>

#include "weir/rules.h"

#include "rules/test_rules.h"

namespace weir::rules {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<const RuleSet> Example(const std::string& name) {
  const RuleParse parse = RuleSet::Load("examples/rules/" + name + ".yaml");
  EXPECT_NE(parse.rules, nullptr) << Messages(parse);
  EXPECT_EQ(Messages(parse), "");  // an example that warns teaches to read warnings over
  return parse.rules;
}

// How many in a row are allowed, and which rule refuses the next; at most 20,000.
std::string Until(TestRules& at, const std::vector<Attribute>& request) {
  for (int allowed = 0; allowed < 20'000; ++allowed) {
    const RuleVerdict verdict = at.limiter->Check(request);
    if (!verdict.allowed()) {
      return std::to_string(allowed) + " then " + std::string(verdict.rule());
    }
  }
  return "no end";
}

TEST(RuleExamples, First) {
  TestRules at(Example("first"));
  EXPECT_EQ(Until(at, {{"ip", "192.0.2.1"}}), "20 then per-ip");
  EXPECT_EQ(Until(at, {{"ip", "192.0.2.2"}, {"method", "POST"}, {"path", "/api/v1/login"}}),
            "5 then login");
  EXPECT_EQ(Until(at, {{"user", "a"}, {"tier", "free"}}), "100 then plan");
  EXPECT_EQ(Until(at, {{"user", "b"}, {"tier", "enterprise"}}), "10000 then plan");
  EXPECT_EQ(Until(at, {{"api_key", "k"}, {"path", "/x"}}), "1 then polite");  // 2 s apart
  at.clock.Advance(2s);
  EXPECT_EQ(Until(at, {{"api_key", "k"}, {"path", "/x"}}), "1 then polite");
  EXPECT_EQ(at.Part("monthly", {{"account", "c"}}).limit, 1'000'000U);
}

TEST(RuleExamples, TiersAndEndpoints) {
  TestRules at(Example("tiers_and_endpoints"));
  EXPECT_EQ(Until(at, {{"user", "a"}, {"tier", "pro"}, {"path", "/api/search"}}), "10 then search");
  EXPECT_EQ(Until(at, {{"user", "b"}, {"tier", "free"}, {"path", "/api/users"}}), "100 then plan");
  EXPECT_EQ(Until(at, {{"user", "c"}, {"tier", "pro"}}), "1000 then plan");
  EXPECT_EQ(Until(at, {{"ip", "192.0.2.1"}, {"path", "/api/health"}}), "1000 then health");
}

TEST(RuleExamples, SocialApi) {
  TestRules at(Example("social_api"));
  EXPECT_EQ(Until(at, {{"user", "a"}}), "100 then user-default");
  EXPECT_EQ(Until(at, {{"user", "b"}, {"tier", "premium"}}), "500 then user-default");
  EXPECT_EQ(Until(at, {{"ip", "192.0.2.1"}}), "20 then ip-default");
  EXPECT_EQ(Until(at, {{"api_key", "k"}}), "1000 then key-default");
  EXPECT_EQ(Until(at, {{"ip", "192.0.2.2"}, {"method", "POST"}, {"path", "/api/v1/login"}}),
            "5 then login");
  EXPECT_EQ(Until(at, {{"user", "c"}, {"method", "POST"}, {"path", "/api/v1/posts"}}),
            "5 then posts");
  EXPECT_EQ(Until(at, {{"user", "d"}, {"method", "GET"}, {"path", "/api/v1/feed"}}),
            "60 then feed");
}

TEST(RuleExamples, GitHub) {
  TestRules at(Example("github"));
  EXPECT_EQ(Until(at, {{"ip", "192.0.2.1"}, {"path", "/users/x"}}), "60 then anonymous");
  EXPECT_EQ(Until(at, {{"ip", "192.0.2.1"}, {"token", "t"}, {"path", "/users/x"}}),
            "5000 then token");
  EXPECT_EQ(Until(at, {{"token", "s"}, {"path", "/search/code"}}), "30 then search");
  EXPECT_EQ(Until(at, {{"ip", "192.0.2.9"}, {"class", "anonymous"}, {"path", "/search"}}),
            "10 then search");
  at.clock.Advance(1h);
  EXPECT_EQ(Until(at, {{"ip", "192.0.2.1"}, {"path", "/users/x"}}), "60 then anonymous");
}

TEST(RuleExamples, Layers) {
  TestRules at(Example("layers"));
  EXPECT_EQ(Until(at, {{"ip", "192.0.2.1"}}), "30 then per-address");
  int passed = 0;
  for (int i = 2; i < 255; ++i) {
    const std::string ip = "192.0.2." + std::to_string(i);
    passed += at.Ask({{"ip", ip}}).starts_with("allowed") ? 1 : 0;
  }
  EXPECT_EQ(passed, 170) << "the prefix had 200";
  EXPECT_EQ(Until(at, {{"asn", "64500"}}), "2000 then per-network");
  EXPECT_EQ(Until(at, {{"asn", "64511"}, {"path", "/login"}}), "30 then hosting-login");
}

TEST(RuleExamples, Stripe) {
  TestRules at(Example("stripe"));
  EXPECT_EQ(Until(at, {{"account", "a"}, {"mode", "live"}}), "120 then live");
  EXPECT_EQ(Until(at, {{"account", "a"}, {"mode", "test"}}), "25 then test");
  EXPECT_EQ(Until(at, {{"account", "b"}, {"mode", "live"}, {"path", "/v1/files/f/links"}}),
            "20 then files");
  EXPECT_EQ(Until(at, {{"account", "b"}, {"mode", "live"}, {"path", "/v1/charges/search"}}),
            "20 then search");
  const Attribute request[] = {
      {"account", "c"}, {"mode", "live"}, {"method", "POST"}, {"path", "/v1/invoices/in_1"}};
  EXPECT_EQ(Until(at, {std::begin(request), std::end(request)}), "10 then invoice-updates");
  EXPECT_EQ(at.Ask({{"account", "c"}, {"method", "POST"}, {"path", "/v1/invoices/in_2"}}),
            "allowed by invoice-updates");
}

}  // namespace
}  // namespace weir::rules
