// A check allocates nothing, whatever the rules but for regular expressions; counted by a program
// of its own, whose operator new counts.
#include <string>

#include <gtest/gtest.h>

#include "weir/rules.h"

#include "rules/test_rules.h"
#include "testing/count_allocations.h"

namespace weir::rules {
namespace {

TEST(RuleAllocations, AreNoneOnceWarm) {
  TestRules at(R"(
tiers: {premium: 5x}
rules:
  - {name: ip, per: ip, limit: 1M/min, burst: 1000000}
  - {name: user, per: user, by: tier, limit: 1M/h, expires: 2030-01-01}
  - {name: pair, per: [api_key | user, route], limits: [1M/s, 2M/min], min-gap: 1us}
  - {name: item, group: item, when: {path: "/users/{id}", host: example.com}, per: "path:id",
     limit: 1M/h, canary: 99%}
  - {name: dark, per: ip, limit: 1M/s, shadow: true}
  - {name: glob, group: glob, when: {agent: {glob: "*bot*"}}, per: ip, limit: 1M/s}
overrides: [{rule: user, key: alice, limit: 2M/h}]
block: [203.0.113.0/24, {user: mallory}]
)");
  const std::string long_value(1500, 'x');
  const Attribute request[] = {{"ip", "2001:db8::1"},         {"user", "alice"},
                               {"tier", "premium"},           {"path", "/users/7?x=y"},
                               {"host", "EXAMPLE.com:443"},   {"api_key", long_value},
                               {"agent", "some bot at last"}, {"method", "GET"}};
  const auto ask = [&](const RuleRequest& asked) {
    const RuleLimiter::Pin pin = at.limiter->pin();
    at.limiter->Check(pin, asked, at.reply);
    return at.reply.parts().size();
  };
  EXPECT_GE(ask({.attributes = request}), 8U);  // warm: the first charge of a key takes a slot
  const uint64_t before = testing::allocations.load();
  size_t parts = 0;
  for (int i = 0; i < 1000; ++i) {
    at.clock.Advance(std::chrono::microseconds(2));
    parts += ask({.attributes = request});
    parts += ask({.attributes = request, .keep_receipts = true});
    parts += at.limiter->GiveBack(at.reply);
    parts += at.limiter->Check(request).allowed() ? 1 : 0;
  }
  EXPECT_EQ(testing::allocations.load() - before, 0U);
  EXPECT_GT(parts, 16'000U);
}

}  // namespace
}  // namespace weir::rules
