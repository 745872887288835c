// Requests that two readers could understand in two ways (RFC 9112): each is refused with 400,
// whatever way its bytes arrive, and nothing behind it is read.
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "codec/http/parse_testing.h"

namespace weir::codec::http {
namespace {

using namespace std::string_view_literals;

void ExpectRefused(std::string_view input) {
  const Parsed parsed = Parse(std::string(input) + "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(parsed.status, 400) << input;
  EXPECT_TRUE(parsed.requests.empty()) << input;
  EXPECT_FALSE(parsed.reason.empty());
}

TEST(Smuggling, BodiesOfTwoLengthsAreRefused) {
  for (const std::string_view fields : {
           "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"sv,
           "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"sv,
           "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"sv,
           "Content-Length: 5\r\nContent-Length: 5\r\n"sv,
           "Content-Length: 5\r\nContent-Length: 6\r\n"sv,
           "Content-Length: 5, 5\r\n"sv,
           "Content-Length: 5,6\r\n"sv,
           "Content-Length: +5\r\n"sv,
           "Content-Length: -5\r\n"sv,
           "Content-Length: 0x5\r\n"sv,
           "Content-Length: 5 5\r\n"sv,
           "Content-Length: 5.0\r\n"sv,
           "Content-Length: five\r\n"sv,
           "Content-Length:\r\n"sv,
           "Content-Length: \"5\"\r\n"sv,
           "Content-Length: 5;\r\n"sv,
           "Transfer-Encoding: gzip, chunked\r\n"sv,
           "Transfer-Encoding: chunked, chunked\r\n"sv,
           "Transfer-Encoding: chunked, identity\r\n"sv,
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"sv,
           "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"sv,
           "Transfer-Encoding: identity\r\n"sv,
           "Transfer-Encoding: xchunked\r\n"sv,
           "Transfer-Encoding: chunked;q=1\r\n"sv,
           "Transfer-Encoding: \"chunked\"\r\n"sv,
           "Transfer-Encoding: \x0b"
           "chunked\r\n"sv,
           "Transfer-Encoding:\r\n"sv,
           "Transfer-Encoding : chunked\r\n"sv,
           "Transfer-Encoding\t: chunked\r\n"sv,
           "Content-Length : 5\r\n"sv,
           " Content-Length: 5\r\n"sv,
           "X: y\r\n Content-Length: 5\r\n"sv,
           "X: y\r\n\tContent-Length: 5\r\n"sv,
           "Content-Length: 5\nX: y\r\n"sv,
           "Content-Length: 5\rX: y\r\n"sv,
           "X: y\rContent-Length: 5\r\n"sv,
           "X: y\0z\r\n"sv,
           "X: y\x7f\r\n"sv,
           "X: \x01\r\n"sv,
           "X\0: y\r\n"sv,
           "X y: z\r\n"sv,
           "X(: z\r\n"sv,
           "X\xC3\xA4: z\r\n"sv,
           ": z\r\n"sv,
           "no colon\r\n"sv,
           "\r: x\r\n"sv,
       }) {
    ExpectRefused("POST / HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n");
  }
  ExpectRefused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
}

TEST(Smuggling, HostsThatDisagreeAreRefused) {
  for (const std::string_view head : {
           "GET / HTTP/1.1\r\n"sv,
           "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n"sv,
           "GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n"sv,
           "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n"sv,
           "GET / HTTP/1.1\r\nHost: a, b\r\n"sv,
           "GET / HTTP/1.1\r\nHost: a b\r\n"sv,
           "GET / HTTP/1.1\r\nHost: a/b\r\n"sv,
           "GET / HTTP/1.1\r\nHost: user@a\r\n"sv,
           "GET / HTTP/1.1\r\nHost: a?b\r\n"sv,
           "GET http://a/ HTTP/1.1\r\nHost: b\r\n"sv,
           "GET http://a:80/ HTTP/1.1\r\nHost: a\r\n"sv,
           "GET http://a/ HTTP/1.1\r\nHost:\r\n"sv,
           "GET http://user@a/ HTTP/1.1\r\nHost: a\r\n"sv,
           "GET http:///x HTTP/1.1\r\nHost: a\r\n"sv,
           "GET https://a/ HTTP/1.1\r\nHost: a\r\n"sv,
           "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n"sv,
       }) {
    ExpectRefused(std::string(head) + "\r\n");
  }
}

TEST(Smuggling, RequestLinesThatBendTheGrammarAreRefused) {
  for (const std::string_view line : {
           "GET  / HTTP/1.1\r\n"sv,
           "GET /  HTTP/1.1\r\n"sv,
           "GET / HTTP/1.1 \r\n"sv,
           " GET / HTTP/1.1\r\n"sv,
           "GET\t/\tHTTP/1.1\r\n"sv,
           "GET / HTTP/1.1\n"sv,
           "GET /\rHTTP/1.1\r\n"sv,
           "GET /\r HTTP/1.1\r\n"sv,
           "GET /\r\n"sv,
           "GET HTTP/1.1\r\n"sv,
           "GET / \r\n"sv,
           "GET\r\n"sv,
           "GET x HTTP/1.1\r\n"sv,
           "GET * HTTP/1.1\r\n"sv,
           "GET /a b HTTP/1.1\r\n"sv,
           "GET /a#b HTTP/1.1\r\n"sv,
           "GET /a\0b HTTP/1.1\r\n"sv,
           "GET /\xC3\xA4 HTTP/1.1\r\n"sv,
           "GET /\x7f HTTP/1.1\r\n"sv,
           "CONNECT h:80 HTTP/1.1\r\n"sv,
           "G(T / HTTP/1.1\r\n"sv,
           "\r\n\r\nGET / HTTP/1.1\r\n"sv,
           "\nGET / HTTP/1.1\r\n"sv,
           "\rGET / HTTP/1.1\r\n"sv,
           "\0GET / HTTP/1.1\r\n"sv,
       }) {
    ExpectRefused(std::string(line) + "Host: h\r\n\r\n");
  }
}

}  // namespace
}  // namespace weir::codec::http
