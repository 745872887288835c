#include "codec/grpc/framing.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace weir::codec::grpc {
namespace {

TEST(Framing, APrefixReadsBack) {
  for (const uint32_t size : {0U, 1U, 255U, 256U, 65536U, 0xfffffffeU}) {
    char bytes[kPrefixBytes];
    WritePrefix(size, bytes);
    EXPECT_EQ(ReadPrefix({bytes, kPrefixBytes}).size, size);
    EXPECT_FALSE(ReadPrefix({bytes, kPrefixBytes}).compressed);
    bytes[0] = 1;
    EXPECT_TRUE(ReadPrefix({bytes, kPrefixBytes}).compressed);
  }
}

TEST(Framing, TimeoutsHaveUnits) {
  using namespace std::chrono_literals;
  EXPECT_EQ(ParseTimeout("20m"), Duration(20ms));
  EXPECT_EQ(ParseTimeout("0n"), Duration(0));
  EXPECT_EQ(ParseTimeout("99999999u"), Duration(99999999us));
  EXPECT_EQ(ParseTimeout("3S"), Duration(3s));
  EXPECT_EQ(ParseTimeout("2M"), Duration(2min));
  EXPECT_EQ(ParseTimeout("1H"), Duration(1h));
  EXPECT_EQ(ParseTimeout("99999999H"), Duration(24h * 365));  // as good as for ever
  EXPECT_EQ(ParseTimeout("99999999S"), Duration(24h * 365));
  for (const char* const bad :
       {"", "m", "20", "20 m", "-1m", "123456789m", "1.5S", "20s", "\xff"}) {
    EXPECT_EQ(ParseTimeout(bad), std::nullopt) << bad;
  }
}

TEST(Framing, ContentTypes) {
  for (const char* const good : {"application/grpc", "application/grpc+proto",
                                 "application/grpc;charset=utf-8", "Application/GRPC+Proto; x=y"}) {
    EXPECT_EQ(ParseContentType(good), ContentType::kGrpc) << good;
  }
  EXPECT_EQ(ParseContentType("application/grpc+json"), ContentType::kEncoding);
  for (const char* const other :
       {"", "application/json", "application/grpc-web", "application/grp", "application/grpcx"}) {
    EXPECT_EQ(ParseContentType(other), ContentType::kOther) << other;
  }
}

TEST(Framing, MessagesArePercentEncoded) {
  EXPECT_EQ(PercentEncode("plain text, as it is!"), "plain text, as it is!");
  EXPECT_EQ(PercentEncode("50%\r\n\x7f\xc3\xa4"), "50%25%0D%0A%7F%C3%A4");
  EXPECT_EQ(PercentEncode(std::string(5000, 'a')).size(), 1024U);
}

}  // namespace
}  // namespace weir::codec::grpc
