// GCRA as others test it, held against ours. Every reader goes by the format alone, so that more
// files of the same kind are more tests. Each suite also has cases of our own in the same format,
// which run whether the outside files are there or not.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/vector_documents.h"

namespace weir::vectors {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kAsNeeded = -1;  // of wide_percent: the smaller slot where it will do
constexpr int kWide = 100;     // nanoseconds whatever the quota

Duration PeriodOf(const json& rate) {
  Duration period{};
  EXPECT_TRUE(ReadDuration(rate, "period", period) || ReadDuration(rate, "per", period))
      << rate.dump();
  return period;
}

Quota BucketOf(const Case& one) {
  const json& rate = Field(one, "rate");
  return *Quota::TokenBucket(rate.at("count").get<int64_t>(), PeriodOf(rate),
                             Field(one, "burst_total").get<int64_t>());
}

// What an operation, its case or its document allows.
Duration ToleranceOf(const Case& one, const json& op, const char* own) {
  for (const json* const place : {&op, &one.test, &one.document}) {
    Duration tolerance{};
    if ((place == &op && ReadDuration(op, own, tolerance)) ||
        ReadDuration(*place, "tolerance", tolerance)) {
      return tolerance;
    }
  }
  return Duration::zero();
}

// Others round to milliseconds, up or down: without a tolerance, less than one off. An interval of
// whole milliseconds is exact to that.
void ExpectNear(Duration actual, Duration expected, Duration tolerance, const char* what) {
  const Duration off = std::chrono::abs(actual - expected);
  EXPECT_TRUE(off <= tolerance || off < milliseconds(1))
      << what << " is " << actual.count() << " ns, expected " << expected.count() << " ns";
}

void ExpectWaits(const Case& one, const json& op, const Decision& decision, int64_t units) {
  Duration expected{};
  if (ReadDuration(op, "reset_after", expected)) {
    ExpectNear(decision.reset_after, expected, ToleranceOf(one, op, "reset_tol"), "reset_after");
  }
  // Above the burst others tell how long it would take, we refuse; nothing else is refused.
  EXPECT_EQ(decision.outcome == Outcome::kRefused,
            !op.contains("at_most") && units > int64_t{decision.limit});
  if (ReadDuration(op, "retry_after", expected)) {
    if (expected < Duration::zero()) {  // none: allowed, or not for waiting
      EXPECT_NE(decision.outcome, Outcome::kDenied);
    } else if (decision.outcome != Outcome::kRefused) {
      ExpectNear(decision.retry_after, expected, ToleranceOf(one, op, "retry_tol"), "retry_after");
    }
  }
  if (op.value("retry_after_positive", false) && decision.outcome != Outcome::kRefused) {
    EXPECT_EQ(decision.outcome, Outcome::kDenied);
    EXPECT_GT(decision.retry_after, Duration::zero());
  }
}

// Tables of (t, quantity) -> (allowed, limit, remaining, reset, retry).
void RunTable(const Case& one, int wide_percent) {
  Subject subject(BucketOf(one), wide_percent);
  size_t row = 0;
  for (const json& op : one.test.at("ops")) {
    SCOPED_TRACE(NameOf(one) + " row " + std::to_string(row++) + " " + op.dump());
    subject.GoTo(op);
    const Decision decision = subject.limiter->Check(KeyOf(op), UnitsOf(op));
    if (Has(op, "allowed")) {
      EXPECT_EQ(decision.allowed(), op["allowed"].get<bool>());
    }
    if (Has(op, "limit")) {
      EXPECT_EQ(decision.limit, op["limit"].get<uint32_t>());
    }
    if (Has(op, "remaining")) {
      EXPECT_EQ(decision.remaining, op["remaining"].get<uint32_t>());
    }
    ExpectWaits(one, op, decision, UnitsOf(op));
  }
}

// Steps of redis_rate: n is all or nothing, at_most takes what fits.
void RunSteps(const Case& one, int wide_percent) {
  Subject subject(BucketOf(one), wide_percent);
  for (const json& step : one.test.at("steps")) {
    SCOPED_TRACE(NameOf(one) + " " + step.dump());
    subject.GoTo(step);
    if (step.value("reset_key", false)) {
      EXPECT_NE(subject.limiter->Reset(KeyOf(step)), ResetOutcome::kRefused);
      continue;
    }
    const Decision decision =
        step.contains("at_most")
            ? subject.limiter->TakeUpTo(KeyOf(step), step["at_most"].get<int64_t>())
            : subject.limiter->Check(KeyOf(step), UnitsOf(step));
    if (Has(step, "allowed")) {
      EXPECT_EQ(decision.charged, step["allowed"].get<uint32_t>());
    }
    if (Has(step, "remaining")) {
      EXPECT_EQ(decision.remaining, step["remaining"].get<uint32_t>());
    }
    ExpectWaits(one, step, decision, UnitsOf(step));
  }
}

// Impossible parameters, and those at the end of 64 bits. The commands that bring their own rate
// take all that others take (throttle_vectors_test); a quota is refused by name beyond its bounds.
void RunError(const json& error) {
  SCOPED_TRACE(error.dump());
  if (error.contains("args") || error.contains("store")) {
    return;  // of a command: throttle_vectors_test; of a store that fails: src/store/memory
  }
  const json rate = error.value("rate", error);
  Duration window = seconds(60);
  if (Has(rate, "period")) {
    window = ScaledBy(rate["period"], seconds(1));
  } else {
    ReadDuration(rate, "period", window);
  }
  const int64_t burst = error.value("burst", int64_t{10});
  // A burst of 0 means "the limit" in the struct, so it is asked for in words.
  const auto quota = burst == 0
                         ? Quota::Parse("10/min burst 0")
                         : Quota::TokenBucket(rate.value("count", int64_t{100}), window, burst);
  const std::string expect = error.value("expect", "error");
  if (!quota.ok()) {
    EXPECT_FALSE(expect.starts_with("denied")) << quota.error().message;
    const std::string& message = quota.error().message;
    EXPECT_TRUE(message.find("limit:") != std::string::npos ||
                message.find("window:") != std::string::npos ||
                message.find("burst:") != std::string::npos)
        << message;
    return;
  }
  Subject subject(*quota);
  const Decision decision = subject.limiter->Check("key", error.value("quantity", int64_t{1}));
  EXPECT_EQ(decision.allowed(), expect.starts_with("allowed"));
  if (expect.starts_with("error")) {
    EXPECT_EQ(decision.outcome, Outcome::kRefused);
  }
  if (!decision.allowed()) {
    EXPECT_EQ(subject.limiter->Check("key", 0).remaining, quota->burst()) << "nothing is charged";
  }
}

void RunClockJumps(const json& jumps) {
  Subject subject(*Quota::TokenBucket(jumps.at("count").get<int64_t>(), PeriodOf(jumps),
                                      jumps.at("burst").get<int64_t>()));
  const Timestamp start = subject.clock.Now();
  const json& times = jumps.at("times_s");
  for (size_t i = 0; i < times.size(); ++i) {
    subject.clock.SetNow(start + ScaledBy(times[i], seconds(1)));
    const Decision decision = subject.limiter->Check("key");
    EXPECT_NE(decision.outcome, Outcome::kRefused);
    if (i == 0 || i + 1 == times.size()) {
      EXPECT_TRUE(decision.allowed()) << i;
    }
  }
}

// Many hits in a row: nobody is told to wait for longer than a unit takes.
void RunHits(const json& extra) {
  const Case one{json(), extra};
  Subject subject(BucketOf(one));
  const Duration interval =
      PeriodOf(extra.at("rate")) / extra["rate"].at("count").get<int64_t>() + Duration(1);
  for (int i = 0; i < extra.at("hits").get<int>(); ++i) {
    const Decision decision = subject.limiter->Check("key");
    EXPECT_TRUE(decision.allowed() || decision.retry_after <= interval) << i;
    subject.clock.Advance(Duration(137'000));
  }
}

void RunDocument(const json& document) {
  SCOPED_TRACE(document.value("file", "our own"));
  for (const int wide_percent : {kAsNeeded, kWide}) {
    for (const Case& one : CasesIn(document, Kind::kTable)) {
      RunTable(one, wide_percent);
    }
    for (const Case& one : CasesIn(document, Kind::kSteps)) {
      RunSteps(one, wide_percent);
    }
  }
  for (const json& period : document.value("rate_periods", json::array())) {
    Subject subject(*Quota::TokenBucket(period.at("count").get<int64_t>(), PeriodOf(period), 1));
    Duration emission{};
    EXPECT_TRUE(ReadDuration(period, "emission", emission)) << period.dump();
    ExpectNear(subject.limiter->Check("key").reset_after, emission, Duration::zero(),
               "emission interval");
  }
  for (const json& error : document.value("errors", json::array())) {
    RunError(error);
  }
  if (document.contains("clock_jumps")) {
    RunClockJumps(document["clock_jumps"]);
  }
  if (document.contains("extra") && document["extra"].contains("hits")) {
    RunHits(document["extra"]);
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
  if (number(2) <= 0 || number(2) > Quota::kMaxWindow / seconds(1) || number(0) < 0 ||
      number(0) >= Quota::kMaxLimit) {
    return Error::Invalid("beyond the bounds of a quota");
  }
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

void RunCellCase(const Case& one) {
  SCOPED_TRACE(NameOf(one));
  if (one.test.contains("quirk")) {
    return;  // of that implementation only
  }
  const json& ops = one.test.at("ops");
  const auto quota = CellQuota(ops.at(0).at("args"));
  if (!quota.ok()) {
    return;  // beyond the bounds of a quota: throttle_vectors_test
  }
  Subject subject(*quota, kWide);
  size_t row = 0;
  for (const json& op : ops) {
    SCOPED_TRACE("row " + std::to_string(row++) + " " + op.dump());
    const json& args = op.at("args");
    const auto same = CellQuota(args);
    if (!op.at("reply").is_array() || !same.ok() || !(*same == *quota)) {
      continue;  // errors, and rates that change under a key: throttle_vectors_test
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
      {"n": 0, "allowed": 0, "remaining": 10, "reset_after_ms": 0},
      {"n": 10, "allowed": 10, "remaining": 0, "reset_after_ms": 1000},
      {"t_ms": 250, "n": 1, "allowed": 1, "remaining": 1, "reset_after_ms": 850},
      {"t_ms": 250, "key": "other", "n": 1, "allowed": 1, "remaining": 9}]},
    {"id": "steps at a rate of their own", "rate": {"count": 1, "period_s": 2}, "burst_total": 3,
     "steps": [
      {"n": 3, "allowed": 3, "remaining": 0, "reset_after_ms": 6000},
      {"t_s": 2, "n": 1, "allowed": 1, "remaining": 0},
      {"t_s": 3, "n": 1, "allowed": 0, "retry_after_ms": 1000},
      {"t_s": 3, "n": 9, "allowed": 0, "retry_after_ms": 15000}]},
    {"id": "seven a minute", "rate": {"count": 7, "period_ms": 60000}, "burst_total": 2, "ops": [
      {"t_ms": 0, "quantity": 1, "allowed": true, "remaining": 1, "reset_after_ms": 8571},
      {"t_ms": 0, "quantity": 1, "allowed": true, "remaining": 0, "reset_after_ms": 17143},
      {"t_ms": 8571, "quantity": 1, "allowed": false, "retry_after_ms": 1,
       "retry_after_positive": true},
      {"t_ms": 8572, "quantity": 1, "allowed": true, "remaining": 0, "reset_after_ms": 17142}]},
    {"id": "three a second", "rate": {"count": 3, "period_ms": 1000},
     "tolerance_ms": 5, "burst_total": 3, "ops": [
      {"t_ms": 0, "quantity": 3, "allowed": true, "remaining": 0, "reset_after_ms": 1004},
      {"t_ns": 333333334, "quantity": 1, "allowed": true, "reset_after_ms": 996}]},
    {"id": "a week", "rate": {"count": 13, "period_s": 604800}, "burst_total": 13, "ops": [
      {"t_ms": 0, "quantity": 13, "allowed": true, "remaining": 0, "reset_after_ms": 604800000},
      {"t_s": 46523, "quantity": 1, "allowed": false, "retry_after_ms": 77},
      {"t_s": 46524, "quantity": 1, "allowed": true, "remaining": 0}]},
    {"id": "a month of 30 days", "rate": {"count": 1000000, "period_s": 2592000},
     "burst_total": 100, "ops": [
      {"t_ms": 0, "quantity": 100, "allowed": true, "reset_after_ms": 259200},
      {"t_ms": 2592, "quantity": 1, "allowed": true, "remaining": 0, "reset_after_ms": 259200}]}],
  "rate_periods": [{"count": 12, "per_s": 60, "emission_ms": 5000},
                   {"count": 7, "per_s": 60, "emission_ms": 8571},
                   {"count": 11, "per_s": 604800, "emission_ms": 54981818}],
  "errors": [{"rate": {"count": 0, "period_ms": 1000}}, {"burst": 0}, {"quantity": -1},
             {"quantity": 9223372036854775807, "expect": "denied"},
             {"count": 9223372036854775807, "expect": "allowed, or refused by name"},
             {"count": 4294967295, "period": 1, "expect": "allowed"},
             {"burst": 4294967295, "count": 100, "period": 60, "expect": "allowed"}],
  "clock_jumps": {"burst": 2, "count": 1, "period_s": 1, "times_s": [0, -100, 5]},
  "extra": {"rate": {"count": 4, "period_ms": 2}, "burst_total": 2, "hits": 100}})";

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
      {"t_ns": 999999999, "args": ["1", "3", "1", "0"], "reply": [0, 2, 2, -1, 0]}]}]})";

TEST(GcraVectors, OurOwn) {
  RunDocument(json::parse(kOwnGcra));
}

TEST(GcraVectors, OfOthers) {
  (void)OutsideCases(Kind::kTable, "GCRA tables");
  (void)OutsideCases(Kind::kSteps, "GCRA steps");
  for (const json& document : Documents()) {
    RunDocument(document);
  }
}

TEST(CellVectors, OurOwn) {
  for (const Case& one : CasesIn(json::parse(kOwnCell), Kind::kThrottle)) {
    RunCellCase(one);
  }
}

TEST(CellVectors, OfRedisCell) {
  for (const Case& one : OutsideCases(Kind::kThrottle, "CL.THROTTLE vectors")) {
    RunCellCase(one);
  }
}

}  // namespace
}  // namespace weir::vectors
