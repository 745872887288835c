#include "codec/resp/writer.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace weir::codec::resp {
namespace {

std::string Write(Protocol protocol, const std::function<void(Writer&)>& write) {
  base::ByteBuffer out;
  Writer writer(out, protocol);
  write(writer);
  return std::string(out.view());
}

struct Texts {
  std::string resp2;
  std::string resp3;
  bool operator==(const Texts&) const = default;
};

Texts Write(const std::function<void(Writer&)>& write) {
  return {Write(Protocol::k2, write), Write(Protocol::k3, write)};
}

Texts Same(const std::string& text) {
  return {text, text};
}

TEST(RespWriter, WritesLines) {
  EXPECT_EQ(Write([](Writer& to) { to.Simple("PONG"); }), Same("+PONG\r\n"));
  EXPECT_EQ(Write([](Writer& to) { to.Ok(); }), Same("+OK\r\n"));
  EXPECT_EQ(Write([](Writer& to) { to.Error("ERR no"); }), Same("-ERR no\r\n"));
}

TEST(RespWriter, CannotBeMadeToEndALineEarly) {
  EXPECT_EQ(Write([](Writer& to) { to.Error(std::string_view("ERR 'a\r\n+OK\0'", 13)); }),
            Same("-ERR 'a  +OK '\r\n"));
}

TEST(RespWriter, WritesIntegersOfAnySize) {
  EXPECT_EQ(Write([](Writer& to) { to.Integer(0); }), Same(":0\r\n"));
  EXPECT_EQ(Write([](Writer& to) { to.Integer(-1); }), Same(":-1\r\n"));
  EXPECT_EQ(Write([](Writer& to) { to.Integer(std::numeric_limits<int64_t>::min()); }),
            Same(":-9223372036854775808\r\n"));
  EXPECT_EQ(Write([](Writer& to) { to.Integer(std::numeric_limits<int64_t>::max()); }),
            Same(":9223372036854775807\r\n"));
}

TEST(RespWriter, WritesTheAnswerOfClThrottle) {
  EXPECT_EQ(Write([](Writer& to) { to.Integers({0, 16, 15, -1, 2}); }),
            Same("*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n"));
}

TEST(RespWriter, WritesTexts) {
  EXPECT_EQ(Write([](Writer& to) { to.Bulk("a\r\nb"); }), Same("$4\r\na\r\nb\r\n"));
  EXPECT_EQ(Write([](Writer& to) { to.Bulk(""); }), Same("$0\r\n\r\n"));
  EXPECT_EQ(Write([](Writer& to) { to.Verbatim("hi"); }),
            (Texts{"$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"}));
}

TEST(RespWriter, WritesWhatOnlyVersionThreeHasAsTheNearestOfVersionTwo) {
  EXPECT_EQ(Write([](Writer& to) { to.Null(); }), (Texts{"$-1\r\n", "_\r\n"}));
  EXPECT_EQ(Write([](Writer& to) { to.Bool(true); }), (Texts{":1\r\n", "#t\r\n"}));
  EXPECT_EQ(Write([](Writer& to) { to.Bool(false); }), (Texts{":0\r\n", "#f\r\n"}));
  EXPECT_EQ(Write([](Writer& to) { to.Double(1.5); }), (Texts{"$3\r\n1.5\r\n", ",1.5\r\n"}));
  EXPECT_EQ(Write([](Writer& to) { to.Double(-std::numeric_limits<double>::infinity()); }),
            (Texts{"$4\r\n-inf\r\n", ",-inf\r\n"}));
  EXPECT_EQ(Write([](Writer& to) { to.Double(std::numeric_limits<double>::quiet_NaN()); }),
            (Texts{"$3\r\nnan\r\n", ",nan\r\n"}));
  EXPECT_EQ(Write([](Writer& to) { to.Map(2); }), (Texts{"*4\r\n", "%2\r\n"}));
  EXPECT_EQ(Write([](Writer& to) { to.Set(2); }), (Texts{"*2\r\n", "~2\r\n"}));
  EXPECT_EQ(Write([](Writer& to) { to.Push(2); }), (Texts{"*2\r\n", ">2\r\n"}));
  EXPECT_EQ(Write([](Writer& to) { to.Array(0); }), Same("*0\r\n"));
}

}  // namespace
}  // namespace weir::codec::resp
