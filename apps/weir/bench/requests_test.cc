// What is sent, to whom, and how answers are understood.
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "apps/weir/bench/answer.h"
#include "apps/weir/bench/key_source.h"
#include "apps/weir/bench/message.h"
#include "apps/weir/target.h"

namespace weir::bench {

using app::Protocol;
using app::Target;
namespace {

std::string Bytes(const Message& message, std::string_view key) {
  base::ByteBuffer buffer;
  message.Append(key, buffer);
  return std::string(buffer.view());
}

TEST(Message, PutsTheKeyWhereverItIsNamed) {
  auto message = Message::Http({.method = "POST",
                                .host = "[::1]:80",
                                .path = "/v1/check?of={key}",
                                .headers = {"X-Key: {key}"},
                                .body = "{\"key\":\"{key}\"}"},
                               6);
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ(Bytes(*message, "key:07"),
            "POST /v1/check?of=key:07 HTTP/1.1\r\nHost: [::1]:80\r\nX-Key: key:07\r\n"
            "Content-Length: 16\r\n\r\n{\"key\":\"key:07\"}");
}

TEST(Message, HasNoLengthWithoutABody) {
  auto message =
      Message::Http({.method = "GET", .host = "a", .path = "/", .headers = {}, .body = ""}, 3);
  ASSERT_TRUE(message);
  EXPECT_EQ(Bytes(*message, "abc"), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
}

TEST(Message, WritesACommandAsAnArrayOfItsWords) {
  auto message = Message::Resp("  CL.THROTTLE p:{key} 10  100 60 ", 5);
  ASSERT_TRUE(message);
  EXPECT_EQ(Bytes(*message, "key:1"),
            "*5\r\n$11\r\nCL.THROTTLE\r\n$7\r\np:key:1\r\n$2\r\n10\r\n$3\r\n100\r\n$2\r\n60\r\n");
}

TEST(Message, WritesAnyByteOfACommand) {
  auto message = Message::Resp(R"(SET {key} a\x00\xfF\\x)", 1);
  ASSERT_TRUE(message);
  EXPECT_EQ(Bytes(*message, "k"),
            std::string_view("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\na\0\xff\\x\r\n", 31));
}

TEST(Message, RefusesWhatNoServerWouldTake) {
  const auto http = [](HttpMessage parts) { return Message::Http(parts, 4).error().message; };
  EXPECT_NE(http({.method = "G T", .host = "a", .path = "/", .headers = {}, .body = ""})
                .find("not a method"),
            std::string::npos);
  EXPECT_NE(http({.method = "GET", .host = "a", .path = "/a b", .headers = {}, .body = ""})
                .find("not a path"),
            std::string::npos);
  EXPECT_NE(http({.method = "GET", .host = "a", .path = "/", .headers = {"X"}, .body = ""})
                .find("not NAME: VALUE"),
            std::string::npos);
  EXPECT_NE(
      http({.method = "GET", .host = "a", .path = "/", .headers = {"X: 1\r\nY: 2"}, .body = ""})
          .find("not NAME: VALUE"),
      std::string::npos);
  EXPECT_NE(http({.method = "POST",
                  .host = "a",
                  .path = "/",
                  .headers = {},
                  .body = std::string(65536, 'x')})
                .find("bytes; at most 65536"),
            std::string::npos);
  EXPECT_NE(Message::Resp("  ", 4).error().message.find("no command"), std::string::npos);
  for (const char* const bad : {"a \\", "a \\x", "a \\x4", "a \\xzz", "a \\n", "a \\x-1"}) {
    EXPECT_NE(Message::Resp(bad, 4).error().message.find("is no byte"), std::string::npos) << bad;
  }
}

TEST(Target, ReadsHostsPortsAndPaths) {
  const auto http = Target::Parse("http://127.0.0.1:8080/v1/check?x=1");
  ASSERT_TRUE(http);
  EXPECT_EQ(http->host, "127.0.0.1");
  EXPECT_EQ(http->port, "8080");
  EXPECT_EQ(http->path, "/v1/check?x=1");
  EXPECT_EQ(http->authority, "127.0.0.1:8080");
  const auto v6 = Target::Parse("http://[::1]");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->port, "80");
  EXPECT_EQ(v6->path, "/");
  const auto resp = Target::Parse("resp://cache");
  ASSERT_TRUE(resp);
  EXPECT_EQ(resp->protocol, Protocol::kResp);
  EXPECT_EQ(resp->port, "6379");
}

TEST(Target, SaysWhatIsWrong) {
  const auto problem = [](std::string_view text) { return Target::Parse(text).error().message; };
  EXPECT_EQ(problem("localhost:80"),
            "'localhost:80': no such scheme; expected http://HOST:PORT/PATH or resp://HOST:PORT");
  EXPECT_NE(problem("https://a/").find("TLS"), std::string::npos);
  EXPECT_NE(problem("http://a:x/").find("'x' is not a port"), std::string::npos);
  EXPECT_NE(problem("http://a:0/").find("'0' is not a port"), std::string::npos);
  EXPECT_NE(problem("http://:80/").find("no host"), std::string::npos);
  EXPECT_NE(problem("http://::1/").find("brackets"), std::string::npos);
  EXPECT_NE(problem("resp://a/0").find("no paths"), std::string::npos);
}

TEST(KeySource, KeysHaveOneLengthAndFollowTheSeed) {
  KeySource keys(1000, 0, 7);
  KeySource again(1000, 0, 7);
  for (int i = 0; i < 1000; ++i) {
    const std::string key(keys.Next());
    EXPECT_EQ(key.size(), keys.key_bytes());
    EXPECT_EQ(key.substr(0, 4), "key:");
    EXPECT_EQ(key, again.Next());
  }
  EXPECT_EQ(KeySource(1, 0, 1).Next(), "key:0");
  EXPECT_EQ(KeySource(1, 1.5, 1).Next(), "key:0");
}

// Five standard deviations of a count that is binomial.
void ExpectNear(uint64_t found, double share, uint64_t draws, uint64_t key) {
  const double expected = share * static_cast<double>(draws);
  EXPECT_NEAR(static_cast<double>(found), expected, 5 * std::sqrt(expected) + 1) << key;
}

TEST(KeySource, DrawsByItsLaw) {
  constexpr uint64_t kKeys = 50;
  constexpr uint64_t kDraws = 500'000;
  for (const double skew : {0.0, 0.5, 1.0, 1.2, 3.0}) {
    KeySource keys(kKeys, skew, 3);
    std::vector<uint64_t> counts(kKeys);
    for (uint64_t i = 0; i < kDraws; ++i) {
      ++counts.at(keys.Draw());
    }
    double sum = 0;
    for (uint64_t key = 0; key < kKeys; ++key) {
      sum += std::pow(static_cast<double>(key + 1), -skew);
    }
    for (uint64_t key = 0; key < kKeys; ++key) {
      ExpectNear(counts[key], std::pow(static_cast<double>(key + 1), -skew) / sum, kDraws, key);
    }
  }
}

// REQUIRES: the bytes live on, as texts of answers point into them.
Answer AnswerOf(AnswerReader& reader, std::string_view bytes) {
  EXPECT_EQ(reader.Read(bytes), AnswerState::kAnswer) << bytes;
  EXPECT_EQ(reader.consumed(), bytes.size());
  return reader.answer();
}

TEST(Answers, KnowDenialsOfEachProtocol) {
  const auto http = MakeHttpAnswers();
  EXPECT_EQ(AnswerOf(*http, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), Answer::kAllowed);
  EXPECT_EQ(AnswerOf(*http, "HTTP/1.1 429 No\r\nContent-Length: 0\r\n\r\n"), Answer::kDenied);
  EXPECT_EQ(AnswerOf(*http, "HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nnone"), Answer::kError);
  EXPECT_EQ(http->Explain(), "status 404: none");

  const auto cell = MakeRespAnswers("cl.throttle");
  EXPECT_EQ(AnswerOf(*cell, "*2\r\n:0\r\n:16\r\n"), Answer::kAllowed);
  EXPECT_EQ(AnswerOf(*cell, "*2\r\n:1\r\n:16\r\n"), Answer::kDenied);
  EXPECT_EQ(AnswerOf(*cell, "-ERR wrong\r\n"), Answer::kError);
  EXPECT_EQ(cell->Explain(), "ERR wrong");
  EXPECT_EQ(AnswerOf(*cell, ":1\r\n"), Answer::kError);

  const auto crab = MakeRespAnswers("THROTTLE");
  EXPECT_EQ(AnswerOf(*crab, "*2\r\n:1\r\n:16\r\n"), Answer::kAllowed);
  EXPECT_EQ(AnswerOf(*crab, "*2\r\n:0\r\n:16\r\n"), Answer::kDenied);

  const auto check = MakeRespAnswers("WEIR.CHECK");
  EXPECT_EQ(AnswerOf(*check, "*2\r\n$7\r\nallowed\r\n:1\r\n"), Answer::kAllowed);
  EXPECT_EQ(AnswerOf(*check, "%1\r\n$7\r\nallowed\r\n#f\r\n"), Answer::kDenied);

  const auto other = MakeRespAnswers("INCR");
  EXPECT_EQ(AnswerOf(*other, ":1\r\n"), Answer::kAllowed);
}

TEST(Answers, SayWhatIsWrongWithBytesThatAreNone) {
  const auto http = MakeHttpAnswers();
  EXPECT_EQ(http->Read("+PONG\r\n"), AnswerState::kBroken);
  EXPECT_NE(http->Explain().find("begins with HTTP/1.1"), std::string::npos);
  const auto resp = MakeRespAnswers("INCR");
  EXPECT_EQ(resp->Read("HTTP/1.1 400 Bad Request\r\n"), AnswerState::kBroken);
  EXPECT_NE(resp->Explain().find("unknown type"), std::string::npos);
}

}  // namespace
}  // namespace weir::bench
