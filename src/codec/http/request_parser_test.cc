#include "codec/http/request_parser.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "codec/http/parse_testing.h"

namespace weir::codec::http {
namespace {

ParsedRequest Only(std::string_view input, const RequestLimits& limits = {}) {
  const Parsed parsed = Parse(input, limits);
  EXPECT_EQ(parsed.status, 0) << parsed.reason << "\n" << input;
  EXPECT_EQ(parsed.requests.size(), 1U) << input;
  return parsed.requests.empty() ? ParsedRequest(Request{}) : parsed.requests.front();
}

int StatusOf(std::string_view input, const RequestLimits& limits = {}) {
  return Parse(input, limits).status;
}

TEST(RequestParser, ReadsARequestWithABody) {
  const ParsedRequest request = Only(
      "POST /v1/check?x=1 HTTP/1.1\r\nHost: weir.example:8080\r\ncontent-length: 11\r\n"
      "Content-Type:application/json \t\r\nX-Empty:\r\n\r\n{\"key\":\"a\"}");
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/v1/check?x=1");
  EXPECT_EQ(request.path, "/v1/check");
  EXPECT_EQ(request.query, "x=1");
  EXPECT_EQ(request.host, "weir.example:8080");
  EXPECT_EQ(request.body, "{\"key\":\"a\"}");
  EXPECT_EQ(request.fields,
            (std::vector<std::string>{"Host: weir.example:8080", "content-length: 11",
                                      "Content-Type: application/json", "X-Empty: "}));
  EXPECT_TRUE(request.keep_alive);
}

TEST(RequestParser, FindsFieldsByNameInAnyCase) {
  std::string input =
      "GET / HTTP/1.1\r\nhOST: h\r\nX-Forwarded-For: a\r\nx-forwarded-for: b\r\nX-My: v\r\n\r\n";
  RequestParser parser;
  ASSERT_EQ(parser.Parse(input), ParseState::kRequest);
  const Request& request = parser.request();
  EXPECT_EQ(request.method, Method::kGet);
  EXPECT_EQ(request.Find(Known::kHost), "h");
  EXPECT_EQ(request.Find(Known::kXForwardedFor), "a");
  EXPECT_EQ(request.fields[2].known, Known::kXForwardedFor);
  EXPECT_FALSE(request.Has(Known::kForwarded));
  EXPECT_EQ(request.Find(Known::kForwarded), "");
  ASSERT_NE(request.Find("x-mY"), nullptr);
  EXPECT_EQ(request.Find("x-mY")->value, "v");
  EXPECT_EQ(request.Find("x-m"), nullptr);
}

TEST(RequestParser, KnowsEveryFieldByItsName) {
  for (const std::string_view name :
       {"accept", "authorization", "connection", "content-length", "content-type", "expect",
        "forwarded", "host", "traceparent", "transfer-encoding", "x-forwarded-for",
        "x-forwarded-host", "x-forwarded-method", "x-forwarded-proto", "x-forwarded-uri",
        "x-original-method", "x-original-uri", "x-real-ip"}) {
    std::string input = "GET / HTTP/1.0\r\n" + std::string(name) + ": ";
    input += name == "expect" ? "100-continue" : name == "content-length" ? "0" : "chunked";
    input += "\r\n\r\n";
    RequestParser parser;
    const ParseState state = parser.Parse(input);
    if (name != "transfer-encoding") {  // not part of HTTP/1.0
      ASSERT_EQ(state, ParseState::kRequest) << name;
      EXPECT_NE(parser.request().fields[0].known, Known::kNone) << name;
    }
  }
}

TEST(RequestParser, ReadsPipelinedRequests) {
  const Parsed parsed = Parse(
      "GET /a HTTP/1.1\r\nHost: h\r\n\r\nPOST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"
      "\r\nGET /c HTTP/1.0\r\n\r\n");
  ASSERT_EQ(parsed.requests.size(), 3U);
  EXPECT_EQ(parsed.requests[0].path, "/a");
  EXPECT_EQ(parsed.requests[1].body, "hi");
  EXPECT_EQ(parsed.requests[2].path, "/c");
  EXPECT_EQ(parsed.status, 0);
}

// One after the other at the same place and at others; each as a fresh parser reads it.
TEST(RequestParser, AHeadThatIsSentAgainMeansTheSameAgain) {
  const std::string first =
      "POST /v1/check?a=b HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nX-Y: z\r\n\r\n";
  const std::string close = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
  const std::string chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string longer =
      "GET / HTTP/1.1\r\nHost: h\r\nX-Long: " + std::string(2000, 'x') + "\r\n\r\n";
  RequestParser parser;
  std::string here(1 << 13, '\0');
  std::string there(1 << 13, '\0');
  const auto check = [&parser](const std::string& text, std::string& place) {
    text.copy(place.data(), text.size());
    const Parsed fresh = Parse(text);
    ASSERT_EQ(fresh.requests.size(), 1U);
    ASSERT_EQ(parser.Parse({place.data(), text.size()}), ParseState::kRequest);
    EXPECT_EQ(parser.consumed(), text.size());
    EXPECT_EQ(ParsedRequest(parser.request()), fresh.requests.front()) << text;
    for (const Field& field : parser.request().fields) {
      EXPECT_GE(field.name.data(), place.data());
      EXPECT_LE(field.value.end(), place.data() + text.size());
    }
  };
  for (const std::string& text :
       {first + "12345", first + "abcde", close, close, first + "12345", longer, longer,
        chunked + "1\r\na\r\n0\r\n\r\n", chunked + "2\r\nab\r\n0\r\n\r\n", "\r\n" + close, close,
        first + "fghij"}) {
    check(text, here);
    check(text, here);
    check(text, there);
  }
  // Half of it, then the rest.
  const std::string whole = first + "vwxyz";
  for (size_t part = 0; part < whole.size(); ++part) {
    whole.copy(here.data(), whole.size());
    ASSERT_EQ(parser.Parse({here.data(), part}), ParseState::kMore) << part;
    ASSERT_EQ(parser.Parse({here.data(), whole.size()}), ParseState::kRequest) << part;
    EXPECT_EQ(parser.request().body, "vwxyz");
  }
}

TEST(RequestParser, AHeadThatDiffersByOneByteIsReadAnew) {
  const std::string text =
      "POST /v1/check HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nX-Y: z\r\n\r\nab";
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char byte : {'x', '3', ' ', ':', '\r', '\n', '\0'}) {
      std::string changed = text;
      changed[at] = byte;
      const Parsed alone = Parse(changed);
      const Parsed after = Parse(text + changed);
      EXPECT_EQ(after.status, alone.status) << changed;
      EXPECT_EQ(after.reason, alone.reason) << changed;
      ASSERT_EQ(after.requests.size(), 1 + alone.requests.size()) << changed;
      if (!alone.requests.empty()) {
        EXPECT_EQ(after.requests[1], alone.requests[0]) << changed;
      }
    }
  }
}

TEST(RequestParser, KeepsTheConnectionByVersionAndConnection) {
  const auto keeps = [](std::string_view version, std::string_view fields) {
    return Only("GET / " + std::string(version) + "\r\nHost: h\r\n" + std::string(fields) + "\r\n")
        .keep_alive;
  };
  EXPECT_TRUE(keeps("HTTP/1.1", ""));
  EXPECT_FALSE(keeps("HTTP/1.1", "Connection: close\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.1", "Connection: x , CLOSE,\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.1", "Connection: keep-alive\r\nConnection: close\r\n"));
  EXPECT_TRUE(keeps("HTTP/1.1", "Connection: closed\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.0", ""));
  EXPECT_TRUE(keeps("HTTP/1.0", "Connection: Keep-Alive\r\n"));
}

TEST(RequestParser, DecodesChunks) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(Only(head + "5\r\nhello\r\n6;name=\"v\"\r\n world\r\n0\r\n\r\n").body, "hello world");
  EXPECT_EQ(Only(head + "0\r\n\r\n").body, "");
  EXPECT_EQ(Only(head + "00A ; x\r\n0123456789\r\n0\r\nX-Trailer: dropped\r\n\r\n").body,
            "0123456789");
  const Parsed two = Parse(head + "1\r\na\r\n0\r\n\r\n" + head + "1\r\nb\r\n0\r\n\r\n");
  ASSERT_EQ(two.requests.size(), 2U);
  EXPECT_EQ(two.requests[1].body, "b");
}

TEST(RequestParser, RefusesBadChunks) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char* body :
       {"x\r\n", "\r\n", "-1\r\n", "+1\r\na\r\n", "0x1\r\na\r\n", " 1\r\na\r\n", "1 \r\na\r\n",
        "1\r\nab\r\n", "1\r\na\n0\r\n\r\n", "1\na\r\n", "1;a\nb\r\n", "1;a\rb\r\n",
        "000000001\r\na\r\n", "FFFFFFFFFFFFFFFF1\r\n", "0\r\nno trailer\r\n", "0\r\n folded: x\r\n",
        "1\r\na\r\n\r\n"}) {
    EXPECT_EQ(StatusOf(head + body), 400) << body;
  }
  EXPECT_EQ(StatusOf(head + "1;" + std::string(300, 'x') + "\r\n"), 400);
}

TEST(RequestParser, ReadsAbsoluteTargets) {
  const ParsedRequest request =
      Only("GET HTTP://Example.com:80/a/b?c=d HTTP/1.1\r\nHost: example.com:80\r\n\r\n");
  EXPECT_EQ(request.path, "/a/b");
  EXPECT_EQ(request.query, "c=d");
  EXPECT_EQ(request.host, "Example.com:80");
  EXPECT_EQ(Only("GET http://h HTTP/1.1\r\nHost: h\r\n\r\n").path, "/");
  EXPECT_EQ(Only("GET http://h?q HTTP/1.1\r\nHost: h\r\n\r\n").query, "q");
  EXPECT_EQ(Only("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n").path, "*");
}

TEST(RequestParser, TellsOnceThatTheClientWaitsForContinue) {
  std::string input =
      "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n";
  RequestParser parser;
  ASSERT_EQ(parser.Parse({input.data(), 20}), ParseState::kMore);
  EXPECT_FALSE(parser.head_complete());
  EXPECT_FALSE(parser.TakeContinue());
  ASSERT_EQ(parser.Parse(input), ParseState::kMore);
  EXPECT_TRUE(parser.head_complete());
  EXPECT_TRUE(parser.TakeContinue());
  EXPECT_FALSE(parser.TakeContinue());
  input += "hi";
  ASSERT_EQ(parser.Parse(input), ParseState::kRequest);
  EXPECT_EQ(parser.request().body, "hi");
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: h\r\nExpect: wonders\r\n\r\n"), 417);
}

TEST(RequestParser, HoldsTheLimitsToTheByte) {
  const RequestLimits limits{
      .line_bytes_max = 40, .head_bytes_max = 80, .fields_max = 3, .body_bytes_max = 10};
  const auto with_target = [](size_t bytes) {
    return "GET /" + std::string(bytes - 14, 'x') + " HTTP/1.1\r\nHost: h\r\n\r\n";
  };
  EXPECT_EQ(StatusOf(with_target(40), limits), 0);
  EXPECT_EQ(StatusOf(with_target(41), limits), 414);
  const auto with_field = [](size_t bytes) {
    return "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(bytes - 3, 'x') + "\r\n\r\n";
  };
  EXPECT_EQ(StatusOf(with_field(40), limits), 0);
  EXPECT_EQ(StatusOf(with_field(41), limits), 431);
  const auto with_head = [](size_t bytes) {
    const std::string head = "GET / HTTP/1.1\r\nHost: h\r\nX: 123456789012345678901234567\r\nY: ";
    return head + std::string(bytes - head.size() - 4, 'y') + "\r\n\r\n";
  };
  EXPECT_EQ(StatusOf(with_head(80), limits), 0);
  EXPECT_EQ(StatusOf(with_head(81), limits), 431);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: h\r\na: 1\r\nb: 2\r\n\r\n", limits), 0);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: h\r\na: 1\r\nb: 2\r\nc: 3\r\n\r\n", limits), 431);
  const std::string post = "POST / HTTP/1.1\r\nHost: h\r\n";
  EXPECT_EQ(StatusOf(post + "Content-Length: 10\r\n\r\n0123456789", limits), 0);
  EXPECT_EQ(StatusOf(post + "Content-Length: 11\r\n\r\n", limits), 413);
  EXPECT_EQ(StatusOf(post + "Content-Length: 99999999999999999999999\r\n\r\n", limits), 413);
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(StatusOf(chunked + "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n", limits), 0);
  EXPECT_EQ(StatusOf(chunked + "5\r\n01234\r\n6\r\n", limits), 413);
  EXPECT_EQ(StatusOf(chunked + "ffffffff\r\n", limits), 413);
}

// Parse compares the reasons of whole and of cut input: which limit was passed first is the same.
TEST(RequestParser, NamesTheLimitThatWasPassedFirst) {
  const std::string head = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (const uint32_t head_bytes_max : {30U, 60U, 66U, 67U, 68U, 80U, 200U}) {
    const RequestLimits limits{.line_bytes_max = 40, .head_bytes_max = head_bytes_max};
    for (size_t before = 0; before < 40; before += 13) {
      for (size_t bytes = 30; bytes < 100; ++bytes) {
        const std::string fields = "a: " + std::string(before, 'a') + "\r\nb: ";
        Parse(head + fields + std::string(bytes, 'b') + "\r\n\r\n", limits);
        Parse("GET /" + std::string(bytes, 'x') + " HTTP/1.1\r\n\r\n", limits);
      }
    }
  }
}

TEST(RequestParser, HasTheLimitsThatTheDocumentsName) {
  const std::string head = "GET / HTTP/1.1\r\nHost: h\r\n";
  std::string many = head;
  for (int i = 0; i < 99; ++i) {
    many += "a: b\r\n";
  }
  EXPECT_EQ(StatusOf(many + "\r\n"), 0);
  EXPECT_EQ(StatusOf(many + "a: b\r\n\r\n"), 431);
  EXPECT_EQ(StatusOf("GET /" + std::string(8192 - 14, 'x') + " HTTP/1.1\r\nHost: h\r\n\r\n"), 0);
  EXPECT_EQ(StatusOf("GET /" + std::string(8193 - 14, 'x') + " HTTP/1.1\r\nHost: h\r\n\r\n"), 414);
  std::string post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1048576\r\n\r\n";
  RequestParser parser;
  EXPECT_EQ(parser.Parse(post), ParseState::kMore);
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1048577\r\n\r\n"), 413);
}

TEST(RequestParser, BoundsTheFramingOfChunks) {
  std::string input = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 20'000; ++i) {
    input += "1\r\nx\r\n";
  }
  RequestParser parser;
  EXPECT_EQ(parser.Parse(input), ParseState::kError);
  EXPECT_EQ(parser.status(), 413);
}

TEST(RequestParser, RefusesWhatIsNoHttpAtItsFirstByte) {
  std::string tls = "\x16\x03\x01\x02";
  RequestParser parser;
  EXPECT_EQ(parser.Parse(tls), ParseState::kError);
  EXPECT_EQ(parser.status(), 400);
}

TEST(RequestParser, RefusesOtherVersions) {
  EXPECT_EQ(StatusOf("GET / HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(StatusOf("GET / HTTP/1.2\r\n\r\n"), 505);
  for (const char* version : {"HTTP/1.11", "http/1.1", "HTTP/11", "HTTP/1,1", "ICY/1.1", "HTTP/"}) {
    EXPECT_EQ(StatusOf("GET / " + std::string(version) + "\r\n\r\n"), 400) << version;
  }
}

}  // namespace
}  // namespace weir::codec::http
