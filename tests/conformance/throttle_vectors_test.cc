// CL.THROTTLE and THROTTLE as redis-cell and throttlecrab answer them: the words of a command to
// the numbers of its reply, with rates that change under a key and numbers at the end of 64 bits.
// The same over a socket: tests/integration/cl_throttle_test.py.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "limiter/throttle.h"
#include "server/throttle_command.h"
#include "tests/conformance/vector_documents.h"

namespace weir::vectors {
namespace {

using server::ThrottleCommand;
using server::ThrottleDialect;
using server::ThrottleNumbers;
using Words = std::vector<std::string>;

// A server's part between the socket and the table.
class Throttler {
 public:
  explicit Throttler(ThrottleDialect dialect) : dialect_(dialect) {}

  // The reply as the formats have it: five numbers, or {"error": text}.
  json Ask(const Words& arguments) {
    std::vector<std::string_view> words = {dialect_ == ThrottleDialect::kRedisCell ? "CL.THROTTLE"
                                                                                   : "THROTTLE"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    ThrottleCommand command;
    std::string error;
    if (!command.Parse(dialect_, words, error)) {
      return json{{"error", error}};
    }
    return ToNumbers(dialect_, command.ask,
                     limiter_->Take(limiter_->Prepare(command.key), command.ask));
  }

  void GoTo(Duration t) { clock_.SetNow(start_ + t); }

 private:
  const ThrottleDialect dialect_;
  ManualClock clock_{testing::Noon()};
  const Timestamp start_ = clock_.Now();
  std::unique_ptr<ThrottleLimiter> limiter_ =
      *ThrottleLimiter::Create(*MemoryStore::Create(testing::SmallStore(clock_)));
};

// redis-cell: every operation of every case. Ops that carry an exact reply accept either.
void RunCell(const Case& one) {
  SCOPED_TRACE(NameOf(one));
  if (one.test.contains("quirk")) {
    return;  // of that implementation only
  }
  Throttler throttler(ThrottleDialect::kRedisCell);
  for (const json& op : one.test.at("ops")) {
    SCOPED_TRACE(op.dump());
    Duration t{};
    ReadDuration(op, "t", t);
    throttler.GoTo(t);
    Words words = op.at("args").get<Words>();
    words.insert(words.begin(), "key");
    const json reply = throttler.Ask(words);
    EXPECT_TRUE(reply == op.at("reply") || reply == op.value("exact_gcra_reply", op["reply"]))
        << reply.dump();
  }
}

// throttlecrab: the arguments that a table's case stands for, where they can be said in seconds.
void RunCrab(const Case& one) {
  SCOPED_TRACE(NameOf(one));
  Duration period{};
  const json& rate = Field(one, "rate");
  if (!ReadDuration(rate, "period", period) || period % std::chrono::seconds(1) != Duration{}) {
    return;
  }
  Throttler throttler(ThrottleDialect::kThrottlecrab);
  for (const json& op : one.test.at("ops")) {
    SCOPED_TRACE(op.dump());
    Duration t{};
    ReadDuration(op, "t", t);
    throttler.GoTo(t);
    const json reply = throttler.Ask(
        {KeyOf(op), Field(one, "burst_total").dump(), rate.at("count").dump(),
         std::to_string(period / std::chrono::seconds(1)), std::to_string(UnitsOf(op))});
    ASSERT_TRUE(reply.is_array()) << reply.dump();
    EXPECT_EQ(reply[0] == 1, op.value("allowed", reply[0] == 1));
    EXPECT_EQ(reply[1], Field(one, "burst_total"));
    EXPECT_EQ(reply[2], Has(op, "remaining") ? op["remaining"] : reply[2]) << reply.dump();
  }
}

// {"burst", "count", "period", "quantity"}, whichever are said, and what comes of it.
void RunCrabError(const json& error) {
  SCOPED_TRACE(error.dump());
  Throttler throttler(ThrottleDialect::kThrottlecrab);
  const auto word = [&](const char* name, int64_t otherwise) {
    return std::to_string(error.value(name, otherwise));
  };
  const json reply = throttler.Ask(
      {"key", word("burst", 10), word("count", 100), word("period", 60), word("quantity", 1)});
  const std::string expect = error.at("expect");
  if (expect.starts_with("error")) {
    EXPECT_TRUE(reply.contains("error")) << reply.dump();
    return;
  }
  ASSERT_TRUE(reply.is_array()) << reply.dump();
  EXPECT_EQ(reply[0], expect.starts_with("allowed") ? 1 : 0) << reply.dump();
  EXPECT_EQ(reply[1], error.value("burst", int64_t{10}));
  EXPECT_EQ(reply[2].get<int64_t>(), reply[1].get<int64_t>() - reply[0].get<int64_t>());
}

void RunCrabClockJumps(const json& jumps) {
  Throttler throttler(ThrottleDialect::kThrottlecrab);
  const json& times = jumps.at("times_s");
  for (size_t i = 0; i < times.size(); ++i) {
    throttler.GoTo(ScaledBy(times[i], std::chrono::seconds(1)));
    const json reply = throttler.Ask(
        {"key", jumps.at("burst").dump(), jumps.at("count").dump(), jumps.at("period_s").dump()});
    ASSERT_TRUE(reply.is_array()) << reply.dump();
    EXPECT_TRUE(reply[0] == 1 || (i != 0 && i + 1 != times.size())) << i;
  }
}

// Keys of any bytes, each with a state of its own.
void RunCrabKeys(const json& keys) {
  Throttler throttler(ThrottleDialect::kThrottlecrab);
  for (const json& key : keys) {
    EXPECT_EQ(throttler.Ask({key, "10", "100", "60"}), (json{1, 10, 9, 0, 0})) << key;
    EXPECT_EQ(throttler.Ask({key, "10", "100", "60"}), (json{1, 10, 8, 1, 0})) << key;
  }
}

void RunDocument(const json& document) {
  SCOPED_TRACE(document.value("file", "our own"));
  for (const Case& one : CasesIn(document, Kind::kThrottle)) {
    RunCell(one);
  }
  for (const Case& one : CasesIn(document, Kind::kTable)) {
    RunCrab(one);
  }
  for (const json& error : document.value("errors", json::array())) {
    if (error.contains("args")) {
      EXPECT_EQ(Throttler(ThrottleDialect::kRedisCell).Ask(error["args"].get<Words>()),
                error.at("reply"));
    } else if (error.contains("expect")) {
      RunCrabError(error);
    }
  }
  if (document.contains("clock_jumps")) {
    RunCrabClockJumps(document["clock_jumps"]);
  }
  if (document.contains("resp")) {
    RunCrabKeys(document["resp"].value("key_strings", json::array()));
  }
}

constexpr const char* kOwn = R"({
  "cases": [
    {"name": "rates that change", "ops": [
      {"t_ns": 0, "args": ["1", "1", "10"], "reply": [0, 2, 1, -1, 10]},
      {"t_ns": 0, "args": ["9", "1", "1"], "reply": [1, 10, 0, 1, 10]},
      {"t_ns": 0, "args": ["10", "1", "1"], "reply": [0, 11, 0, -1, 11]},
      {"t_ns": 1000000000, "args": ["1", "1", "10", "0"], "reply": [0, 2, 1, -1, 10]}]},
    {"name": "seven a minute", "ops": [
      {"t_ns": 0, "args": ["1", "7", "60", "2"], "reply": [0, 2, 0, -1, 18]},
      {"t_ns": 8571428570, "args": ["1", "7", "60"], "reply": [1, 2, 0, 0, 9]},
      {"t_ns": 8571428571, "args": ["1", "7", "60"], "reply": [0, 2, 0, -1, 18]}]},
    {"name": "a quantity below zero gives back", "ops": [
      {"t_ns": 0, "args": ["1", "1", "10", "2"], "reply": [0, 2, 0, -1, 20]},
      {"t_ns": 0, "args": ["1", "1", "10", "-1"], "reply": [0, 2, 1, -1, 10]}]},
    {"id": "a week", "rate": {"count": 13, "period_ms": 604800000}, "burst_total": 2, "ops": [
      {"t_ms": 0, "quantity": 2, "allowed": true, "remaining": 0},
      {"t_ms": 46523000, "allowed": false, "remaining": 0},
      {"t_ms": 46524000, "allowed": true, "remaining": 0}]}],
  "errors": [
    {"args": ["k", "1", "one", "1"],
     "reply": {"error": "Cell error: Store error: Couldn't parse as integer: one"}},
    {"args": ["k", "1", "9223372036854775807", "1"],
     "reply": {"error": "Cell error: Store error: Zero rates are not supported"}},
    {"burst": -1, "expect": "error"}, {"count": -5, "expect": "error"},
    {"quantity": 9223372036854775807, "expect": "denied"},
    {"count": 9223372036854775807, "expect": "allowed"},
    {"burst": 9223372036854775807, "count": 1, "period": 9223372036854775807,
     "expect": "allowed"}],
  "clock_jumps": {"burst": 2, "count": 1, "period_s": 1, "times_s": [0, -100, 5]},
  "resp": {"key_strings": ["", "a b", "a\u0000b"]}})";

TEST(ThrottleVectors, OurOwn) {
  RunDocument(json::parse(kOwn));
}

TEST(ThrottleVectors, OfOthers) {
  (void)OutsideCases(Kind::kThrottle, "CL.THROTTLE replies");
  for (const json& document : Documents()) {
    RunDocument(document);
  }
}

}  // namespace
}  // namespace weir::vectors
