#include "net/endpoint.h"

#include <string>

#include <gtest/gtest.h>

namespace weir::net {
namespace {

TEST(Endpoint, ReadsAddressesAndPorts) {
  EXPECT_EQ(Endpoint::Parse("127.0.0.1:8080")->text, "127.0.0.1:8080");
  EXPECT_EQ(Endpoint::Parse("localhost:8080")->text, "127.0.0.1:8080");
  EXPECT_EQ(Endpoint::Parse("[::1]:80")->text, "[::1]:80");
  EXPECT_EQ(Endpoint::Parse(":9")->text, "[::]:9");
  EXPECT_EQ(Endpoint::Parse("unix:/run/weir.sock")->text, "unix:/run/weir.sock");
}

TEST(Endpoint, KnowsWhatOnlyThisMachineReaches) {
  EXPECT_TRUE(Endpoint::Parse("127.0.0.9:1")->local_only);
  EXPECT_TRUE(Endpoint::Parse("[::1]:1")->local_only);
  EXPECT_TRUE(Endpoint::Parse("unix:/x")->local_only);
  EXPECT_FALSE(Endpoint::Parse(":1")->local_only);
  EXPECT_FALSE(Endpoint::Parse("0.0.0.0:1")->local_only);
  EXPECT_FALSE(Endpoint::Parse("192.0.2.1:1")->local_only);
}

TEST(Endpoint, RefusesTheRestAndSaysWhatIsExpected) {
  for (const char* text : {"", "8080", "localhost", "a.example:80", "127.0.0.1:", "127.0.0.1:-1",
                           "127.0.0.1:65536", "127.0.0.1:8080x", "::1:80", "[127.0.0.1]:80",
                           "[::1]", "unix:", "1.2.3:80", "1.2.3.4.5:80"}) {
    const Result<Endpoint> endpoint = Endpoint::Parse(text);
    ASSERT_FALSE(endpoint) << text;
    EXPECT_NE(endpoint.error().message.find("expected ADDRESS:PORT"), std::string::npos);
  }
  EXPECT_FALSE(Endpoint::Parse("unix:/" + std::string(200, 'x')));
}

}  // namespace
}  // namespace weir::net
