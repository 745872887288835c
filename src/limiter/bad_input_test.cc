// Bad input, case by case: an error that names the field and what is allowed, and nothing changes.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "testing/twin.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::Noon;

void ExpectNamed(const Error& error, std::string_view field, std::string_view allowed) {
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_NE(error.message.find(std::string(field) + ":"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find(allowed), std::string::npos) << error.message;
}

TEST(BadInput, QuotasThatCannotBe) {
  struct Case {
    QuotaSpec spec;
    std::string_view field;
    std::string_view allowed;
  };
  const Case cases[] = {
      {{.algorithm = Algorithm::kTokenBucket, .limit = 0, .window = seconds(1)}, "limit", "1"},
      {{.algorithm = Algorithm::kTokenBucket, .limit = -5, .window = seconds(1)}, "limit", "1"},
      {{.algorithm = Algorithm::kFixedWindow, .limit = Quota::kMaxLimit + 1, .window = seconds(1)},
       "limit",
       "4294967295"},
      {{.algorithm = Algorithm::kSlidingWindow, .limit = 1, .window = Duration(999)},
       "window",
       "1us"},
      {{.algorithm = Algorithm::kSlidingWindow, .limit = 1, .window = Quota::kMaxWindow * 2},
       "window",
       "3653d"},
      {{.algorithm = Algorithm::kTokenBucket, .limit = 1, .window = hours(24 * 365), .burst = 101},
       "burst",
       "100"},
      {{.algorithm = Algorithm::kTokenBucket, .limit = 1, .window = seconds(1), .burst = -1},
       "burst",
       "1"},
      {{.algorithm = Algorithm::kMinGap, .limit = 1, .window = Duration(0)}, "gap", "1us"},
      {{.algorithm = Algorithm::kCalendar, .limit = 1, .time_zone = "Mars/Olympus"},
       "time_zone",
       "Mars/Olympus"},
  };
  for (const Case& c : cases) {
    const auto quota = Quota::Create(c.spec);
    ASSERT_FALSE(quota.ok()) << c.field;
    ExpectNamed(quota.error(), c.field, c.allowed);
  }
}

TEST(BadInput, QuotaTextThatCannotBe) {
  struct Case {
    std::string_view text;
    std::string_view field;
    std::string_view allowed;
  };
  for (const Case& c :
       {Case{"0/s", "limit", "the least is 1"}, Case{"-3/s", "limit", "the least is 1"},
        Case{"99999999999/s", "limit", "16777215"}, Case{"10/fortnight", "unit", "min"},
        Case{"10/0s", "window", "1us"}, Case{"10/s burst 0", "burst", "1"}}) {
    const auto quota = Quota::Parse(c.text);
    ASSERT_FALSE(quota.ok()) << c.text;
    ExpectNamed(quota.error(), c.field, c.allowed);
  }
}

struct BadCall {
  const char* name;
  std::string key;
  Cost cost;
  Duration skew;
  Problem problem;
  std::string_view field;
  std::string_view allowed;
};

std::vector<BadCall> BadCalls() {
  return {
      {"empty key", "", 1, {}, Problem::kKeyEmpty, "key:", "1 to 65535 bytes"},
      {"64 KiB key",
       std::string(65536, 'k'),
       1,
       {},
       Problem::kKeyTooLong,
       "key:",
       "1 to 65535 bytes"},
      {"key with NUL", std::string("a\0b", 3), 1, {}, Problem::kKeyHasNul, "key:", "NUL"},
      {"long key with NUL",
       std::string(100, 'k') + std::string(1, '\0'),
       1,
       {},
       Problem::kKeyHasNul,
       "key:",
       "NUL"},
      // Keys of 17 to 32 bytes take a way of their own.
      {"usual key with NUL",
       std::string(19, 'k') + std::string(1, '\0'),
       1,
       {},
       Problem::kKeyHasNul,
       "key:",
       "NUL"},
      {"usual key, cost over burst",
       std::string(20, 'k'),
       11,
       {},
       Problem::kCostAboveBurst,
       "cost:",
       "limit"},
      {"usual key, now ahead", std::string(20, 'k'), 1, seconds(10), Problem::kNowTooFar,
       "now:", "max_skew"},
      {"cost over burst", "key", 11, {}, Problem::kCostAboveBurst, "cost:", "limit"},
      {"cost 2^32 - 1", "key", 4294967295U, {}, Problem::kCostAboveBurst, "cost:", "limit"},
      {"cost 2^32", "key", Cost::kMax, {}, Problem::kCostAboveBurst, "cost:", "limit"},
      {"cost beyond 2^32",
       "key",
       Cost::kMax + 1,
       {},
       Problem::kCostTooLarge,
       "cost:",
       "4294967296"},
      {"negative cost", "key", -1, {}, Problem::kCostTooLarge, "cost:", "0 to"},
      {"now ahead", "key", 1, seconds(10), Problem::kNowTooFar, "now:", "max_skew"},
      {"now behind", "key", 1, -seconds(10), Problem::kNowTooFar, "now:", "max_skew"},
      {"now a century ahead", "key", 1, hours(24 * 36525), Problem::kNowTooFar, "now:", "max_skew"},
  };
}

void ExpectRefused(const Decision& decision, const BadCall& bad, uint32_t limit) {
  EXPECT_EQ(decision.outcome, Outcome::kRefused);
  EXPECT_EQ(decision.problem, bad.problem);
  EXPECT_EQ(decision.charged, 0U);
  EXPECT_EQ(decision.limit, limit);
  EXPECT_EQ(decision.retry_after, Duration::zero()) << "not \"retry later\"";
}

TEST(BadInput, CallsThatCannotBeAnsweredChangeNothing) {
  for (const char* text : {"10/s burst 10", "7/s burst 10", "10/min", "10/min fixed-window",
                           "10/min fixed-window from first-hit", "10/month"}) {
    for (const BadCall& bad : BadCalls()) {
      SCOPED_TRACE(std::string(text) + ", " + bad.name);
      ManualClock clock(Noon());
      Limiter limiter = *Limiter::Create(*Quota::Parse(text), testing::SmallStore(clock));
      ASSERT_TRUE(limiter.Check("key", 3).allowed());
      const Timestamp now = limiter.Now() + bad.skew;
      ExpectRefused(limiter.Check(bad.key, now, bad.cost), bad, 10);
      if (bad.skew == Duration::zero()) {
        ExpectRefused(limiter.Check(bad.key, bad.cost), bad, 10);
      }
      Receipt receipt{.hash = 1, .mark = 2, .refunds = 3, .charged = 4, .binding = 5};
      ExpectRefused(
          limiter.Check(bad.key, CheckOptions{.cost = bad.cost, .now = now, .receipt = &receipt}),
          bad, 10);
      EXPECT_EQ(receipt.charged, 0U);
      EXPECT_EQ(limiter.GiveBack(receipt), 0U);
      const std::string_view keys[] = {"key", bad.key};
      Decision decisions[2];
      if (bad.cost.units == 1) {
        limiter.CheckMany(std::span(keys).subspan(1), now, decisions);
      } else {
        limiter.CheckMany(std::span(keys).subspan(1), now, decisions, bad.cost);
      }
      ExpectRefused(decisions[0], bad, 10);
      EXPECT_EQ(limiter.Check("key", 0).remaining, 7U) << "nothing changed";
      const std::string_view told = Explain(bad.problem);
      EXPECT_EQ(told.substr(0, bad.field.size()), bad.field);
      EXPECT_NE(told.find(bad.allowed), std::string_view::npos) << told;
      const StoreStats stats = limiter.store()->Stats();
      EXPECT_EQ(stats.denials, 0U);
      EXPECT_GE(stats.refusals, 3U);
    }
  }
}

TEST(BadInput, EveryByteIsAllowedInABinaryKey) {
  ManualClock clock(Noon());
  MemoryOptions options = testing::SmallStore(clock);
  options.keys = KeyPolicy::kBinary;
  Limiter limiter = *Limiter::Create(*Quota::Parse("1/min burst 1"), options);
  EXPECT_TRUE(limiter.Check(std::string_view("a\0b", 3)).allowed());
  EXPECT_TRUE(limiter.Check(std::string_view("a\0c", 3)).allowed()) << "another key";
  EXPECT_FALSE(limiter.Check(std::string_view("a\0b", 3)).allowed());
}

TEST(BadInput, TheLongestKeyIsAllowed) {
  ManualClock clock(Noon());
  Limiter limiter = *Limiter::Create(*Quota::Parse("1/min burst 1"), testing::SmallStore(clock));
  EXPECT_TRUE(limiter.Check(std::string(65535, 'k')).allowed());
  EXPECT_FALSE(limiter.Check(std::string(65535, 'k')).allowed());
  EXPECT_TRUE(limiter.Check(std::string(65534, 'k')).allowed());
}

TEST(BadInput, AGapTakesAnyCostUpToTheLargest) {
  ManualClock clock(Noon());
  Limiter limiter = *Limiter::Create(*Quota::Parse("gap 2s"), testing::SmallStore(clock));
  EXPECT_EQ(limiter.Check("key", -1).problem, Problem::kCostTooLarge);
  Receipt receipt;
  const Decision decision =
      limiter.Check("key", CheckOptions{.cost = Cost::kMax, .receipt = &receipt});
  EXPECT_TRUE(decision.allowed());
  EXPECT_NE(decision.charged, 0U);
  EXPECT_NE(receipt.charged, 0U);
  EXPECT_FALSE(limiter.Check("key").allowed());
}

TEST(BadInput, StoresThatCannotBe) {
  ManualClock clock(Noon());
  const auto made = [&](auto change) {
    MemoryOptions options = testing::SmallStore(clock);
    change(options);
    return MemoryStore::Create(options);
  };
  const auto small = made([](MemoryOptions& o) { o.budget_bytes = 65535; });
  ASSERT_FALSE(small.ok());
  ExpectNamed(small.error(), "budget_bytes", "65536");
  const auto none = made([](MemoryOptions& o) { o.budget_bytes = 0; });
  ASSERT_FALSE(none.ok());
  ExpectNamed(none.error(), "budget_bytes", "65536");
  const auto share = made([](MemoryOptions& o) { o.wide_percent = 101; });
  ASSERT_FALSE(share.ok());
  ExpectNamed(share.error(), "wide_percent", "100");
  const auto skew = made([](MemoryOptions& o) { o.max_skew = Duration::zero(); });
  ASSERT_FALSE(skew.ok());
  ExpectNamed(skew.error(), "max_skew", "1000000 ns");
  EXPECT_FALSE(made([](MemoryOptions& o) { o.max_skew = hours(24); }).ok());
  EXPECT_FALSE(Limiter::Create(*Quota::Parse("1/s"), std::shared_ptr<MemoryStore>()).ok());
}

TEST(BadInput, AQuotaThatDoesNotFitTheStoreIsRefusedAndTheOldOneStays) {
  ManualClock clock(Noon());
  Limiter limiter = *Limiter::Create(*Quota::Parse("10/s burst 10"), testing::SmallStore(clock));
  ASSERT_TRUE(limiter.Check("key", 4).allowed());
  const auto updated = limiter.Update(*Quota::Parse("10/s fixed-window"));
  ASSERT_FALSE(updated.ok()) << "all of its budget went to 8-byte slots";
  ExpectNamed(updated.error(), "wide_percent", "at least 1");
  EXPECT_EQ(limiter.quota(), *Quota::Parse("10/s burst 10"));
  EXPECT_EQ(limiter.Check("key", 0).remaining, 6U);
}

}  // namespace
}  // namespace weir
