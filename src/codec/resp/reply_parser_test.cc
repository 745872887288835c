#include "codec/resp/reply_parser.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "codec/resp/writer.h"
#include "testing/random.h"

namespace weir::codec::resp {
namespace {

// A reply as one line of text, so that trees compare and print.
std::string Show(const Reply& reply) {
  std::string text;
  switch (reply.type) {
    case ReplyType::kSimple:
      return "simple " + std::string(reply.text);
    case ReplyType::kError:
      return "error " + std::string(reply.text);
    case ReplyType::kInteger:
      return "integer " + std::to_string(reply.integer);
    case ReplyType::kBulk:
      return "bulk " + std::string(reply.text);
    case ReplyType::kNull:
      return "null";
    case ReplyType::kBool:
      return reply.integer != 0 ? "true" : "false";
    case ReplyType::kDouble:
      return "double " + std::string(reply.text);
    case ReplyType::kBigNumber:
      return "big " + std::string(reply.text);
    case ReplyType::kVerbatim:
      return "verbatim " + std::string(reply.text);
    case ReplyType::kArray:
      text = "array(";
      break;
    case ReplyType::kMap:
      text = "map(";
      break;
    case ReplyType::kSet:
      text = "set(";
      break;
    case ReplyType::kPush:
      text = "push(";
  }
  for (const Reply& element : reply.elements()) {
    text += Show(element) + ";";
  }
  return text + ")";
}

// What replies the input holds, or the error; `sizes` says where it is split.
template <class NextSize>
std::string ParseInPieces(std::string_view input, NextSize next_size,
                          const ReplyLimits& limits = {}) {
  ReplyParser parser(limits);
  std::string text;
  std::string kept;
  for (size_t fed = 0; fed < input.size();) {
    const size_t size = std::min(next_size(), input.size() - fed);
    std::string moved = kept + std::string(input.substr(fed, size));
    fed += size;
    kept = std::move(moved);
    for (;;) {
      const ReplyState state = parser.Parse(kept);
      if (state == ReplyState::kError) {
        return text + "! " + std::string(parser.error());
      }
      if (state == ReplyState::kMore) {
        break;
      }
      text += Show(parser.reply()) + "\n";
      kept.erase(0, parser.consumed());
    }
  }
  return text + (kept.empty() ? "" : "…");
}

std::string Parse(std::string_view input, const ReplyLimits& limits = {}) {
  const std::string whole = ParseInPieces(input, [&] { return input.size(); }, limits);
  EXPECT_EQ(ParseInPieces(input, [] { return size_t{1}; }, limits), whole) << "byte by byte";
  for (size_t at = 1; at < input.size(); ++at) {
    bool first = true;
    const auto halves = [&] { return std::exchange(first, false) ? at : input.size(); };
    EXPECT_EQ(ParseInPieces(input, halves, limits), whole) << "split at " << at;
  }
  return whole;
}

TEST(ReplyParser, ReadsEveryType) {
  EXPECT_EQ(Parse("+OK\r\n-ERR no\r\n:-7\r\n$2\r\nhi\r\n$-1\r\n*-1\r\n_\r\n#t\r\n#f\r\n,1.5\r\n"
                  ",inf\r\n(123\r\n!5\r\nERR x\r\n=6\r\ntxt:hi\r\n"),
            "simple OK\nerror ERR no\ninteger -7\nbulk hi\nnull\nnull\nnull\ntrue\nfalse\n"
            "double 1.5\ndouble inf\nbig 123\nerror ERR x\nverbatim hi\n");
}

TEST(ReplyParser, ReadsTrees) {
  EXPECT_EQ(Parse("*3\r\n*2\r\n:1\r\n*0\r\n%1\r\n+a\r\n~1\r\n:2\r\n$1\r\nx\r\n>0\r\n"),
            "array(array(integer 1;array(););map(simple a;set(integer 2;););bulk x;)\npush()\n");
}

TEST(ReplyParser, FindsAnElementByItsIndex) {
  ReplyParser parser;
  ASSERT_EQ(parser.Parse("*3\r\n*2\r\n:1\r\n:2\r\n:3\r\n:4\r\n"), ReplyState::kReply);
  EXPECT_EQ(parser.reply().element(0).element(1).integer, 2);
  EXPECT_EQ(parser.reply().element(1).integer, 3);
  EXPECT_EQ(parser.reply().element(2).integer, 4);
}

TEST(ReplyParser, RefusesWhatIsNoReply) {
  for (const char* input :
       {"hello\r\n",  "\r\n",      ":\r\n",    ":1x\r\n", ":1\n",          "$x\r\n",
        "$-2\r\n",    "*x\r\n",    "*-2\r\n",  "%-1\r\n", "#x\r\n",        "_x\r\n",
        ",x\r\n",     ",\r\n",     "(1.5\r\n", "(\r\n",   "=3\r\ntxt\r\n", "=5\r\ntxt!x\r\n",
        "$2\r\nhixx", "+a\rb\r\n", "$?\r\n",   "|1\r\n"}) {
    EXPECT_TRUE(Parse(input).starts_with("! the reply has ")) << input;
  }
}

TEST(ReplyParser, HoldsItsLimits) {
  const ReplyLimits limits{
      .depth_max = 2, .bulk_bytes_max = 4, .line_bytes_max = 8, .replies_max = 6};
  EXPECT_EQ(Parse("*1\r\n*1\r\n:1\r\n", limits), "array(array(integer 1;);)\n");
  EXPECT_EQ(Parse("*1\r\n*1\r\n*0\r\n", limits),
            "! the reply has replies nested deeper than the limit");
  EXPECT_EQ(Parse("$4\r\n1234\r\n", limits), "bulk 1234\n");
  EXPECT_TRUE(Parse("$5\r\n", limits).starts_with("!"));
  EXPECT_TRUE(Parse("*7\r\n", limits).starts_with("!"));
  EXPECT_TRUE(Parse("%4\r\n", limits).starts_with("!"));
  EXPECT_TRUE(Parse("%9223372036854775807\r\n", limits).starts_with("!"));
  EXPECT_TRUE(Parse("*5\r\n:1\r\n*2\r\n", limits).starts_with("!"));
  EXPECT_EQ(Parse("+123456\r\n", limits), "simple 123456\n");
  EXPECT_TRUE(Parse("+12345678\r\n", limits).starts_with("!"));
}

// Random trees, written and read back, cut at random places.
class RandomReply {
 public:
  RandomReply(testing::Random& random, Protocol protocol)
      : random_(random), writer_(out_, protocol) {}

  std::string Write(unsigned depth) {
    const uint64_t kinds = depth == 0 ? 8 : 12;
    switch (random_.Below(kinds)) {
      case 0:
        writer_.Simple("line");
        return "simple line";
      case 1:
        writer_.Error("ERR line");
        return "error ERR line";
      case 2: {
        const auto number = static_cast<int64_t>(random_.Next());
        writer_.Integer(number);
        return "integer " + std::to_string(number);
      }
      case 3: {
        const std::string text(random_.Below(40), '\n');
        writer_.Bulk(text);
        return "bulk " + text;
      }
      case 4:
        writer_.Null();
        return "null";
      case 5:
        writer_.Bool(true);
        return v3() ? "true" : "integer 1";
      case 6:
        writer_.Double(0.25);
        return v3() ? "double 0.25" : "bulk 0.25";
      case 7:
        writer_.Verbatim("text");
        return v3() ? "verbatim text" : "bulk text";
      case 8:
        return Aggregate(depth, "array(", "array(", 1, [&](size_t size) { writer_.Array(size); });
      case 9:
        return Aggregate(depth, "map(", "array(", 2, [&](size_t size) { writer_.Map(size); });
      case 10:
        return Aggregate(depth, "set(", "array(", 1, [&](size_t size) { writer_.Set(size); });
      default:
        return Aggregate(depth, "push(", "array(", 1, [&](size_t size) { writer_.Push(size); });
    }
  }

  [[nodiscard]] std::string_view bytes() const { return out_.view(); }

 private:
  [[nodiscard]] bool v3() const { return writer_.protocol() == Protocol::k3; }

  template <class Head>
  std::string Aggregate(unsigned depth, const char* name3, const char* name2, size_t each,
                        Head head) {
    const size_t size = random_.Below(4);
    head(size);
    std::string text = v3() ? name3 : name2;
    for (size_t i = 0; i < size * each; ++i) {
      text += Write(depth - 1) + ";";
    }
    return text + ")";
  }

  testing::Random& random_;
  base::ByteBuffer out_;
  Writer writer_;
};

TEST(ReplyParser, ReadsWhatTheWriterWrites) {
  testing::Random random(7);
  for (int i = 0; i < 2000; ++i) {
    RandomReply reply(random, i % 2 == 0 ? Protocol::k2 : Protocol::k3);
    const std::string expected = reply.Write(4) + "\n";
    const auto pieces = [&] { return size_t{1} + random.Below(20); };
    ASSERT_EQ(ParseInPieces(reply.bytes(), pieces), expected);
  }
}

}  // namespace
}  // namespace weir::codec::resp
