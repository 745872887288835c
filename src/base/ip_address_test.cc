#include "base/ip_address.h"

#include <arpa/inet.h>

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "testing/random.h"

namespace weir::base {
namespace {

std::string Text(const IpAddress& address) {
  std::array<char, IpAddress::kTextBytes> out;
  return std::string(address.Format(out));
}

std::string Through(std::string_view text) {
  const auto address = IpAddress::Parse(text);
  return address ? Text(*address) : "none";
}

TEST(IpAddress, ReadsWhatItWrites) {
  EXPECT_EQ(Through("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(Through("0.0.0.0"), "0.0.0.0");
  EXPECT_EQ(Through("2001:DB8:0:0:1:0:0:1"), "2001:db8::1:0:0:1");
  EXPECT_EQ(Through("2001:db8:0:1:1:1:1:1"), "2001:db8:0:1:1:1:1:1");
  EXPECT_EQ(Through("::"), "::");
  EXPECT_EQ(Through("::1"), "::1");
  EXPECT_EQ(Through("1::"), "1::");
  EXPECT_EQ(Through("0:0:1::"), "0:0:1::");
  EXPECT_EQ(Through("::ffff:1.2.3.4"), "::ffff:102:304");
  EXPECT_EQ(Through("fe80::1%eth0"), "fe80::1");
  EXPECT_EQ(Through("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255"),
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
}

TEST(IpAddress, RefusesWhatOthersReadDifferently) {
  for (const char* text : {"",
                           "1",
                           "1.2.3",
                           "1.2.3.4.5",
                           "01.2.3.4",
                           "1.2.3.256",
                           "1.2.3.4 ",
                           " 1.2.3.4",
                           "1.2.3.-4",
                           "0x1.2.3.4",
                           "1.2.3.4:80",
                           ":",
                           ":::",
                           "1:2:3:4:5:6:7",
                           "1:2:3:4:5:6:7:8:9",
                           "1::2::3",
                           "1:2:3:4:5:6:7::8",
                           "::1:2:3:4:5:6:7:8",
                           "12345::",
                           "g::",
                           "1.2.3.4::",
                           "::1.2.3.4.5",
                           "::1.2.3.04",
                           "1:",
                           "::1:",
                           "fe80::1%",
                           "[::1]",
                           "1:2:3:4:5:6:7:1.2.3.4",
                           "+1::"}) {
    EXPECT_EQ(Through(text), "none") << text;
  }
}

TEST(IpAddress, AgreesWithTheSystemOnRandomAddresses) {
  testing::Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    IpAddress address;
    for (uint8_t& byte : address.bytes) {
      byte = random.Below(3) == 0 ? static_cast<uint8_t>(random.Below(256)) : uint8_t{0};
    }
    // The system writes these with an IPv4 tail; RFC 5952 leaves that open.
    address.bytes[0] = 0x20;
    char expected[INET6_ADDRSTRLEN];
    ASSERT_NE(inet_ntop(AF_INET6, address.bytes.data(), expected, sizeof expected), nullptr);
    EXPECT_EQ(Text(address), expected);
    EXPECT_EQ(IpAddress::Parse(expected), address) << expected;
  }
}

TEST(IpAddress, TakesAPortOffAndNothingElse) {
  const auto through = [](std::string_view text) {
    const auto address = IpAddress::ParseWithPort(text);
    return address ? Text(*address) : "none";
  };
  EXPECT_EQ(through("1.2.3.4:80"), "1.2.3.4");
  EXPECT_EQ(through("1.2.3.4"), "1.2.3.4");
  EXPECT_EQ(through("[2001:db8::1]:443"), "2001:db8::1");
  EXPECT_EQ(through("[2001:db8::1]"), "2001:db8::1");
  EXPECT_EQ(through("2001:db8::1"), "2001:db8::1");
  for (const char* text : {"1.2.3.4:", "1.2.3.4:x", "1.2.3.4:65536", "[1.2.3.4]:80", "[::1",
                           "[::1]80", "[::1]:", "host:80"}) {
    EXPECT_EQ(through(text), "none") << text;
  }
}

TEST(IpAddress, UnwrapsMappedAndTranslatedAddresses) {
  EXPECT_EQ(Text(IpAddress::Parse("::ffff:192.0.2.1")->Unwrapped()), "192.0.2.1");
  EXPECT_EQ(Text(IpAddress::Parse("64:ff9b::c000:201")->Unwrapped()), "192.0.2.1");
  EXPECT_EQ(Text(IpAddress::Parse("2001:0:4136:e378:8000:63bf:3fff:fdd2")->Unwrapped()),
            "192.0.2.45");
  EXPECT_EQ(Text(IpAddress::Parse("2001:1::1")->Unwrapped()), "2001:1::1");
  EXPECT_EQ(Text(IpAddress::Parse("64:ff9b:1::c000:201")->Unwrapped()), "64:ff9b:1::c000:201");
  EXPECT_EQ(Text(IpAddress::Parse("::192.0.2.1")->Unwrapped()), "::c000:201");
}

TEST(IpAddress, MasksToTheBit) {
  const auto masked = [](std::string_view text, unsigned kept) {
    return Text(IpAddress::Parse(text)->Masked(kept));
  };
  EXPECT_EQ(masked("2001:db8:1:2:3:4:5:6", 64), "2001:db8:1:2::");
  EXPECT_EQ(masked("ffff::", 3), "e000::");
  EXPECT_EQ(masked("ffff::", 0), "::");
  EXPECT_EQ(masked("255.255.255.255", 25), "255.255.255.128");
  EXPECT_EQ(masked("255.255.255.255", 32), "255.255.255.255");
}

TEST(IpPrefix, ContainsItsOwnAndNoOther) {
  const auto contains = [](std::string_view prefix, std::string_view address) {
    return IpPrefix::Parse(prefix)->Contains(*IpAddress::Parse(address));
  };
  EXPECT_TRUE(contains("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(contains("10.0.0.0/8", "11.0.0.0"));
  EXPECT_TRUE(contains("0.0.0.0/0", "1.2.3.4"));
  EXPECT_FALSE(contains("0.0.0.0/0", "::1"));
  EXPECT_TRUE(contains("2001:db8::/33", "2001:db8:7fff::1"));
  EXPECT_FALSE(contains("2001:db8::/33", "2001:db8:8000::1"));
  EXPECT_TRUE(contains("192.0.2.1", "192.0.2.1"));
  EXPECT_FALSE(contains("192.0.2.1", "192.0.2.2"));
}

TEST(IpPrefix, RefusesBitsBeyondItsLength) {
  for (const char* text : {"10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/08", "::/129",
                           "2001:db8::1/64", "fe80::%eth0/64", "/8", "10.0.0.0/-1"}) {
    EXPECT_FALSE(IpPrefix::Parse(text)) << text;
  }
}

}  // namespace
}  // namespace weir::base
