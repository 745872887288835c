// Receipts: what is given back was paid, was still owed, and never lets more in than the law.
#include <rapidcheck.h>

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "weir/limiter.h"

#include "testing/oracle.h"
#include "testing/twin.h"

namespace weir {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::MakeOracle;
using testing::Noon;
using testing::Oracle;
using testing::Random;
using testing::SmallStore;

struct Bench {
  explicit Bench(const Quota& quota)
      : clock(Noon()), limiter(*Limiter::Create(quota, SmallStore(clock))) {}

  Decision Charge(Cost cost, Receipt& receipt, ChargeMode mode = ChargeMode::kAdmit) {
    return limiter.Check("key", CheckOptions{.cost = cost, .mode = mode, .receipt = &receipt});
  }
  Decision Peek() { return limiter.Check("key", 0); }
  [[nodiscard]] int64_t now() const { return clock.WallNow().time_since_epoch().count(); }

  ManualClock clock;
  Limiter limiter;
};

TEST(GiveBack, AtOnceRestoresTheKeyForEveryAlgorithm) {
  for (const char* text : {"10/s burst 20", "7/s burst 3", "10/s leaky-bucket", "100/min",
                           "100/min fixed-window", "100/min fixed-window from first-hit",
                           "100/min fixed-window from per-key", "gap 2s", "100/month"}) {
    SCOPED_TRACE(text);
    Bench bench(*Quota::Parse(text));
    Receipt receipt;
    const Decision before = bench.Peek();
    ASSERT_TRUE(bench.Charge(1, receipt).allowed());
    EXPECT_EQ(receipt.charged, 1U);
    EXPECT_LT(bench.Peek().remaining, before.remaining);
    EXPECT_EQ(bench.limiter.GiveBack(receipt), 1U);
    EXPECT_EQ(bench.Peek().remaining, before.remaining);
    EXPECT_EQ(bench.Peek().reset_after, Duration::zero());
    EXPECT_EQ(receipt.charged, 0U) << "using a receipt empties it";
    EXPECT_EQ(bench.limiter.GiveBack(receipt), 0U);
  }
}

TEST(GiveBack, OfTheFirstOfTwoChargesLetsNoThirdPass) {
  Bench bench(*Quota::TokenBucket(1, seconds(1), 1));
  Receipt first;
  Receipt second;
  ASSERT_TRUE(bench.Charge(1, first).allowed());
  bench.clock.Advance(seconds(1));
  ASSERT_TRUE(bench.Charge(1, second).allowed());
  EXPECT_EQ(bench.limiter.GiveBack(first), 0U) << "the bucket has refilled since";
  EXPECT_FALSE(bench.limiter.Check("key").allowed());
}

TEST(GiveBack, ReturnsOnlyWhatIsStillOwed) {
  Bench bench(*Quota::TokenBucket(10, seconds(1), 10));
  Receipt receipt;
  ASSERT_TRUE(bench.Charge(10, receipt).allowed());
  bench.clock.Advance(milliseconds(350));  // three and a half are back already
  EXPECT_EQ(bench.limiter.GiveBack(receipt), 6U);
  EXPECT_EQ(bench.Peek().remaining, 10U);
}

TEST(GiveBack, OfAClosedWindowReturnsNothing) {
  for (const char* text :
       {"10/min fixed-window", "10/min", "10/min fixed-window from first-hit", "10/month"}) {
    SCOPED_TRACE(text);
    Bench bench(*Quota::Parse(text));
    Receipt receipt;
    ASSERT_TRUE(bench.Charge(10, receipt).allowed());
    bench.clock.Advance(std::chrono::hours(24 * 32));
    ASSERT_TRUE(bench.limiter.Check("key", 10).allowed());
    EXPECT_EQ(bench.limiter.GiveBack(receipt), 0U);
    EXPECT_FALSE(bench.limiter.Check("key").allowed());
  }
}

TEST(GiveBack, OfAnEmptyReceiptOrADenialReturnsNothing) {
  Bench bench(*Quota::TokenBucket(1, seconds(1), 1));
  Receipt receipt;
  EXPECT_EQ(bench.limiter.GiveBack(receipt), 0U);
  ASSERT_TRUE(bench.limiter.Check("key").allowed());
  ASSERT_FALSE(bench.Charge(1, receipt).allowed());
  EXPECT_EQ(receipt.charged, 0U);
  EXPECT_EQ(bench.limiter.GiveBack(receipt), 0U);
  EXPECT_FALSE(bench.limiter.Check("key").allowed());
}

TEST(GiveBack, WithAStampTooFarAwayReturnsNothingAndKeepsTheReceipt) {
  Bench bench(*Quota::TokenBucket(1, seconds(10), 1));
  Receipt receipt;
  ASSERT_TRUE(bench.Charge(1, receipt).allowed());
  EXPECT_EQ(bench.limiter.GiveBack(receipt, bench.limiter.Now() + seconds(3)), 0U);
  EXPECT_EQ(receipt.charged, 1U);
  EXPECT_EQ(bench.limiter.GiveBack(receipt, bench.limiter.Now()), 1U);
}

TEST(GiveBack, OfWhatTakeUpToTookReturnsThat) {
  Bench bench(*Quota::TokenBucket(10, seconds(1), 10));
  ASSERT_TRUE(bench.limiter.Check("key", 4).allowed());
  Receipt receipt;
  EXPECT_EQ(bench.Charge(100, receipt, ChargeMode::kUpTo).charged, 6U);
  EXPECT_EQ(bench.limiter.GiveBack(receipt), 6U);
  EXPECT_EQ(bench.Peek().remaining, 6U);
}

// Keys share refund counters by their hash, and two that do may get back less. On a store of the
// usual size that is rare: of 200 keys, one pair in three runs.
TEST(GiveBack, OfOneKeyHardlyDependsOnOtherKeys) {
  ManualClock clock;
  Limiter limiter =
      *Limiter::Create(*Quota::TokenBucket(10, seconds(1), 5), MemoryOptions{.clock = &clock});
  std::vector<Receipt> receipts(200);
  for (size_t i = 0; i < receipts.size(); ++i) {
    ASSERT_TRUE(
        limiter.Check("key" + std::to_string(i), CheckOptions{.cost = 5, .receipt = &receipts[i]})
            .allowed());
  }
  size_t kept = 0;
  for (Receipt& receipt : receipts) {
    kept += static_cast<size_t>(limiter.GiveBack(receipt) != 5U);
  }
  EXPECT_LE(kept, 6U) << "of 200";
}

TEST(GiveBack, OfAGapThatWasCountedTooEarlyDoesNotOpenTheGapBefore) {
  Bench bench(*Quota::MinGap(seconds(10)));
  ASSERT_TRUE(bench.limiter.Check("key").allowed());
  bench.clock.Advance(seconds(5));
  Receipt counted;
  ASSERT_FALSE(bench.Charge(1, counted, ChargeMode::kCountAlways).allowed());
  bench.limiter.GiveBack(counted);
  bench.clock.Advance(seconds(1));
  EXPECT_FALSE(bench.limiter.Check("key").allowed()) << "the first request was 6 s ago";
}

TEST(GiveBack, OfACountedChargeReturnsNoMoreThanItTookFromASaturatedState) {
  for (const char* text : {"10/min fixed-window", "10/min burst 10"}) {
    SCOPED_TRACE(text);
    Bench bench(*Quota::Parse(text));
    std::vector<Receipt> receipts(10);
    for (Receipt& receipt : receipts) {
      bench.Charge(10, receipt, ChargeMode::kCountAlways);
    }
    // A hundred units were counted; forty are given back, so the limit is still far exceeded.
    for (size_t i = 6; i < receipts.size(); ++i) {
      bench.limiter.GiveBack(receipts[i]);
    }
    EXPECT_FALSE(bench.limiter.Check("key").allowed());
  }
}

// Charges and give-backs in any order, many receipts outstanding. What is admitted must fit the law
// with every charge left out that was given back, wholly or in part.
std::string NetLawHolds(const Quota& quota, Random& random, int steps) {
  struct Outstanding {
    Receipt receipt;
    size_t handle;
    uint32_t cost;
  };
  Bench bench(quota);
  const auto law = MakeOracle(quota);
  const int64_t tick = testing::TickOf(quota).count();
  const auto interval =
      std::max<uint64_t>(1, static_cast<uint64_t>(quota.window().count() / quota.limit() / tick));
  const uint64_t window = static_cast<uint64_t>(quota.window().count() / tick);
  std::vector<Outstanding> receipts;
  for (int i = 0; i < steps; ++i) {
    if (!random.OneIn(3)) {
      const uint64_t wait = random.OneIn(20)  ? random.Below(window + 1)
                            : random.OneIn(2) ? interval
                                              : random.Below(interval * 2);
      bench.clock.Advance(Duration(tick * static_cast<int64_t>(wait)));
    }
    if (!receipts.empty() && random.OneIn(3)) {
      const size_t which = random.Below(receipts.size());
      Outstanding out = receipts[which];
      receipts.erase(receipts.begin() + static_cast<ptrdiff_t>(which));
      const Decision before = bench.Peek();
      const uint32_t back = bench.limiter.GiveBack(out.receipt);
      const Decision after = bench.Peek();
      if (back > out.cost || after.remaining < before.remaining ||
          after.remaining - before.remaining > out.cost) {
        return quota.ToString() + ": step " + std::to_string(i) + " gave back " +
               std::to_string(back) + " of " + std::to_string(out.cost);
      }
      if (after.reset_after != before.reset_after || after.remaining != before.remaining) {
        law->Remove(out.handle);
      }
      continue;
    }
    const auto cost = static_cast<uint32_t>(random.Between(1, std::min(quota.burst(), 4U)));
    const bool fits = law->Fits(bench.now(), cost);
    Receipt receipt;
    if (bench.Charge(cost, receipt).allowed()) {
      if (!fits) {
        return quota.ToString() + ": step " + std::to_string(i) + " at " +
               std::to_string((bench.clock.WallNow() - Noon()).count()) + " ns admitted " +
               std::to_string(cost) + " beyond the law";
      }
      receipts.push_back({receipt, law->Charge(bench.now(), cost), cost});
    }
  }
  return "";
}

// The same for windows that begin where only the store knows: at the first hit, or shifted by a
// hash of the key. Where one ends is taken from reset_after, which AdmitIff holds to its oracle; a
// count that stays within it must be exact, both ways, and only its own receipts lower it.
std::string WindowLawHolds(const Quota& quota, Random& random, int steps) {
  struct Outstanding {
    Receipt receipt;
    int64_t end;
    uint32_t cost;
  };
  Bench bench(quota);
  const auto window = static_cast<uint64_t>(quota.window().count());
  const auto tick = static_cast<uint64_t>(testing::TickOf(quota).count());
  std::vector<Outstanding> receipts;
  int64_t end = 0;
  uint64_t count = 0;
  for (int i = 0; i < steps; ++i) {
    const std::string where = quota.ToString() + ": step " + std::to_string(i);
    if (!random.OneIn(3)) {
      const uint64_t wait = random.OneIn(4) ? window : random.Scaled(1, window);
      bench.clock.Advance(Duration(static_cast<int64_t>(wait / tick * tick)));
    }
    count = bench.now() < end ? count : 0;
    if (!receipts.empty() && random.OneIn(3)) {
      const size_t which = random.Below(receipts.size());
      Outstanding out = receipts[which];
      receipts.erase(receipts.begin() + static_cast<ptrdiff_t>(which));
      const uint32_t owed = out.end == end && bench.now() < end ? out.cost : 0;
      if (bench.limiter.GiveBack(out.receipt) != owed) {
        return where + " did not give back " + std::to_string(owed);
      }
      count -= owed;
    } else {
      const auto cost = static_cast<uint32_t>(random.Between(1, std::min(quota.burst(), 4U)));
      Receipt receipt;
      const Decision decision = bench.Charge(cost, receipt);
      if (decision.allowed() != (count + cost <= quota.limit())) {
        return where + " asked for " + std::to_string(cost) + " beside " + std::to_string(count);
      }
      if (decision.allowed()) {
        if (count != 0 && bench.now() + decision.reset_after.count() != end) {
          return where + " moved the window";
        }
        end = bench.now() + decision.reset_after.count();
        count += cost;
        receipts.push_back({receipt, end, cost});
      }
    }
    if (bench.Peek().remaining != quota.limit() - count) {
      return where + " leaves " + std::to_string(bench.Peek().remaining) + " beside " +
             std::to_string(count);
    }
  }
  return "";
}

// The clock of a slot wraps, after three days in a small one and after half an hour in one that
// tells nanoseconds apart: a receipt of that age must not be taken for one of now.
TEST(GiveBack, AReceiptOlderThanTheClockOfItsSlotGivesNothing) {
  const std::pair<Quota, Duration> cases[] = {
      {*Quota::TokenBucket(1, seconds(2), 3), microseconds(int64_t{1} << 38)},
      {*Quota::TokenBucket(999'983, milliseconds(1000), 3), nanoseconds(int64_t{1} << 41)},
      {*Quota::MinGap(seconds(2)), microseconds(int64_t{1} << 38)},
  };
  for (const auto& [quota, wrap] : cases) {
    for (const int parts : {1, 2, 4, 8}) {
      Bench bench(quota);
      Receipt old;
      ASSERT_TRUE(bench.Charge(1, old).allowed());
      bench.clock.Advance(wrap / parts);
      Receipt recent;
      ASSERT_TRUE(bench.Charge(1, recent).allowed());
      const Decision before = bench.Peek();
      EXPECT_EQ(bench.limiter.GiveBack(old), 0U) << quota.ToString() << " " << parts;
      EXPECT_EQ(bench.Peek().remaining, before.remaining) << quota.ToString() << " " << parts;
      EXPECT_EQ(bench.limiter.GiveBack(recent), 1U);
    }
  }
}

RC_GTEST_PROP(GiveBackProperty, NetAdmittedNeverExceedsTheLaw, (uint64_t seed)) {
  Random random(seed);
  const Quota quota = random.OneIn(3)   ? testing::RandomWindow(random)
                      : random.OneIn(4) ? testing::RandomGap(random)
                                        : testing::RandomBucket(random);
  const bool known = quota.start() == WindowStart::kEpoch;
  const std::string problem =
      known ? NetLawHolds(quota, random, 60) : WindowLawHolds(quota, random, 60);
  RC_ASSERT(problem == "");
}

TEST(GiveBack, ManyRandomHistoriesKeepTheLawForBuckets) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Random random(seed);
    const Quota quota =
        *Quota::TokenBucket(static_cast<int64_t>(random.Between(1, 5)), milliseconds(60),
                            static_cast<int64_t>(random.Between(1, 6)));
    ASSERT_EQ(NetLawHolds(quota, random, 120), "") << "seed " << seed;
  }
}

TEST(GiveBack, ManyRandomHistoriesKeepTheLawForWindowsOfAnyStart) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Random random(seed);
    const auto start = static_cast<WindowStart>(random.Below(3));
    const Quota quota = *Quota::FixedWindow(static_cast<int64_t>(random.Between(1, 9)),
                                            milliseconds(random.Between(1, 60)), start);
    ASSERT_EQ(WindowLawHolds(quota, random, 120), "") << "seed " << seed;
  }
}

TEST(GiveBack, AfterTheRateWasLoweredStillReturnsNoMoreThanIsOwed) {
  ManualClock clock(Noon());
  Limiter limiter = *Limiter::Create(*Quota::TokenBucket(10, seconds(1), 2), SmallStore(clock));
  Receipt a;
  Receipt b;
  ASSERT_TRUE(limiter.Check("key", CheckOptions{.receipt = &a}).allowed());
  ASSERT_TRUE(limiter.Check("key", CheckOptions{.receipt = &b}).allowed());
  ASSERT_EQ(limiter.GiveBack(a), 1U);
  ASSERT_TRUE(limiter.Update(*Quota::TokenBucket(1, seconds(1), 2)).ok());
  clock.Advance(seconds(1));  // b has refilled: nothing of it is owed
  ASSERT_TRUE(limiter.Check("key").allowed());
  const Decision before = limiter.Check("key", 0);
  limiter.GiveBack(b);
  EXPECT_EQ(limiter.Check("key", 0).reset_after, before.reset_after);
}

}  // namespace
}  // namespace weir
