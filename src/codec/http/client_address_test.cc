#include "codec/http/client_address.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "codec/http/request_parser.h"
#include "testing/random.h"

namespace weir::codec::http {
namespace {

using base::IpAddress;
using base::IpPrefix;

constexpr std::string_view kProxy = "10.0.0.1";        // the peer, trusted
constexpr std::string_view kInnerProxy = "10.0.0.2";   // trusted too
constexpr std::string_view kStranger = "203.0.113.9";  // not trusted

ClientAddress Trusting(ClientSource source) {
  return {source, {*IpPrefix::Parse("10.0.0.0/8"), *IpPrefix::Parse("2001:db8:aaaa::/48")}};
}

std::string Text(const IpAddress& address) {
  std::array<char, IpAddress::kTextBytes> text;
  return std::string(address.Format(text));
}

std::string Find(ClientSource source, std::string_view peer,
                 const std::vector<std::string>& lines) {
  std::string head = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (const std::string& line : lines) {
    head += line + "\r\n";
  }
  head += "\r\n";
  RequestParser parser;
  EXPECT_EQ(parser.Parse(head), ParseState::kRequest) << head;
  return Text(Trusting(source).Find(*IpAddress::Parse(peer), parser.request()));
}

// One way to write an element, and the address it means; none: the walk ends before it.
struct Shape {
  std::string text;
  std::string address;
};

const std::vector<Shape> kXffShapes = {
    {"192.0.2.1", "192.0.2.1"},
    {"192.0.2.1:4711", "192.0.2.1"},
    {"  192.0.2.1\t", "192.0.2.1"},
    {"0.0.0.0", "0.0.0.0"},
    {"255.255.255.255", "255.255.255.255"},
    {"2001:db8::1", "2001:db8::1"},
    {"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
    {"[2001:db8::1]", "2001:db8::1"},
    {"[2001:db8::1]:443", "2001:db8::1"},
    {"::1", "::1"},
    {"::", "::"},
    {"fe80::1%eth0", "fe80::1"},
    {"::ffff:192.0.2.1", "192.0.2.1"},
    {"::ffff:c000:201", "192.0.2.1"},
    {"[::ffff:192.0.2.1]:80", "192.0.2.1"},
    {"64:ff9b::192.0.2.1", "192.0.2.1"},
    {"64:ff9b::c000:201", "192.0.2.1"},
    {"", ""},
    {"unknown", ""},
    {"_hidden", ""},
    {"localhost", ""},
    {"example.com", ""},
    {"192.0.2", ""},
    {"192.0.2.", ""},
    {"192.0.2.1.5", ""},
    {"192.0.2.256", ""},
    {"192.0.2.01", ""},
    {"192.0.2.0x1", ""},
    {"3221225985", ""},
    {"0300.0.2.1", ""},
    {"-192.0.2.1", ""},
    {"192.0.2.1:", ""},
    {"192.0.2.1:x", ""},
    {"192.0.2.1:99999", ""},
    {"192.0.2.1/32", ""},
    {"192.0.2.1 192.0.2.2", ""},
    {"192.0.2.1;192.0.2.2", ""},
    {"\"192.0.2.1\"", ""},
    {"'192.0.2.1'", ""},
    {"<192.0.2.1>", ""},
    {"[192.0.2.1", ""},
    {"[2001:db8::1", ""},
    {"2001:db8::1]", ""},
    {"[2001:db8::1]443", ""},
    {"[2001:db8::1]:", ""},
    {"2001:db8::1::2", ""},
    {"2001:db8:1:2:3:4:5:6:7", ""},
    {"2001:db8:12345::1", ""},
    {":::", ""},
    {"for=192.0.2.1", ""},
    {"http://192.0.2.1", ""},
    {"\xC2\xA0"
     "192.0.2.1",
     ""},
    {"%31%39%32.0.2.1", ""},
    {"*", ""},
    {"null", ""},
};

// Each shape where it can stand: alone, behind what the client made up, before a trusted proxy,
// and with either of these on a line of its own.
TEST(ClientAddress, FindsTheClientInEveryShapeOfXForwardedFor) {
  const std::string name = "X-Forwarded-For: ";
  const std::string proxy(kProxy);
  const std::string inner(kInnerProxy);
  size_t shapes = 0;
  for (const auto& [text, address] : kXffShapes) {
    const struct {
      std::vector<std::string> lines;
      std::string if_none;
    } places[] = {
        {{name + text}, proxy},
        {{name + "6.6.6.6, " + text}, proxy},
        {{name + "6.6.6.6," + text + ", " + inner}, inner},
        {{name + "6.6.6.6", name + text}, proxy},
        {{name + text, "x-forwarded-for: " + inner}, inner},
    };
    for (const auto& [lines, if_none] : places) {
      EXPECT_EQ(Find(ClientSource::kXForwardedFor, kProxy, lines),
                address.empty() ? if_none : address)
          << lines.front() << " … " << lines.back();
      EXPECT_EQ(Find(ClientSource::kXForwardedFor, kStranger, lines), kStranger);
      ++shapes;
    }
  }
  EXPECT_GE(shapes, 200U);
}

const std::vector<Shape> kForwardedShapes = {
    {"for=192.0.2.1", "192.0.2.1"},
    {"For=192.0.2.1", "192.0.2.1"},
    {"FOR=\"192.0.2.1\"", "192.0.2.1"},
    {"for=\"192.0.2.1:4711\"", "192.0.2.1"},
    {"for=\"[2001:db8::1]\"", "2001:db8::1"},
    {"for=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"},
    {"for=192.0.2.1;proto=https;by=203.0.113.43", "192.0.2.1"},
    {"proto=https; for=192.0.2.1 ;host=example.com", "192.0.2.1"},
    {"host=\"a,b;c\";for=192.0.2.1", "192.0.2.1"},
    {"host=\"a\\\",for=6.6.6.6\";for=192.0.2.1", "192.0.2.1"},
    {"for=\"::ffff:192.0.2.1\"", "192.0.2.1"},
    {"for=unknown", ""},
    {"for=_hidden", ""},
    {"for=\"_SEVKISEK\"", ""},
    {"for=\"192.0.2.1", ""},
    {"for=\"192.0.2.\\1\"", ""},
    {"for=", ""},
    {"for", ""},
    {"=192.0.2.1", ""},
    {"192.0.2.1", ""},
    {"for = 192.0.2.1", ""},
    {"for=192.0.2.1 x", ""},
    {"for=192.0.2.1;for=192.0.2.2", ""},
    {"for=192.0.2.1;", ""},
    {"for=[2001:db8::1]", ""},
    {"proto=https", ""},
    {"by=192.0.2.1", ""},
    {"forx=192.0.2.1", ""},
};

TEST(ClientAddress, FindsTheClientInEveryShapeOfForwarded) {
  const std::string name = "Forwarded: ";
  const std::string proxy(kProxy);
  const std::string inner(kInnerProxy);
  const std::string by_inner = "for=" + inner;
  for (const auto& [text, address] : kForwardedShapes) {
    const struct {
      std::vector<std::string> lines;
      std::string if_none;
    } places[] = {
        {{name + text}, proxy},
        {{name + "for=6.6.6.6, " + text}, proxy},
        {{name + "for=6.6.6.6", name + text}, proxy},
        {{name + text, "forwarded: " + by_inner}, inner},
    };
    for (const auto& [lines, if_none] : places) {
      EXPECT_EQ(Find(ClientSource::kForwarded, kProxy, lines), address.empty() ? if_none : address)
          << lines.front() << " … " << lines.back();
      EXPECT_EQ(Find(ClientSource::kForwarded, kStranger, lines), kStranger);
    }
  }
}

TEST(ClientAddress, TakesAnElementThatBreaksTheGrammarForTheWholeLine) {
  // A quote that is never closed may hide commas: nothing of the line can be told apart.
  EXPECT_EQ(Find(ClientSource::kForwarded, kProxy, {"Forwarded: for=\"6.6.6.6, for=192.0.2.1"}),
            kProxy);
  EXPECT_EQ(Find(ClientSource::kForwarded, kProxy, {"Forwarded: for=6.6.6.6,"}), kProxy);
  EXPECT_EQ(Find(ClientSource::kForwarded, kProxy, {"Forwarded: ,for=6.6.6.6"}), kProxy);
}

TEST(ClientAddress, ReadsXRealIpIfThereIsOne) {
  for (const auto& [text, address] : kXffShapes) {
    EXPECT_EQ(Find(ClientSource::kXRealIp, kProxy, {"X-Real-IP: " + text}),
              address.empty() ? kProxy : address)
        << text;
    EXPECT_EQ(Find(ClientSource::kXRealIp, kStranger, {"X-Real-IP: " + text}), kStranger);
  }
  EXPECT_EQ(Find(ClientSource::kXRealIp, kProxy, {"X-Real-IP: 192.0.2.1, 192.0.2.2"}), kProxy);
  EXPECT_EQ(Find(ClientSource::kXRealIp, kProxy, {"X-Real-IP: 6.6.6.6", "X-Real-IP: 192.0.2.1"}),
            kProxy);
}

TEST(ClientAddress, BelievesOnlyTheHeaderItWasToldOf) {
  const std::vector<std::string> all = {"X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.2",
                                        "X-Real-IP: 192.0.2.3"};
  EXPECT_EQ(Find(ClientSource::kPeer, kProxy, all), kProxy);
  EXPECT_EQ(Find(ClientSource::kXForwardedFor, kProxy, all), "192.0.2.1");
  EXPECT_EQ(Find(ClientSource::kForwarded, kProxy, all), "192.0.2.2");
  EXPECT_EQ(Find(ClientSource::kXRealIp, kProxy, all), "192.0.2.3");
  EXPECT_EQ(Find(ClientSource::kXForwardedFor, kProxy, {}), kProxy);
}

TEST(ClientAddress, WalksPastTrustedProxiesOnly) {
  EXPECT_EQ(Find(ClientSource::kXForwardedFor, kProxy,
                 {"X-Forwarded-For: 6.6.6.6, 192.0.2.1, 10.9.9.9, 10.0.0.2"}),
            "192.0.2.1");
  EXPECT_EQ(Find(ClientSource::kXForwardedFor, "2001:db8:aaaa::1",
                 {"X-Forwarded-For: 192.0.2.1, ::ffff:10.0.0.2"}),
            "192.0.2.1");
  EXPECT_EQ(Find(ClientSource::kXForwardedFor, "::ffff:10.0.0.1", {"X-Forwarded-For: 192.0.2.1"}),
            "192.0.2.1");
  // Nobody but proxies of ours: the outermost is as near as we come.
  EXPECT_EQ(Find(ClientSource::kXForwardedFor, kProxy, {"X-Forwarded-For: 10.0.0.3, 10.0.0.2"}),
            "10.0.0.3");
}

TEST(ClientAddress, GivesUpAfterManyHops) {
  std::string line = "X-Forwarded-For: 192.0.2.1";
  for (int i = 0; i < 100; ++i) {
    line += ", 10.0.1." + std::to_string(i);
  }
  EXPECT_EQ(Find(ClientSource::kXForwardedFor, kProxy, {line}), "10.0.1.68");
}

TEST(ClientAddress, SeesOneClientHoweverAStrangerSpoofs) {
  testing::Random random(1);
  std::set<std::string> seen;
  const auto address = [&] {
    std::string text = std::to_string(random.Below(256));
    for (int i = 0; i < 3; ++i) {
      text += "." + std::to_string(random.Below(256));
    }
    return text;
  };
  const ClientSource sources[] = {ClientSource::kPeer, ClientSource::kXForwardedFor,
                                  ClientSource::kForwarded, ClientSource::kXRealIp};
  for (int i = 0; i < 100'000; ++i) {
    std::string list = address();
    for (uint64_t more = random.Below(4); more > 0; --more) {
      list += ", " + (random.OneIn(3) ? std::string("10.0.0.2") : address());
    }
    const std::vector<std::string> lines = {
        "X-Forwarded-For: " + list, "Forwarded: for=" + address(), "X-Real-IP: " + address()};
    seen.insert(Find(sources[i % 4], kStranger, lines));
  }
  EXPECT_EQ(seen, std::set<std::string>{std::string(kStranger)});
}

// The same behind a proxy that appends what it sees: what the client wrote before does not count.
TEST(ClientAddress, SeesOneClientHoweverItSpoofsThroughAProxy) {
  testing::Random random(2);
  std::set<std::string> seen;
  for (int i = 0; i < 100'000; ++i) {
    std::string spoofed =
        std::to_string(random.Below(256)) + ".1.2." + std::to_string(random.Below(256));
    if (random.OneIn(4)) {
      spoofed = kXffShapes[random.Below(kXffShapes.size())].text;
    }
    seen.insert(Find(ClientSource::kXForwardedFor, kProxy,
                     {"X-Forwarded-For: " + spoofed + ", " + std::string(kStranger)}));
  }
  EXPECT_EQ(seen, std::set<std::string>{std::string(kStranger)});
}

}  // namespace
}  // namespace weir::codec::http
