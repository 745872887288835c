// Prefixes of addresses, and what an AddressSource knows of them, in rules.
#include <atomic>
#include <string>

#include <gtest/gtest.h>

#include "rules/test_rules.h"

namespace weir::rules {
namespace {

// 192.0.2.0/24 is AS64496 in DE, 2001:db8::/32 is AS64497 in NL.
class Fake final : public AddressSource {
 public:
  AddressFacts Find(const AddressBytes& address) const noexcept override {
    ++asked;
    if (address[10] == 0xFF && address[12] == 192) {
      return {64496, {'D', 'E'}};
    }
    return address[0] == 0x20 ? AddressFacts{64497, {'N', 'L'}} : AddressFacts();
  }

  mutable std::atomic<int> asked = 0;
};

constexpr std::string_view kLayers = R"(
rules:
  - {name: per-ip, per: ip, limit: 2/min}
  - {name: per-net, per: ip/24, limit: 3/min, ipv6-prefix: 48}
  - {name: per-asn, per: asn, limit: 5/min}
  - {name: nobody-from, when: {country: [nl, FR]}, block: true, group: countries}
)";

TEST(AddressFacts, LayersCatchWhoChangesAddresses) {
  const Fake fake;
  TestRules rules(kLayers, {.addresses = &fake});
  EXPECT_EQ(rules.Keys({{"ip", "192.0.2.77"}}),
            "per-ip=192.0.2.77 per-net=192.0.2.0 per-asn=64496");
  int passed = 0;
  for (int i = 0; i < 9; ++i) {
    const std::string ip = "192.0.2." + std::to_string(i);
    passed += rules.limiter->Check(std::vector<Attribute>{{"ip", ip}}).allowed() ? 1 : 0;
  }
  EXPECT_EQ(passed, 3) << "another address each time, the same /24";
  for (int i = 0; i < 9; ++i) {
    const std::string ip = "192.0." + std::to_string(i) + ".1";
    passed += rules.limiter->Check(std::vector<Attribute>{{"ip", ip}}).allowed() ? 1 : 0;
  }
  EXPECT_EQ(passed, 5) << "another /24 each time, the same network";
  EXPECT_EQ(rules.Ask({{"ip", "2001:db8::1"}}), "denied by nobody-from: blocked");
}

TEST(AddressFacts, CountsByPrefixOfBothFamilies) {
  TestRules rules("rules: [{name: n, per: ip/20, limit: 9/min, ipv6-prefix: 48}]");
  EXPECT_EQ(rules.Keys({{"ip", "198.51.111.9"}}), "n=198.51.96.0");
  EXPECT_EQ(rules.Keys({{"ip", "::ffff:198.51.111.9"}}), "n=198.51.96.0");
  EXPECT_EQ(rules.Keys({{"ip", "2001:db8:1:2:3::4"}}), "n=2001:db8:1::");
  EXPECT_EQ(rules.Keys({{"ip", "no address"}}), "n=no address");
  for (const char* wrong : {"ip/0", "ip/33", "ip/", "ip/x", "user/24"}) {
    EXPECT_EQ(
        RuleSet::Parse("rules: [{name: n, per: " + std::string(wrong) + ", limit: 9/min}]").rules,
        nullptr)
        << wrong;
  }
}

TEST(AddressFacts, BelievesTheSourceAndNotTheRequest) {
  const Fake fake;
  TestRules rules("rules: [{name: a, when: {asn: AS64496}, per: country, limit: 9/min}]",
                  {.addresses = &fake});
  EXPECT_EQ(rules.Keys({{"ip", "192.0.2.1"}, {"asn", "1"}, {"country", "US"}}), "a=DE");
  EXPECT_EQ(rules.Keys({{"ip", "203.0.113.1"}, {"asn", "64496"}, {"country", "DE"}}), "");
  EXPECT_EQ(rules.Keys({{"asn", "64496"}, {"country", "DE"}}), "");
  TestRules without("rules: [{name: a, when: {asn: 64496}, per: country, limit: 9/min}]");
  EXPECT_EQ(without.Keys({{"asn", "64496"}, {"country", "DE"}}), "a=DE");
}

TEST(AddressFacts, AsksOnlyForRulesThatNeedIt) {
  const Fake fake;
  TestRules plain("rules: [{name: a, per: ip, limit: 9/min}]", {.addresses = &fake});
  plain.Ask({{"ip", "192.0.2.1"}});
  EXPECT_EQ(fake.asked, 0);
  TestRules needs("rules: [{name: a, per: asn, limit: 9/min}]", {.addresses = &fake});
  needs.Ask({{"ip", "192.0.2.1"}});
  EXPECT_EQ(fake.asked, 1);
}

}  // namespace
}  // namespace weir::rules
