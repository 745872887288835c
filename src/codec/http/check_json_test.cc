#include "codec/http/check_json.h"

#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "codec/http/check_json_state.h"

namespace weir::codec::http {
namespace {

using Attributes = std::vector<std::pair<std::string, std::string>>;

Attributes Copy(std::span<const Attribute> attributes) {
  Attributes copy;
  for (const auto& [name, value] : attributes) {
    copy.emplace_back(name, value);
  }
  return copy;
}

// Whatever bytes lie behind the body must not matter.
std::string CheckError(std::string_view text) {
  std::string error;
  for (const char behind : {' ', '}', '"', '0'}) {
    const std::string bytes = std::string(text) + std::string(64, behind);
    JsonReader reader;
    const bool read = reader.ReadCheck({bytes.data(), text.size()});
    EXPECT_EQ(read, reader.error().empty());
    EXPECT_TRUE(behind == ' ' || reader.error() == error) << bytes;
    error = reader.error();
  }
  return error;
}

TEST(CheckJson, ReadsTheShortForm) {
  const std::string_view body(R"({"key": "abc"})");
  JsonReader reader;
  ASSERT_TRUE(reader.ReadCheck(body)) << reader.error();
  ASSERT_EQ(reader.checks().size(), 1U);
  EXPECT_FALSE(reader.is_batch());
  const CheckQuestion& check = reader.checks()[0];
  EXPECT_EQ(Copy(check.attributes), (Attributes{{"key", "abc"}}));
  EXPECT_EQ(check.cost, 1U);
  EXPECT_FALSE(check.peek);
  EXPECT_EQ(check.id, "");
}

TEST(CheckJson, ReadsEveryMember) {
  const std::string_view body(R"( {"id":"r-1","peek":true,"cost":2,
    "attributes":{"ip":"1.2.3.4","path":"\/x\u00e4","n":12.50,"yes":true,"no":false,"none":null}}
  )");
  JsonReader reader;
  ASSERT_TRUE(reader.ReadCheck(body)) << reader.error();
  const CheckQuestion& check = reader.checks()[0];
  EXPECT_EQ(Copy(check.attributes), (Attributes{{"ip", "1.2.3.4"},
                                                {"path", "/x\xC3\xA4"},
                                                {"n", "12.50"},
                                                {"yes", "true"},
                                                {"no", "false"}}));
  EXPECT_EQ(check.cost, 2U);
  EXPECT_TRUE(check.peek);
  EXPECT_EQ(check.id, "r-1");
}

TEST(CheckJson, ReadsABatch) {
  const std::string_view body(
      R"({"checks":[{"key":"a"},{"attributes":{"x":1,"y":2},"cost":0},{"attributes":{}}]})");
  JsonReader reader;
  ASSERT_TRUE(reader.ReadCheck(body)) << reader.error();
  EXPECT_TRUE(reader.is_batch());
  ASSERT_EQ(reader.checks().size(), 3U);
  EXPECT_EQ(Copy(reader.checks()[0].attributes), (Attributes{{"key", "a"}}));
  EXPECT_EQ(Copy(reader.checks()[1].attributes), (Attributes{{"x", "1"}, {"y", "2"}}));
  EXPECT_EQ(reader.checks()[1].cost, 0U);
  EXPECT_TRUE(reader.checks()[2].attributes.empty());
}

TEST(CheckJson, TakesWhatABatchMayHoldAndNoMore) {
  const auto batch = [](size_t size) {
    std::string text = R"({"checks":[)";
    for (size_t i = 0; i < size; ++i) {
      text += std::string(i == 0 ? "" : ",") + R"({"key":"k)" + std::to_string(i) + R"("})";
    }
    return text + "]}";
  };
  EXPECT_EQ(CheckError(batch(100)), "");
  EXPECT_EQ(CheckError(batch(101)), "Check 101: \"checks\" has more than 100 elements.");
  EXPECT_EQ(CheckError(batch(0)), "\"checks\" is empty; expected 1 to 100 checks.");
}

TEST(CheckJson, SaysWhatWasFoundAndWhatIsExpected) {
  const struct {
    std::string_view body;
    std::string_view error;
  } cases[] = {
      {R"([])", "The body is not an object; expected is {\"key\": \"user-1\"}, for example."},
      {R"("x")", "The body is not an object; expected is {\"key\": \"user-1\"}, for example."},
      {R"({})", "A check names nothing to count; expected \"attributes\" or \"key\"."},
      {R"({"cost":1})", "A check names nothing to count; expected \"attributes\" or \"key\"."},
      {R"({"kye":"a"})",
       "Unknown member \"kye\"; expected: attributes, key, cost, peek, id, checks. "
       "Did you mean key?"},
      {R"({"estimate":1})",
       "Unknown member \"estimate\"; expected: attributes, key, cost, peek, id, checks."},
      {R"({"a\nb":1})",
       "Unknown member \"a\\x0ab\"; expected: attributes, key, cost, peek, id, checks."},
      {R"({"key":"a","key":"b"})", "\"key\" is given twice."},
      {R"({"key":"a","cost":1,"cost":2})", "\"cost\" is given twice."},
      {R"({"key":"a","attributes":{"key":"b"}})", "The attribute \"key\" is given twice."},
      {R"({"attributes":{"a":1,"\u0061":2}})", "The attribute \"a\" is given twice."},
      {R"({"attributes":{"":1}})", "The attribute name \"\" has 0 bytes; expected 1 to 128."},
      {R"({"attributes":[]})",
       "\"attributes\" is a list; expected an object like {\"ip\": \"192.0.2.1\"}."},
      {R"({"attributes":{"a":{}}})",
       "\"a\" is an object; expected text, a number, true, false or null."},
      {R"({"key":[1]})", "\"key\" is a list; expected text, a number, true, false or null."},
      {R"({"key":"a","cost":-1})", "\"cost\" is -1; expected a whole number from 0 to 4294967296."},
      {R"({"key":"a","cost":1.5 })",
       "\"cost\" is 1.5; expected a whole number from 0 to 4294967296."},
      {R"({"key":"a","cost":4294967297})",
       "\"cost\" is 4294967297; expected a whole number from 0 to 4294967296."},
      {R"({"key":"a","cost":99999999999999999999999})",
       "\"cost\" is 99999999999999999999999; expected a whole number from 0 to 4294967296."},
      {R"({"key":"a","cost":null})",
       "\"cost\" is null; expected a whole number from 0 to 4294967296."},
      {R"({"key":"a","peek":1})", "\"peek\" is 1; expected true or false."},
      {R"({"key":"a","id":5})", "\"id\" is 5; expected text of 1 to 128 bytes."},
      {R"({"key":"a","id":""})", "\"id\" has 0 bytes; expected 1 to 128."},
      {R"({"checks":{}})", "\"checks\" is an object; expected a list of 1 to 100 checks."},
      {R"({"checks":[{"key":"a"},5]})",
       "Check 2: \"checks\" is 5; expected objects like {\"key\": \"user-1\"} in the list."},
      {R"({"checks":[{"key":"a"},{"key":"b","cost":"x"}]})",
       "Check 2: \"cost\" is \"x\"; expected a whole number from 0 to 4294967296."},
      {R"({"checks":[{"checks":[]}]})",
       "Check 1: Unknown member \"checks\"; expected: attributes, key, cost, peek, id."},
      {R"({"checks":[{"key":"a"}],"cost":1})",
       "\"checks\" stands beside other members; put them into each check."},
      {R"({"key":"a"}{})", "The body goes on behind the object's closing brace."},
  };
  for (const auto& [body, error] : cases) {
    EXPECT_EQ(CheckError(body), error) << body;
  }
}

TEST(CheckJson, RefusesWhatIsNoJson) {
  for (const std::string_view body : {"",
                                      " ",
                                      "{",
                                      "}",
                                      "{]",
                                      R"({"key")",
                                      R"({"key":)",
                                      R"({"key":"a")",
                                      R"({"key":"a)",
                                      R"({"key":"a",})",
                                      R"({key:"a"})",
                                      R"({"key" "a"})",
                                      R"({"key":"a" "cost":1})",
                                      R"({"key":01})",
                                      R"({"key":+1})",
                                      R"({"key":tru})",
                                      R"({"key":nul})",
                                      R"({"key":"\x"})",
                                      R"({"key":"\ud800"})",
                                      "{\"key\":\"\xFF\"}",
                                      "{\"key\":\"a\nb\"}",
                                      R"({"key":1.})",
                                      R"({"checks":[{"key":"a"},]})",
                                      R"({"checks":[{"key":"a"})",
                                      R"({"attributes":{"a":1})",
                                      R"({"key":"a"} x)"}) {
    EXPECT_NE(CheckError(body), "") << body;
  }
}

TEST(CheckJson, BoundsWhatACheckMayName) {
  const auto many = [](size_t size) {
    std::string text = R"({"attributes":{)";
    for (size_t i = 0; i < size; ++i) {
      text += std::string(i == 0 ? "" : ",") + "\"a" + std::to_string(i) + "\":1";
    }
    return text + "}}";
  };
  EXPECT_EQ(CheckError(many(128)), "");
  EXPECT_EQ(CheckError(many(129)), "A check has more than 128 attributes.");
  EXPECT_EQ(CheckError(R"({"key":")" + std::string(2048, 'x') + "\"}"), "");
  EXPECT_EQ(CheckError(R"({"key":")" + std::string(2049, 'x') + "\"}"),
            "The attribute \"key\" has 2049 bytes; expected at most 2048.");
}

TEST(CheckJson, NeverReadsATruncatedBodyAsAWholeOne) {
  const std::string_view body =
      R"({"checks":[{"key":"a","cost":12},{"attributes":{"ip":"1.2.3.4"},"peek":true}]})";
  ASSERT_EQ(CheckError(body), "");
  for (size_t size = 0; size < body.size(); ++size) {
    EXPECT_NE(CheckError(body.substr(0, size)), "") << size;
  }
}

TEST(CheckJson, ReadsReservations) {
  JsonReader reader;
  ASSERT_TRUE(
      reader.ReadReserve((R"({"attributes":{"user":"7"},"estimate":4000,"lasts":60,"id":"x"})")));
  EXPECT_EQ(Copy(reader.reserve().attributes), (Attributes{{"user", "7"}}));
  EXPECT_EQ(reader.reserve().estimate, 4000U);
  EXPECT_EQ(reader.reserve().lasts, std::chrono::seconds(60));
  ASSERT_TRUE(reader.ReadReserve((R"({"key":"7","estimate":1})")));
  EXPECT_FALSE(reader.reserve().lasts.has_value());
  EXPECT_FALSE(reader.ReadReserve((R"({"key":"7"})")));
  EXPECT_EQ(reader.error(), "\"estimate\" is missing; expected the most units it may come to.");
  EXPECT_FALSE(reader.ReadReserve((R"({"estimate":7})")));
  EXPECT_FALSE(reader.ReadReserve((R"({"key":"7","estimate":1,"lasts":0})")));
}

TEST(CheckJson, ReadsSettlementsAndReleases) {
  JsonReader reader;
  const std::string_view settle(R"({"id":"00ff","actual":123})");
  ASSERT_TRUE(reader.ReadSettle(settle));
  EXPECT_EQ(reader.settle().reservation, "00ff");
  EXPECT_EQ(reader.settle().actual, 123U);
  EXPECT_FALSE(reader.ReadSettle((R"({"id":"00ff"})")));
  EXPECT_FALSE(reader.ReadSettle((R"({"actual":1})")));

  const std::string_view one(R"({"id":"a"})");
  ASSERT_TRUE(reader.ReadRelease(one));
  ASSERT_EQ(reader.released().size(), 1U);
  EXPECT_EQ(reader.released()[0], "a");
  const std::string_view two(R"({"ids":["a","b"]})");
  ASSERT_TRUE(reader.ReadRelease(two));
  ASSERT_EQ(reader.released().size(), 2U);
  EXPECT_EQ(reader.released()[1], "b");
  for (const char* body :
       {"{}", R"({"ids":[]})", R"({"ids":"a"})", R"({"ids":[1]})", R"({"id":"a","ids":["b"]})"}) {
    EXPECT_FALSE(reader.ReadRelease(body)) << body;
  }
}

TEST(CheckJson, ReadsAReset) {
  JsonReader reader;
  ASSERT_TRUE(reader.ReadReset(R"({"attributes": {"ip": "192.0.2.1"}, "rule": "login"})"))
      << reader.error();
  EXPECT_EQ(Copy(reader.reset().attributes), (Attributes{{"ip", "192.0.2.1"}}));
  EXPECT_EQ(reader.reset().rule, "login");
  ASSERT_TRUE(reader.ReadReset(R"({"key": "a"})"));
  EXPECT_EQ(reader.reset().rule, "");
  EXPECT_FALSE(reader.ReadReset(R"({"rule": "login"})"));
  EXPECT_EQ(reader.error(), "A check names nothing to count; expected \"attributes\" or \"key\".");
  EXPECT_FALSE(reader.ReadReset(R"({"key": "a", "cost": 1})"));
  EXPECT_FALSE(reader.ReadReset(R"({"key": "a", "rule": 7})"));
}

TEST(CheckJson, ReadsASwitch) {
  JsonReader reader;
  ASSERT_TRUE(reader.ReadSwitch(R"({"rule": "login", "to": "off", "lasts": 60})"))
      << reader.error();
  EXPECT_EQ(reader.change().rule, "login");
  EXPECT_EQ(reader.change().to, "off");
  EXPECT_EQ(reader.change().lasts, std::chrono::seconds(60));
  ASSERT_TRUE(reader.ReadSwitch(R"({"rule": "login", "to": "on"})"));
  EXPECT_FALSE(reader.change().lasts.has_value());
  EXPECT_FALSE(reader.ReadSwitch(R"({"rule": "login"})"));
  EXPECT_EQ(reader.error(),
            "Both \"rule\" and \"to\" are needed: which rule, and what it becomes.");
  EXPECT_FALSE(reader.ReadSwitch(R"({"rule": "login", "to": "off", "lasts": 0})"));
  EXPECT_FALSE(reader.ReadSwitch(R"({"rule": "", "to": "off"})"));
}

// Whatever the short way takes, the reader of all JSON reads the same. Bodies that are nearly right
// are where two readers would part.
TEST(CheckJson, ReadsPlainBodiesAsAllOthers) {
  constexpr std::string_view kSeeds[] = {
      R"({"key":"user-1"})",
      R"( { "key" : "a b" , "cost" : 12 } )",
      R"({"attributes":{"ip":"192.0.2.1","path":"/login"},"cost":0})",
      R"({"cost":123456789,"attributes":{},"key":"x"})",
  };
  constexpr std::string_view kBytes = "{}[]\",:\\0019.-eE \n\t\x01\x7f\xc3ku";
  constexpr uint16_t kMembers = kAttributes | kKey | kCost | kPeek | kId;
  std::mt19937 random(7);
  JsonReader::State plain;
  JsonReader::State full;
  int taken = 0;
  int refused = 0;
  for (int i = 0; i < 40'000; ++i) {
    std::string body(kSeeds[random() % std::size(kSeeds)]);
    for (size_t edits = random() % 3; edits != 0; --edits) {
      const size_t at = random() % body.size();
      const char byte = kBytes[random() % kBytes.size()];
      switch (random() % 3) {
        case 0:
          body[at] = byte;
          break;
        case 1:
          body.insert(at, 1, byte);
          break;
        default:
          body.erase(at, 1);
      }
    }
    plain.Clear();
    JsonReader::State::Object short_way;
    JsonReader::State::Object long_way;
    const bool is_plain = plain.ReadPlain(body, short_way);
    const bool is_good = full.Read(body, kMembers, long_way) && full.HasCounted(long_way);
    if (is_plain) {
      ASSERT_TRUE(is_good) << body << ": " << full.error;
      ASSERT_EQ(Copy(plain.attributes), Copy(full.attributes)) << body;
      ASSERT_EQ(short_way.check.cost, long_way.check.cost) << body;
      ASSERT_EQ(short_way.seen, long_way.seen) << body;
      ++taken;
    } else {
      ++refused;
    }
  }
  EXPECT_GT(taken, 10'000);
  EXPECT_GT(refused, 10'000);
}

}  // namespace
}  // namespace weir::codec::http
