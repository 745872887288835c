// Vectors from other limiters, held against ours. Every reader goes by the format alone, so that
// more files of the same kind are more tests. Each suite also has cases of our own in the same
// format, which run whether the outside files are there or not.
#include "testing/vectors.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "weir/limiter.h"

#include "testing/twin.h"

namespace weir {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Noon;
using testing::ReadVectors;

enum class Slots { kAsNeeded, kWide };

// One fresh limiter on a clock that stands at t = 0 of the case.
struct Subject {
  explicit Subject(const Quota& quota, Slots slots = Slots::kAsNeeded) : clock(Noon()) {
    MemoryOptions options = testing::SmallStore(clock);
    if (slots == Slots::kWide) {
      options.wide_percent = 100;  // nanoseconds whatever the quota
    }
    limiter = std::make_unique<Limiter>(*Limiter::Create(quota, options));
  }

  void GoTo(const json& op) {
    const Duration t = op.contains("t_ns")   ? Duration(op["t_ns"].get<int64_t>())
                       : op.contains("t_ms") ? Duration(milliseconds(op["t_ms"].get<int64_t>()))
                                             : at;
    clock.Advance(t - at);
    at = t;
  }

  ManualClock clock;
  std::unique_ptr<Limiter> limiter;
  Duration at{};
};

std::vector<json> Documents(std::string_view prefix, std::string_view suite) {
  std::vector<json> documents;
  for (const testing::VectorFile& file : ReadVectors(prefix, suite)) {
    json document = json::parse(file.text, nullptr, false);
    EXPECT_FALSE(document.is_discarded()) << file.name;
    document["file"] = file.name;
    documents.push_back(std::move(document));
  }
  return documents;
}

std::string KeyOf(const json& op) {
  return op.value("key", std::string("key"));
}

bool Has(const json& op, const char* field) {
  return op.contains(field) && !op[field].is_null();
}

Quota BucketOf(const json& rate, int64_t burst) {
  return *Quota::TokenBucket(rate.at("count").get<int64_t>(),
                             milliseconds(rate.at("period_ms").get<int64_t>()), burst);
}

void ExpectNear(Duration actual, int64_t expected_ms, int64_t tolerance_ms, const char* what) {
  const Duration expected = milliseconds(expected_ms);
  EXPECT_LE(std::chrono::abs(actual - expected), Duration(milliseconds(tolerance_ms)))
      << what << " is " << actual.count() << " ns, expected " << expected_ms << " ms";
}

// -1 says "none": allowed, or not for waiting.
void ExpectRetry(const Decision& decision, int64_t expected_ms, int64_t tolerance_ms) {
  if (expected_ms < 0) {
    EXPECT_NE(decision.outcome, Outcome::kDenied);
  } else if (decision.outcome != Outcome::kRefused) {  // above the burst others wait, we refuse
    ExpectNear(decision.retry_after, expected_ms, tolerance_ms, "retry_after");
  }
}

// Tables of (t, quantity) -> (allowed, limit, remaining, reset, retry).
void RunGcraCase(const json& test, Slots slots) {
  Subject subject(BucketOf(test.at("rate"), test.at("burst_total").get<int64_t>()), slots);
  size_t row = 0;
  for (const json& op : test.at("ops")) {
    SCOPED_TRACE(test.value("id", "") + " row " + std::to_string(row++) + " " + op.dump());
    subject.GoTo(op);
    const Decision decision = subject.limiter->Check(KeyOf(op), op.value("quantity", int64_t{1}));
    if (Has(op, "allowed")) {
      EXPECT_EQ(decision.allowed(), op["allowed"].get<bool>());
    }
    if (Has(op, "limit")) {
      EXPECT_EQ(decision.limit, op["limit"].get<uint32_t>());
    }
    if (Has(op, "remaining")) {
      EXPECT_EQ(decision.remaining, op["remaining"].get<uint32_t>());
    }
    if (Has(op, "reset_after_ms")) {
      ExpectNear(decision.reset_after, op["reset_after_ms"].get<int64_t>(), 0, "reset_after");
    }
    if (Has(op, "retry_after_ms")) {
      ExpectRetry(decision, op["retry_after_ms"].get<int64_t>(), 0);
    }
    if (op.value("retry_after_positive", false) && decision.outcome == Outcome::kDenied) {
      EXPECT_GT(decision.retry_after, Duration::zero());
    }
  }
}

// Steps of redis_rate: n is all or nothing, at_most takes what fits, all at one instant.
void RunRateSteps(const json& document, const json& test, Slots slots) {
  const int64_t tolerance = document.value("tolerance_ms", int64_t{0});
  Subject subject(BucketOf(document.at("rate"), document.at("burst_total").get<int64_t>()), slots);
  int generation = 0;
  for (const json& step : test.at("steps")) {
    SCOPED_TRACE(test.value("id", "") + " " + step.dump());
    if (step.value("reset_key", false)) {
      ++generation;
      continue;
    }
    const std::string key = "key" + std::to_string(generation);
    const Decision decision = step.contains("at_most")
                                  ? subject.limiter->TakeUpTo(key, step["at_most"].get<int64_t>())
                                  : subject.limiter->Check(key, step.at("n").get<int64_t>());
    if (Has(step, "allowed")) {
      EXPECT_EQ(decision.charged, step["allowed"].get<uint32_t>());
    }
    if (Has(step, "remaining")) {
      EXPECT_EQ(decision.remaining, step["remaining"].get<uint32_t>());
    }
    if (Has(step, "reset_after_ms")) {
      ExpectNear(decision.reset_after, step["reset_after_ms"].get<int64_t>(), tolerance,
                 "reset_after");
    }
    if (Has(step, "retry_after_ms")) {
      ExpectRetry(decision, step["retry_after_ms"].get<int64_t>(),
                  step.value("retry_tol_ms", tolerance));
    }
  }
}

// Impossible parameters and those at the end of 64 bits.
void RunGcraError(const json& error) {
  SCOPED_TRACE(error.dump());
  if (error.contains("rate") || error.contains("count") || error.contains("period") ||
      error.contains("burst")) {
    const json rate = error.value("rate", json::object());
    const int64_t count = rate.value("count", error.value("count", int64_t{10}));
    const auto period =
        error.contains("period") ? seconds(error["period"].get<int64_t>()) : seconds(60);
    const Duration window = rate.contains("period_ms")
                                ? Duration(milliseconds(rate["period_ms"].get<int64_t>()))
                                : Duration(period);
    const int64_t burst = error.value("burst", int64_t{10});
    // A burst of 0 means "the limit" in the struct, so it is asked for in words.
    const auto quota =
        burst == 0 ? Quota::Parse("10/min burst 0") : Quota::TokenBucket(count, window, burst);
    ASSERT_FALSE(quota.ok()) << "beyond what a quota can say, hence refused by name";
    const std::string& message = quota.error().message;
    const bool named = message.find("limit:") != std::string::npos ||
                       message.find("window:") != std::string::npos ||
                       message.find("burst:") != std::string::npos;
    EXPECT_TRUE(named) << message;
  } else if (error.contains("quantity")) {
    Subject subject(*Quota::TokenBucket(10, seconds(60), 10));
    const Decision decision = subject.limiter->Check("key", error["quantity"].get<int64_t>());
    EXPECT_EQ(decision.outcome, Outcome::kRefused);
    EXPECT_EQ(subject.limiter->Check("key", 0).remaining, 10U);
  }
}

void RunClockJumps(const json& jumps) {
  Subject subject(*Quota::TokenBucket(jumps.at("count").get<int64_t>(),
                                      seconds(jumps.at("period_s").get<int64_t>()),
                                      jumps.at("burst").get<int64_t>()));
  const Timestamp start = subject.clock.Now();
  const json& times = jumps.at("times_s");
  for (size_t i = 0; i < times.size(); ++i) {
    subject.clock.SetNow(start + seconds(times[i].get<int64_t>()));
    const Decision decision = subject.limiter->Check("key");
    EXPECT_NE(decision.outcome, Outcome::kRefused);
    if (i == 0 || i + 1 == times.size()) {
      EXPECT_TRUE(decision.allowed()) << i;
    }
  }
}

void RunGcraDocument(const json& document) {
  SCOPED_TRACE(document.value("file", "our own"));
  for (const json& test : document.at("cases")) {
    for (const Slots slots : {Slots::kAsNeeded, Slots::kWide}) {
      if (test.contains("ops")) {
        RunGcraCase(test, slots);
      } else if (test.contains("steps")) {
        RunRateSteps(document, test, slots);
      }
    }
  }
  for (const json& period : document.value("rate_periods", json::array())) {
    Subject subject(*Quota::TokenBucket(period.at("count").get<int64_t>(),
                                        seconds(period.at("per_s").get<int64_t>()), 1));
    ExpectNear(subject.limiter->Check("key").reset_after, period.at("emission_ms").get<int64_t>(),
               0, "emission interval");
  }
  for (const json& error : document.value("errors", json::array())) {
    RunGcraError(error);
  }
  if (document.contains("clock_jumps")) {
    RunClockJumps(document["clock_jumps"]);
  }
  if (document.contains("extra") && document["extra"].contains("hits")) {
    const json& extra = document["extra"];
    Subject subject(BucketOf(extra.at("rate"), extra.at("burst_total").get<int64_t>()));
    const Duration interval = Duration(milliseconds(extra["rate"]["period_ms"].get<int64_t>())) /
                              extra["rate"]["count"].get<int64_t>();
    for (int i = 0; i < extra["hits"].get<int>(); ++i) {
      const Decision decision = subject.limiter->Check("key");
      EXPECT_TRUE(decision.allowed() || decision.retry_after <= interval) << i;
      subject.clock.Advance(Duration(137'000));
    }
  }
}

// Leaky bucket as a queue. nginx's burst n lets n wait behind the first, so it is our n + 1.
Quota LeakyOf(const json& test, int64_t burst) {
  return *Quota::Queue(test.at("rate_per_s").get<int64_t>(), seconds(1), burst + 1);
}

void RunLeakyCase(const json& test) {
  SCOPED_TRACE(test.value("id", ""));
  const Duration interval = Duration(seconds(1)) / test.at("rate_per_s").get<int64_t>();
  const json rejected = test.value("rejected_at_hit", json::object());
  for (const auto& [burst, hit] : rejected.items()) {
    Subject subject(LeakyOf(test, std::atoll(burst.substr(burst.rfind(' ') + 1).c_str())));
    int first_rejected = 1;
    while (subject.limiter->Check("key").allowed()) {
      ++first_rejected;
    }
    EXPECT_EQ(first_rejected, hit.get<int>()) << burst;
  }
  if (test.contains("do")) {
    Subject subject(LeakyOf(test, test.at("burst").get<int64_t>()));
    for (int i = std::atoi(test["do"].get<std::string>().c_str()); i > 0; --i) {
      const Decision decision = subject.limiter->Check("key");
      EXPECT_TRUE(decision.allowed());
      subject.clock.Advance(decision.start_after());
    }
    const double elapsed = std::chrono::duration<double>(subject.clock.WallNow() - Noon()).count();
    EXPECT_GE(elapsed, test["expect_elapsed_s"][0].get<double>());
    EXPECT_LE(elapsed, test["expect_elapsed_s"][1].get<double>());
  }
  if (!test.contains("ops")) {
    return;
  }
  Subject subject(LeakyOf(test, test.at("burst").get<int64_t>()));
  for (const json& op : test["ops"]) {
    SCOPED_TRACE(op.dump());
    subject.GoTo(op);
    Receipt receipt;
    const ChargeMode mode = op.value("dry_run", false) ? ChargeMode::kDryRun : ChargeMode::kAdmit;
    const Decision decision =
        subject.limiter->Check(KeyOf(op), CheckOptions{.mode = mode, .receipt = &receipt});
    EXPECT_EQ(decision.allowed(), !op.value("rejected", false));
    const bool undone = op.value("hit_then_uncommit", false);
    if (Has(op, "delay_s")) {
      const auto delay = std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(op["delay_s"].get<double>()));
      // Their uncommit leaves the first hit's place taken; ours takes back all of it.
      if (undone) {
        EXPECT_LE(decision.start_after(), delay);
      } else {
        EXPECT_EQ(decision.start_after(), delay);
      }
    }
    if (Has(op, "excess")) {
      EXPECT_EQ(decision.start_after() / interval, op["excess"].get<int64_t>());
    }
    if (undone) {
      EXPECT_EQ(subject.limiter->GiveBack(receipt), 1U);
      EXPECT_EQ(subject.limiter->Check(KeyOf(op), 0).reset_after, Duration::zero());
    }
  }
}

void RunCountCase(const json& test, WindowStart start) {
  SCOPED_TRACE(test.value("id", ""));
  const seconds window(test.at("window_s").get<int64_t>());
  Subject subject(*Quota::FixedWindow(test.at("limit").get<int64_t>(), window, start));
  for (const json& op : test.at("ops")) {
    SCOPED_TRACE(op.dump());
    subject.GoTo(op);
    Receipt receipt;
    const ChargeMode mode = op.value("dry_run", false) ? ChargeMode::kDryRun : ChargeMode::kAdmit;
    const Decision decision =
        subject.limiter->Check(KeyOf(op), CheckOptions{.mode = mode, .receipt = &receipt});
    EXPECT_EQ(decision.allowed(), !op.value("rejected", false));
    if (Has(op, "remaining")) {
      EXPECT_EQ(decision.remaining, op["remaining"].get<uint32_t>());
    }
    if (op.value("hit_then_uncommit", false)) {
      EXPECT_EQ(subject.limiter->GiveBack(receipt), 1U);
    }
  }
}

void RunLeakyDocument(const json& document) {
  SCOPED_TRACE(document.value("file", "our own"));
  for (const json& test : document.value("leaky", json::array())) {
    RunLeakyCase(test);
  }
  for (const json& test : document.value("count", json::array())) {
    RunCountCase(test, WindowStart::kFirstHit);
    RunCountCase(test, WindowStart::kEpoch);  // every case starts at a window's edge
  }
}

// redis-cell cuts seconds off, then adds one if there are whole milliseconds left over.
int64_t CellSeconds(Duration duration) {
  const int64_t ms = duration / milliseconds(1);
  return ms / 1000 + (ms % 1000 > 0 ? 1 : 0);
}

// redis-cell's interval is the period over the count in whole nanoseconds, rounded down.
Result<Quota> CellQuota(const json& args) {
  const auto number = [&](size_t i) {
    return std::strtoll(args.at(i).get<std::string>().c_str(), nullptr, 10);
  };
  const int64_t count = number(1);
  const Duration period = seconds(number(2));
  const Duration interval = count > 0 ? period / count : Duration::zero();
  return interval < Quota::kMinWindow ? Quota::TokenBucket(count, period, number(0) + 1)
                                      : Quota::TokenBucket(1, interval, number(0) + 1);
}

std::vector<int64_t> CellReply(const Decision& decision) {
  return {decision.allowed() ? 0 : 1, decision.limit, decision.remaining,
          decision.outcome == Outcome::kDenied ? CellSeconds(decision.retry_after) : -1,
          CellSeconds(decision.reset_after)};
}

void RunCellCase(const json& test) {
  SCOPED_TRACE(test.value("name", ""));
  const json& ops = test.at("ops");
  const auto quota = CellQuota(ops.at(0).at("args"));
  ASSERT_TRUE(quota.ok()) << quota.error().message;
  Subject subject(*quota, Slots::kWide);
  size_t row = 0;
  for (const json& op : ops) {
    SCOPED_TRACE("row " + std::to_string(row++) + " " + op.dump());
    const json& args = op.at("args");
    const auto same = CellQuota(args);
    if (!op.at("reply").is_array() || !same.ok() || !(*same == *quota)) {
      continue;  // errors, and quotas that change under a key, are the server's to answer
    }
    subject.GoTo(op);
    const int64_t quantity =
        args.size() > 3 ? std::strtoll(args[3].get<std::string>().c_str(), nullptr, 10) : 1;
    const std::vector<int64_t> reply = CellReply(subject.limiter->Check("key", quantity));
    if (op.contains("exact_gcra_reply") &&
        reply == op["exact_gcra_reply"].get<std::vector<int64_t>>()) {
      continue;
    }
    EXPECT_EQ(reply, op["reply"].get<std::vector<int64_t>>());
  }
}

void RunCellDocument(const json& document) {
  SCOPED_TRACE(document.value("file", "our own"));
  for (const json& test : document.at("cases")) {
    if (!test.contains("quirk")) {
      RunCellCase(test);
    }
  }
  for (const json& error : document.value("errors", json::array())) {
    const json& args = error.at("args");  // with the key in front
    const auto is_number = [](const json& arg) {
      const auto text = arg.get<std::string>();
      return text.find_first_not_of(" 0123456789") == std::string::npos;
    };
    if (args.size() >= 4 && !(is_number(args[1]) && is_number(args[2]) && is_number(args[3]))) {
      EXPECT_FALSE(Quota::Parse(args[2].get<std::string>() + "/" + args[3].get<std::string>() +
                                "s burst " + args[1].get<std::string>())
                       .ok())
          << args.dump();
    }
  }
}

// envoyproxy/ratelimit counts always, over the limit too, in windows aligned to the epoch.
void RunCounterCase(const json& test) {
  SCOPED_TRACE(test.dump());
  static const std::map<std::string, int64_t> kUnits = {
      {"SECOND", 1},     {"MINUTE", 60},       {"HOUR", 3600},      {"DAY", 86'400},
      {"WEEK", 604'800}, {"MONTH", 2'592'000}, {"YEAR", 31'536'000}};
  const auto unit = kUnits.find(test.value("unit", ""));
  if (unit == kUnits.end() || test.value("limit", int64_t{0}) <= 0) {
    return;
  }
  ManualClock clock(WallTime(seconds(test.at("now_unix").get<int64_t>())));
  Limiter limiter =
      *Limiter::Create(*Quota::FixedWindow(test["limit"].get<int64_t>(), seconds(unit->second)),
                       testing::SmallStore(clock));
  const auto count = [&](int64_t hits) {
    return limiter.Check("key", CheckOptions{.cost = hits, .mode = ChargeMode::kCountAlways});
  };
  count(test.at("count_before").get<int64_t>());
  const int64_t hits = test.at("hits").get<int64_t>();
  const Decision decision = count(hits);
  const json& expect = test.at("expect");
  if (Has(expect, "code") && hits != 0 && !test.value("shadow_mode", false)) {
    EXPECT_EQ(decision.allowed(), expect["code"] == "OK");
  }
  if (Has(expect, "limit_remaining")) {
    EXPECT_EQ(decision.remaining, expect["limit_remaining"].get<uint32_t>());
  }
  if (Has(expect, "duration_until_reset_s") && test.at("count_after").get<int64_t>() != 0) {
    EXPECT_EQ(decision.reset_after, seconds(expect["duration_until_reset_s"].get<int64_t>()));
  }
}

constexpr const char* kOwnGcra = R"({
  "rate": {"count": 10, "period_ms": 1000}, "burst_total": 10,
  "cases": [
    {"id": "drain and refill", "rate": {"count": 2, "period_ms": 1000}, "burst_total": 3, "ops": [
      {"t_ms": 0, "quantity": 4, "allowed": false, "limit": 3, "remaining": 3,
       "reset_after_ms": 0, "retry_after_ms": -1},
      {"t_ms": 0, "quantity": 2, "allowed": true, "remaining": 1, "reset_after_ms": 1000,
       "retry_after_ms": -1},
      {"t_ms": 0, "quantity": 2, "allowed": false, "remaining": 1, "reset_after_ms": 1000,
       "retry_after_ms": 500},
      {"t_ms": 499, "quantity": 2, "allowed": false, "remaining": 1, "retry_after_ms": 1},
      {"t_ms": 500, "quantity": 2, "allowed": true, "remaining": 0, "reset_after_ms": 1500},
      {"t_ms": 500, "quantity": 0, "allowed": true, "remaining": 0, "retry_after_ms": -1},
      {"t_ms": 2000, "quantity": 3, "allowed": true, "remaining": 0, "reset_after_ms": 1500}]},
    {"id": "steps", "steps": [
      {"n": 3, "allowed": 3, "remaining": 7, "retry_after_ms": -1, "reset_after_ms": 300},
      {"at_most": 100, "allowed": 7, "remaining": 0, "reset_after_ms": 1000},
      {"at_most": 1, "allowed": 0, "remaining": 0, "retry_after_ms": 100},
      {"reset_key": true},
      {"n": 0, "allowed": 0, "remaining": 10, "reset_after_ms": 0}]}],
  "rate_periods": [{"count": 12, "per_s": 60, "emission_ms": 5000}],
  "errors": [{"rate": {"count": 0, "period_ms": 1000}}, {"burst": 0}, {"quantity": -1},
             {"quantity": 9223372036854775807}, {"count": 9223372036854775807}],
  "clock_jumps": {"burst": 2, "count": 1, "period_s": 1, "times_s": [0, -100, 5]},
  "extra": {"rate": {"count": 4, "period_ms": 2}, "burst_total": 2, "hits": 100}})";

constexpr const char* kOwnLeaky = R"({
  "leaky": [
    {"id": "delays", "rate_per_s": 4, "burst": 2, "ops": [
      {"t_ms": 0, "delay_s": 0, "excess": 0}, {"t_ms": 0, "delay_s": 0.25, "excess": 1},
      {"t_ms": 0, "dry_run": true, "delay_s": 0.5}, {"t_ms": 0, "delay_s": 0.5, "excess": 2},
      {"t_ms": 0, "rejected": true}, {"t_ms": 0, "key": "other", "delay_s": 0},
      {"t_ms": 250, "delay_s": 0.5}]},
    {"id": "where rejection starts", "rate_per_s": 4, "rejected_at_hit": {"burst 0": 2,
      "burst 5": 7}},
    {"id": "undone", "rate_per_s": 4, "burst": 0, "ops": [
      {"hit_then_uncommit": true, "delay_s": 0}, {"hit_then_uncommit": true, "delay_s": 0}]},
    {"id": "paced", "rate_per_s": 10, "burst": 5, "do": "20 hits, each after its delay",
     "expect_elapsed_s": [1.8999, 1.9001]}],
  "count": [
    {"id": "edge", "limit": 2, "window_s": 10, "ops": [
      {"t_ms": 0, "remaining": 1}, {"t_ms": 9999, "remaining": 0}, {"t_ms": 9999, "rejected": true},
      {"t_ms": 10000, "remaining": 1}, {"dry_run": true, "remaining": 0},
      {"hit_then_uncommit": true, "remaining": 0}, {"remaining": 0}]}]})";

constexpr const char* kOwnCell = R"({
  "cases": [
    {"name": "three a second", "ops": [
      {"t_ns": 0, "args": ["1", "3", "1"], "reply": [0, 2, 1, -1, 1]},
      {"t_ns": 0, "args": ["1", "3", "1", "2"], "reply": [1, 2, 1, 1, 1]},
      {"t_ns": 0, "args": ["1", "3", "1", "3"], "reply": [1, 2, 1, -1, 1]},
      {"t_ns": 0, "args": ["1", "3", "1", "1"], "reply": [0, 2, 0, -1, 1]},
      {"t_ns": 333333332, "args": ["1", "3", "1", "1"], "reply": [1, 2, 0, 0, 1]},
      {"t_ns": 333333333, "args": ["1", "3", "1", "1"], "reply": [0, 2, 0, -1, 1]},
      {"t_ns": 333333333, "args": ["1", "3", "1", "0"], "reply": [0, 2, 0, -1, 1]},
      {"t_ns": 999999999, "args": ["1", "3", "1", "0"], "reply": [0, 2, 2, -1, 0]}]}],
  "errors": [{"args": ["key", "1", "one", "1"]}]})";

constexpr const char* kOwnCounter = R"({"cases": [
  {"limit": 3, "unit": "MINUTE", "now_unix": 61, "hits": 2, "count_before": 1, "count_after": 3,
   "expect": {"code": "OK", "limit_remaining": 0, "duration_until_reset_s": 59}},
  {"limit": 3, "unit": "HOUR", "now_unix": 7199, "hits": 1, "count_before": 9, "count_after": 10,
   "expect": {"code": "OVER_LIMIT", "limit_remaining": 0, "duration_until_reset_s": 1}}]})";

TEST(Vectors, GcraOurOwn) {
  RunGcraDocument(json::parse(kOwnGcra));
}

TEST(Vectors, GcraOfOthers) {
  for (const json& document : Documents("gcra_", "GCRA vectors")) {
    RunGcraDocument(document);
  }
}

TEST(Vectors, LeakyBucketAndFixedWindowOurOwn) {
  RunLeakyDocument(json::parse(kOwnLeaky));
}

TEST(Vectors, LeakyBucketAndFixedWindowOfOthers) {
  for (const json& document : Documents("leaky_", "leaky bucket and fixed window vectors")) {
    RunLeakyDocument(document);
  }
}

TEST(Vectors, ThrottleRepliesOurOwn) {
  RunCellDocument(json::parse(kOwnCell));
}

TEST(Vectors, ThrottleRepliesOfRedisCell) {
  for (const json& document : Documents("cl_throttle", "CL.THROTTLE vectors")) {
    RunCellDocument(document);
  }
}

TEST(Vectors, FixedWindowCountersOurOwn) {
  const json own = json::parse(kOwnCounter);
  for (const json& test : own["cases"]) {
    RunCounterCase(test);
  }
}

TEST(Vectors, FixedWindowCountersOfEnvoyRatelimit) {
  for (const json& document : Documents("envoy_counter", "fixed window counter vectors")) {
    for (const json& test : document.at("cases")) {
      RunCounterCase(test);
    }
  }
}

}  // namespace
}  // namespace weir
