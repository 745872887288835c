// Leaky buckets that delay and fixed windows as others test them, held against ours; and cases of
// our own in the same format, which run whether the outside files are there or not.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "tests/conformance/vector_documents.h"

namespace weir::vectors {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Noon;

// Leaky bucket as a queue. nginx's burst n lets n wait behind the first, so it is our n + 1. A rate
// of less than one a second, or of a fraction, is a whole number in a longer time.
Quota LeakyOf(const json& test, int64_t burst) {
  const double rate = test.at("rate_per_s").get<double>();
  int64_t window_s = 1;
  while (window_s < 3600 && std::abs(rate * static_cast<double>(window_s) -
                                     std::round(rate * static_cast<double>(window_s))) > 1e-9) {
    ++window_s;
  }
  return *Quota::Queue(std::llround(rate * static_cast<double>(window_s)), seconds(window_s),
                       burst + 1);
}

ChargeMode ModeOf(const json& op) {
  return op.value("dry_run", false) ? ChargeMode::kDryRun : ChargeMode::kAdmit;
}

void RunRejectedAt(const json& test) {
  const json rejected = test.value("rejected_at_hit", json::object());
  for (const auto& [burst, hit] : rejected.items()) {
    Subject subject(LeakyOf(test, std::atoll(burst.substr(burst.rfind(' ') + 1).c_str())));
    int first_rejected = 1;
    while (subject.limiter->Check("key").allowed()) {
      ++first_rejected;
    }
    EXPECT_EQ(first_rejected, hit.get<int>()) << burst;
  }
}

// "80 hits, sleeping the returned delay after each"
void RunPaced(const json& test) {
  Subject subject(LeakyOf(test, test.at("burst").get<int64_t>()));
  for (int i = std::atoi(test.at("do").get<std::string>().c_str()); i > 0; --i) {
    const Decision decision = subject.limiter->Check("key");
    EXPECT_TRUE(decision.allowed());
    subject.clock.Advance(decision.start_after());
  }
  const double elapsed = std::chrono::duration<double>(subject.clock.WallNow() - Noon()).count();
  EXPECT_GE(elapsed, test.at("expect_elapsed_s")[0].get<double>());
  EXPECT_LE(elapsed, test.at("expect_elapsed_s")[1].get<double>());
}

void RunLeakyOps(const json& test) {
  const Quota quota = LeakyOf(test, test.at("burst").get<int64_t>());
  Subject subject(quota);
  for (const json& op : test.at("ops")) {
    SCOPED_TRACE(op.dump());
    subject.GoTo(op);
    Receipt receipt;
    const Decision decision = subject.limiter->Check(
        KeyOf(op), CheckOptions{.cost = UnitsOf(op), .mode = ModeOf(op), .receipt = &receipt});
    EXPECT_EQ(decision.allowed(), !op.value("rejected", false));
    const bool undone = op.value("hit_then_uncommit", false);
    Duration delay{};
    if (ReadDuration(op, "delay", delay)) {
      // Times are written to a few decimals, and the original counts milliseconds. Their uncommit
      // leaves the first hit's place taken; ours takes back all of it.
      const Duration late = decision.start_after() - delay;
      EXPECT_LT(late, milliseconds(1)) << decision.start_after().count();
      EXPECT_TRUE(undone || late > -milliseconds(1)) << decision.start_after().count();
    }
    if (Has(op, "excess")) {  // in units, counted in thousandths
      const double units = static_cast<double>(decision.start_after().count()) * quota.limit() /
                           static_cast<double>(quota.window().count());
      EXPECT_NEAR(units, op["excess"].get<double>(), 0.001);
    }
    if (undone) {
      EXPECT_EQ(subject.limiter->GiveBack(receipt), 1U);
      EXPECT_EQ(subject.limiter->Check(KeyOf(op), 0).reset_after, Duration::zero());
    }
  }
}

void RunLeakyCase(const Case& one) {
  SCOPED_TRACE(NameOf(one));
  RunRejectedAt(one.test);
  if (one.test.contains("do")) {
    RunPaced(one.test);
  }
  if (one.test.contains("ops")) {
    RunLeakyOps(one.test);
  }
}

// Every case starts where a window does, whether windows begin at the epoch or at the first hit.
void RunCountCase(const Case& one, WindowStart start) {
  SCOPED_TRACE(NameOf(one) + (start == WindowStart::kEpoch ? " epoch" : " first hit"));
  const json& test = one.test;
  Duration window{};
  ASSERT_TRUE(ReadDuration(test, "window", window));
  const Duration noon = Noon().time_since_epoch();
  Subject subject(*Quota::FixedWindow(test.at("limit").get<int64_t>(), window, start), -1,
                  WallTime(noon - noon % window));
  for (const json& op : test.at("ops")) {
    SCOPED_TRACE(op.dump());
    subject.GoTo(op);
    Receipt receipt;
    const Decision decision = subject.limiter->Check(
        KeyOf(op), CheckOptions{.cost = UnitsOf(op), .mode = ModeOf(op), .receipt = &receipt});
    EXPECT_EQ(decision.allowed(), !op.value("rejected", false));
    if (Has(op, "remaining")) {
      EXPECT_EQ(decision.remaining, op["remaining"].get<uint32_t>());
    }
    if (op.value("hit_then_uncommit", false)) {
      EXPECT_EQ(subject.limiter->GiveBack(receipt), decision.charged);
      EXPECT_GT(decision.charged, 0U);
    }
  }
}

// envoyproxy/ratelimit counts always, over the limit too, in windows aligned to the epoch. What is
// its own, the code of a peek and of shadow mode, is in envoy_vectors_test.
void RunCounterCase(const Case& one) {
  const json& test = one.test;
  SCOPED_TRACE(NameOf(one) + " " + test.dump());
  static const std::map<std::string, int64_t> kUnits = {
      {"SECOND", 1},     {"MINUTE", 60},       {"HOUR", 3600},      {"DAY", 86'400},
      {"WEEK", 604'800}, {"MONTH", 2'592'000}, {"YEAR", 31'536'000}};
  const auto unit = kUnits.find(test.at("unit").get<std::string>());
  ASSERT_NE(unit, kUnits.end()) << "a unit without a length";
  const auto quota = Quota::FixedWindow(test.at("limit").get<int64_t>(), seconds(unit->second));
  if (test["limit"] == 0) {
    EXPECT_FALSE(quota.ok()) << "a quota has at least 1; Envoy's 0 blocks, in envoy_vectors_test";
    return;
  }
  Subject subject(*quota, -1, WallTime(seconds(test.at("now_unix").get<int64_t>())));
  const auto count = [&](int64_t hits) {
    return subject.limiter->Check("key",
                                  CheckOptions{.cost = hits, .mode = ChargeMode::kCountAlways});
  };
  count(test.at("count_before").get<int64_t>());
  const int64_t hits = test.at("hits").get<int64_t>();
  const Decision decision = count(hits);
  const json& expect = test.at("expect");
  if (hits != 0) {
    EXPECT_EQ(decision.allowed(), test.at("count_after").get<int64_t>() <= test["limit"]);
    if (Has(expect, "code") && !test.value("shadow_mode", false)) {
      EXPECT_EQ(decision.allowed(), expect["code"] == "OK");
    }
  }
  if (Has(expect, "limit_remaining")) {
    EXPECT_EQ(decision.remaining, expect["limit_remaining"].get<uint32_t>());
  }
  Duration reset{};
  // A key that was never charged is as good as new at once.
  if (ReadDuration(expect, "duration_until_reset", reset) && test.at("count_after") != 0) {
    EXPECT_EQ(decision.reset_after, reset);
  }
}

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
     "expect_elapsed_s": [1.8999, 1.9001]},
    {"id": "three a second", "rate_per_s": 3, "burst": 5, "ops": [
      {"t_ms": 0, "delay_s": 0, "excess": 0}, {"t_ms": 0, "delay_s": 0.333, "excess": 1},
      {"t_ms": 100, "delay_s": 0.566667, "excess": 1.7},
      {"t_ms": 100, "delay_s": 0.9, "excess": 2.7}]},
    {"id": "one in two seconds", "rate_per_s": 0.5, "burst": 1, "ops": [
      {"t_ms": 0, "delay_s": 0}, {"t_ms": 500, "delay_s": 1.5, "excess": 0.75},
      {"t_ms": 500, "rejected": true}, {"t_ms": 2000, "delay_s": 2, "excess": 1}]},
    {"id": "seven a minute", "rate_per_s": 0.11666666666666667, "burst": 2, "ops": [
      {"t_ms": 0, "delay_s": 0}, {"t_ms": 1000, "delay_s": 7.5714}]}],
  "count": [
    {"id": "edge", "limit": 2, "window_s": 10, "ops": [
      {"t_ms": 0, "remaining": 1}, {"t_ms": 9999, "remaining": 0}, {"t_ms": 9999, "rejected": true},
      {"t_ms": 10000, "remaining": 1}, {"dry_run": true, "remaining": 0},
      {"hit_then_uncommit": true, "remaining": 0}, {"remaining": 0}]},
    {"id": "a window that noon is no multiple of", "limit": 3, "window_s": 7, "ops": [
      {"t_ms": 0, "remaining": 2}, {"t_ms": 6999, "quantity": 2, "remaining": 0},
      {"t_ms": 6999, "rejected": true}, {"t_ms": 7000, "remaining": 2},
      {"t_ms": 13999, "quantity": 3, "rejected": true, "remaining": 2}]},
    {"id": "a week", "limit": 1000, "window_s": 604800, "ops": [
      {"t_ms": 0, "quantity": 999, "remaining": 1}, {"t_s": 604799, "remaining": 0},
      {"t_s": 604799, "rejected": true}, {"t_s": 604800, "remaining": 999}]},
    {"id": "thirteen tenths of a second", "limit": 1, "window_s": 1.3, "ops": [
      {"t_ms": 0, "remaining": 0}, {"t_ms": 1299, "rejected": true},
      {"t_ms": 1300, "remaining": 0}]}]})";

constexpr const char* kOwnCounter = R"({"cases": [
  {"limit": 3, "unit": "MINUTE", "now_unix": 61, "hits": 2, "count_before": 1, "count_after": 3,
   "expect": {"code": "OK", "limit_remaining": 0, "duration_until_reset_s": 59}},
  {"limit": 3, "unit": "HOUR", "now_unix": 7199, "hits": 1, "count_before": 9, "count_after": 10,
   "expect": {"code": "OVER_LIMIT", "limit_remaining": 0, "duration_until_reset_s": 1}},
  {"limit": 5, "unit": "WEEK", "now_unix": 1700000000, "hits": 3, "count_before": 2,
   "count_after": 5,
   "expect": {"code": "OK", "limit_remaining": 0, "duration_until_reset_s": 92800}},
  {"limit": 7, "unit": "MONTH", "now_unix": 1700000000, "hits": 0, "count_before": 4,
   "count_after": 4,
   "expect": {"code": "OK", "limit_remaining": 3, "duration_until_reset_s": 352000}},
  {"limit": 7, "unit": "YEAR", "now_unix": 1700000000, "hits": 1, "count_before": 7,
   "count_after": 8, "shadow_mode": true,
   "expect": {"code": "OK", "limit_remaining": 0, "duration_until_reset_s": 2944000}},
  {"limit": 0, "unit": "DAY", "now_unix": 61, "hits": 1, "count_before": 0, "count_after": 1,
   "expect": {"code": "OVER_LIMIT", "limit_remaining": 0, "duration_until_reset_s": 86339}}]})";

TEST(LeakyVectors, OurOwn) {
  for (const Case& one : CasesIn(json::parse(kOwnLeaky), Kind::kLeaky)) {
    RunLeakyCase(one);
  }
}

TEST(LeakyVectors, OfOthers) {
  for (const Case& one : OutsideCases(Kind::kLeaky, "leaky bucket vectors")) {
    RunLeakyCase(one);
  }
}

TEST(FixedWindowVectors, OurOwn) {
  for (const Case& one : CasesIn(json::parse(kOwnLeaky), Kind::kCount)) {
    RunCountCase(one, WindowStart::kFirstHit);
    RunCountCase(one, WindowStart::kEpoch);
  }
}

TEST(FixedWindowVectors, OfOthers) {
  for (const Case& one : OutsideCases(Kind::kCount, "fixed window vectors")) {
    RunCountCase(one, WindowStart::kFirstHit);
    RunCountCase(one, WindowStart::kEpoch);
  }
}

TEST(CounterVectors, OurOwn) {
  for (const Case& one : CasesIn(json::parse(kOwnCounter), Kind::kCounter)) {
    RunCounterCase(one);
  }
}

TEST(CounterVectors, OfEnvoyRatelimit) {
  for (const Case& one : OutsideCases(Kind::kCounter, "fixed window counter vectors")) {
    RunCounterCase(one);
  }
}

}  // namespace
}  // namespace weir::vectors
