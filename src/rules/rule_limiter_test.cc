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

}  // namespace
}  // namespace weir::rules
