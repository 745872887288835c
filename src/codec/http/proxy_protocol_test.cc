#include "codec/http/proxy_protocol.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace weir::codec::http {
namespace {

using namespace std::string_literals;

std::string Show(const ProxyHeader& header) {
  switch (header.state) {
    case ProxyState::kMore:
      return "more";
    case ProxyState::kError:
      return "error";
    case ProxyState::kReady:
      break;
  }
  if (!header.has_address) {
    return "peer";
  }
  std::array<char, base::IpAddress::kTextBytes> text;
  return std::string(header.source.Format(text)) + " " + std::to_string(header.source_port);
}

// Fed byte by byte: nothing is decided before it can be, and bytes behind the header change
// nothing.
std::string Parse(const std::string& header) {
  const std::string result = Show(ParseProxyHeader(header));
  for (size_t size = 0; size < header.size(); ++size) {
    const std::string part = Show(ParseProxyHeader(std::string_view(header).substr(0, size)));
    EXPECT_TRUE(part == "more" || (part == result && result == "error")) << size << ": " << part;
  }
  const ProxyHeader longer = ParseProxyHeader(header + "GET / HTTP/1.1\r\n");
  if (result != "more") {
    EXPECT_EQ(Show(longer), result);
    EXPECT_TRUE(result == "error" || longer.consumed == header.size());
  }
  return result;
}

TEST(ProxyProtocol, ReadsVersionOne) {
  EXPECT_EQ(Parse("PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n"), "192.0.2.1 56324");
  EXPECT_EQ(Parse("PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n"), "2001:db8::1 1");
  EXPECT_EQ(Parse("PROXY UNKNOWN\r\n"), "peer");
  EXPECT_EQ(Parse("PROXY UNKNOWN ff:ff 1 2 whatever\r\n"), "peer");
  EXPECT_EQ(Parse("PROXY TCP4 192.0.2.1"), "more");
}

TEST(ProxyProtocol, RefusesWhatIsNoVersionOne) {
  for (const char* line :
       {"GET / HTTP/1.1\r\n", "PROXY\r\n", "PROXY TCP4\r\n",
        "proxy TCP4 192.0.2.1 192.0.2.2 1 2\r\n", "PROXY TCP5 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 2001:db8::1 192.0.2.2 1 2\r\n", "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 -1 2\r\n", "PROXY  TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n", "PROXY TCP4 192.0.2.999 192.0.2.2 1 2\r\n"}) {
    EXPECT_EQ(Parse(line), "error") << line;
  }
  EXPECT_EQ(Parse("PROXY UNKNOWN " + std::string(107 - 16, 'x') + "\r\n"), "peer");
  EXPECT_EQ(Parse("PROXY UNKNOWN " + std::string(108 - 16, 'x') + "\r\n"), "error");
}

std::string Version2(char command, char family, const std::string& content) {
  return "\r\n\r\n\0\r\nQUIT\n"s + command + family + static_cast<char>(content.size() >> 8) +
         static_cast<char>(content.size() & 0xFF) + content;
}

TEST(ProxyProtocol, ReadsVersionTwo) {
  const std::string v4 = "\xC0\x00\x02\x01\xC6\x33\x64\x01\xDC\x04\x01\xBB"s;
  EXPECT_EQ(Parse(Version2('\x21', '\x11', v4)), "192.0.2.1 56324");
  EXPECT_EQ(Parse(Version2('\x21', '\x12', v4)), "192.0.2.1 56324");
  EXPECT_EQ(Parse(Version2('\x21', '\x11', v4 + "\x04\x00\x01x"s)), "192.0.2.1 56324");
  const std::string one = "\x20\x01\x0d\xb8"s + std::string(11, '\0') + "\x01";
  EXPECT_EQ(Parse(Version2('\x21', '\x21', one + one + "\x00\x01\x00\x02"s)), "2001:db8::1 1");
  EXPECT_EQ(Parse(Version2('\x20', '\x00', "")), "peer");
  EXPECT_EQ(Parse(Version2('\x20', '\x11', v4)), "peer");
  EXPECT_EQ(Parse(Version2('\x21', '\x31', std::string(216, 'x'))), "peer");
}

TEST(ProxyProtocol, RefusesWhatIsNoVersionTwo) {
  const std::string v4 = "\xC0\x00\x02\x01\xC6\x33\x64\x01\xDC\x04\x01\xBB"s;
  EXPECT_EQ(Parse(Version2('\x11', '\x11', v4)), "error");
  EXPECT_EQ(Parse(Version2('\x22', '\x11', v4)), "error");
  EXPECT_EQ(Parse(Version2('\x21', '\x11', v4.substr(1))), "error");
  EXPECT_EQ(Parse(Version2('\x21', '\x21', v4)), "error");
  EXPECT_EQ(Parse(Version2('\x20', '\x00', std::string(2032, 'x'))), "peer");
  EXPECT_EQ(Parse(Version2('\x20', '\x00', std::string(2033, 'x'))), "error");
}

}  // namespace
}  // namespace weir::codec::http
