// Warm codecs do not allocate: a request is parsed, its body read and its answer written within
// memory that is there already.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/byte_buffer.h"
#include "codec/http/answer_testing.h"
#include "codec/http/check_json.h"
#include "codec/http/client_address.h"
#include "codec/http/request_parser.h"
#include "codec/http/target.h"
#include "codec/resp/command_parser.h"
#include "codec/resp/reply_parser.h"
#include "codec/resp/writer.h"
#include "testing/count_allocations.h"

namespace weir::codec {
namespace {

// How often `work` allocates once it has been done a few times.
template <class Work>
size_t WarmAllocations(Work work) {
  for (int i = 0; i < 3; ++i) {
    work();
  }
  const uint64_t before = testing::allocations;
  for (int i = 0; i < 100; ++i) {
    work();
  }
  return testing::allocations - before;
}

TEST(Allocation, CountsWhatAllocates) {
  EXPECT_GE(WarmAllocations([] { EXPECT_EQ(std::string(100, 'x').size(), 100U); }), 100U);
}

TEST(Allocation, AnHttpCheckNeedsNone) {
  const std::string body = R"({"attributes":{"ip":"192.0.2.1","path":"\/x"},"cost":2,"id":"a"})";
  const std::string text =
      "POST /v1//check?a=%41&b HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 192.0.2.1\r\n"
      "Accept: application/problem+json\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  const std::vector<RuleView> rules = {http::MakeRule("login", {"5/min", "10/h"})};
  http::AnswerWriter writer({}, rules);
  RulePart part;
  part.rule = rules.data();
  part.quota = rules[0].variants[0].quotas.data();
  part.decision =
      http::MakeDecision(Outcome::kDenied, 5, 0, std::chrono::seconds(3), std::chrono::seconds(9));
  http::Ruling ruling;
  ruling.outcome = Outcome::kDenied;
  ruling.parts = {&part, 1};
  ruling.deciding = &part;
  const http::ClientAddress clients(http::ClientSource::kXForwardedFor,
                                    {*base::IpPrefix::Parse("10.0.0.0/8")});

  std::string bytes = text;
  http::RequestParser parser;
  http::JsonReader reader;
  base::ByteBuffer out;
  std::string path;
  std::string query;
  const size_t count = WarmAllocations([&] {
    ASSERT_EQ(parser.Parse(bytes), http::ParseState::kRequest);
    const http::Request& request = parser.request();
    ASSERT_TRUE(http::NormalizePath(request.path, path).has_value());
    http::QueryReader parameters(request.query, query);
    ASSERT_TRUE(parameters.Next().has_value());
    ASSERT_EQ(clients.Find(*base::IpAddress::Parse("10.0.0.1"), request),
              base::IpAddress::Parse("192.0.2.1"));
    ASSERT_TRUE(reader.ReadCheck(request.body)) << reader.error();
    http::AnswerContext context;
    context.error_body = http::ChooseErrorBody(request.Find(http::Known::kAccept));
    writer.WriteCheck(out, ruling, context);
    http::AnswerWriter::Batch batch(writer, out, context);
    batch.Add(ruling);
    batch.End();
    out.Clear();
  });
  EXPECT_EQ(count, 0U);
}

TEST(Allocation, ARedisCommandNeedsNone) {
  const std::string_view throttle =
      "*5\r\n$11\r\nCL.THROTTLE\r\n$4\r\nuser\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n";
  resp::CommandParser parser;
  resp::ReplyParser reply;
  base::ByteBuffer out;
  const size_t count = WarmAllocations([&] {
    ASSERT_EQ(parser.Parse(throttle.substr(0, 20)), resp::ParseState::kMore);
    ASSERT_EQ(parser.Parse(throttle), resp::ParseState::kCommand);
    ASSERT_EQ(parser.Parse("CL.THROTTLE \"user\" 15 30 60\r\n"), resp::ParseState::kCommand);
    resp::Writer(out, resp::Protocol::k3).Integers({0, 16, 15, -1, 2});
    ASSERT_EQ(reply.Parse(out.view()), resp::ReplyState::kReply);
    out.Clear();
  });
  EXPECT_EQ(count, 0U);
}

}  // namespace
}  // namespace weir::codec
