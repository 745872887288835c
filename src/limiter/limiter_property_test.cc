// Every algorithm against its oracle through the public interface: the "admit iff" both ways,
// remaining, retry_after and reset_after exact, keys independent, denials and peeks free.
#include "weir/limiter.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "testing/twin.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::FollowOracle;
using testing::Noon;
using testing::Random;
using testing::RandomHistory;
using testing::SmallStore;
using testing::Step;

using MakeQuota = Quota (*)(Random&);

void FollowMany(MakeQuota make, uint64_t histories) {
  for (uint64_t seed = 0; seed < histories; ++seed) {
    Random random(seed);
    const Quota quota = make(random);
    ASSERT_EQ(FollowOracle(quota, RandomHistory(random, quota, 50)), "") << "seed " << seed;
  }
}

TEST(AdmitIff, HoldsForBucketsOfWholeTicks) {
  FollowMany(testing::RandomBucket, 4000);
}
TEST(AdmitIff, HoldsForBucketsOfOddRatesToAMillionth) {
  FollowMany(testing::RandomOddBucket, 2500);
}
TEST(AdmitIff, HoldsForFixedAndSlidingWindows) {
  FollowMany(testing::RandomWindow, 4000);
}
TEST(AdmitIff, HoldsForGaps) {
  FollowMany(testing::RandomGap, 2000);
}
TEST(AdmitIff, HoldsForLogsAndSlices) {
  FollowMany(testing::RandomRecord, 4000);
}
TEST(AdmitIff, HoldsForCalendarQuotas) {
  FollowMany(testing::RandomCalendar, 2000);
}
TEST(AdmitIff, HoldsForCalendarQuotasOfZonesThatChangeTheirClocks) {
  FollowMany(testing::RandomZonedCalendar, 1000);
}

// What passes a long gap passes a shorter one, given the same charges.
TEST(Monotone, InTheGap) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(seed);
    const Quota longer = testing::RandomGap(random);
    const Duration least = Quota::kMinWindow;
    const Quota shorter = *Quota::MinGap(std::max(least, longer.window() - least));
    ManualClock clock(Noon());
    Limiter strict = *Limiter::Create(longer, SmallStore(clock));
    Limiter lax = *Limiter::Create(shorter, SmallStore(clock));
    for (const Step& step : RandomHistory(random, longer, 40)) {
      clock.Advance(Duration(static_cast<int64_t>(step.wait)) * testing::TickOf(longer).count());
      if (strict.Check("key", step.cost).allowed()) {
        ASSERT_TRUE(lax.Check("key", step.cost).allowed())
            << "seed " << seed << ": " << longer.ToString() << " admits what " << shorter.ToString()
            << " denies";
      }
    }
  }
}

// What a smaller quota admits, a larger one admits too, given the same charges.
TEST(Monotone, InLimitBurstAndRate) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Random random(seed);
    const bool bucket = random.OneIn(2);
    const Quota small =
        bucket ? random.OneIn(3) ? testing::RandomOddBucket(random) : testing::RandomBucket(random)
        : random.OneIn(4) ? testing::RandomZonedCalendar(random)
                          : testing::RandomWindow(random);
    QuotaSpec spec{.algorithm = small.algorithm(),
                   .limit = small.limit(),
                   .window = small.window(),
                   .burst = bucket ? small.burst() : 0,
                   .start = small.start(),
                   .period = small.period(),
                   .time_zone = small.time_zone()};
    if (bucket && random.OneIn(2)) {
      spec.burst += static_cast<int64_t>(random.Scaled(1, 100));
    } else {
      // A millionth is what an odd rate may be off by.
      spec.limit +=
          std::max<int64_t>(1, spec.limit / 100'000) * static_cast<int64_t>(random.Between(2, 9));
    }
    const auto made = Quota::Create(spec);
    if (!made) {
      continue;  // refused by name: plan_test
    }
    const Quota& large = *made;
    ManualClock clock(Noon());
    Limiter smaller = *Limiter::Create(small, SmallStore(clock));
    auto larger = Limiter::Create(large, SmallStore(clock));
    ASSERT_TRUE(larger.ok()) << larger.error().message;
    for (const Step& step : RandomHistory(random, small, 40)) {
      clock.Advance(Duration(static_cast<int64_t>(step.wait)) * testing::TickOf(small).count());
      const Decision decision = smaller.Check("key", step.cost);
      if (decision.allowed()) {
        ASSERT_TRUE(larger->Check("key", step.cost).allowed())
            << "seed " << seed << ": " << small.ToString() << " admits what " << large.ToString()
            << " denies";
      }
    }
  }
}

TEST(Keys, AreIndependentOfOneAnother) {
  ManualClock clock(Noon());
  for (const char* text : {"1/h burst 1", "7/h burst 1", "1/h", "1/h fixed-window", "gap 1h"}) {
    Limiter limiter = *Limiter::Create(*Quota::Parse(text), SmallStore(clock));
    for (int i = 0; i < 500; ++i) {
      const std::string key = "key" + std::to_string(i);
      ASSERT_TRUE(limiter.Check(key).allowed()) << text << ' ' << key;
      ASSERT_FALSE(limiter.Check(key).allowed()) << text << ' ' << key;
    }
  }
}

TEST(IdleKeys, AreFreshHoweverLongTheProgramSlept) {
  // States keep time in few bits. A pause longer than these bits can say must not turn the past
  // into a debt: tried from just past the reset to several wraps of every layout.
  for (const char* text :
       {"100/min burst 100", "1000/s burst 10", "7/s burst 3", "100003/us burst 10",
        "4000/us burst 10", "gap 2s", "gap 1500ns", "10/s", "10/us", "4000000000/us fixed-window",
        "10/s fixed-window from first-hit", "200000000/s fixed-window from first-hit",
        "10/day calendar"}) {
    SCOPED_TRACE(text);
    const Quota quota = *Quota::Parse(text);
    Random random(7);
    for (int i = 0; i < 60; ++i) {
      ManualClock clock(Noon());
      Limiter limiter = *Limiter::Create(quota, SmallStore(clock));
      const Decision used = limiter.Check("key", quota.burst());
      ASSERT_TRUE(used.allowed());
      const Duration asleep(static_cast<int64_t>(random.Scaled(1, 40'000'000'000'000'000)));
      clock.Advance(used.reset_after + asleep);
      const Decision fresh = limiter.Check("key", 0);
      ASSERT_EQ(fresh.remaining, quota.burst()) << "after " << asleep.count() << " ns";
      ASSERT_TRUE(limiter.Check("key", quota.burst()).allowed());
      ASSERT_FALSE(limiter.Check("key", quota.burst()).allowed());
    }
  }
}

TEST(CountAlways, RemembersTwiceTheBurstAndForgetsWhatIsBeyond) {
  ManualClock clock(Noon());
  Limiter limiter = *Limiter::Create(*Quota::TokenBucket(10, seconds(1), 20), SmallStore(clock));
  const auto always = [&](Cost cost) {
    return limiter.Check("key", CheckOptions{.cost = cost, .mode = ChargeMode::kCountAlways});
  };
  EXPECT_TRUE(always(20).allowed());
  const Decision over = always(15);
  EXPECT_EQ(over.outcome, Outcome::kDenied);
  EXPECT_EQ(over.charged, 15U);
  EXPECT_EQ(over.remaining, 0U);
  EXPECT_EQ(over.retry_after, milliseconds(3000)) << "35 + 15 - 20 units at 10 a second";
  EXPECT_EQ(over.reset_after, milliseconds(3500));
  for (int i = 0; i < 10; ++i) {
    always(20);
  }
  EXPECT_EQ(limiter.Check("key", 0).reset_after, seconds(4)) << "forty units";
  const Decision huge = always(Cost::kMax);
  EXPECT_EQ(huge.outcome, Outcome::kDenied);
  EXPECT_EQ(huge.problem, Problem::kCostAboveBurst);
  EXPECT_EQ(limiter.Check("key", 0).reset_after, seconds(4));
  clock.Advance(seconds(2));
  EXPECT_FALSE(limiter.Check("key").allowed());
  clock.Advance(milliseconds(100));
  EXPECT_TRUE(limiter.Check("key").allowed());
}

TEST(CountAlways, ForWindowsEndsWithTheWindow) {
  for (const char* text : {"10/min fixed-window", "10/min fixed-window from first-hit"}) {
    SCOPED_TRACE(text);
    ManualClock clock(Noon());
    Limiter limiter = *Limiter::Create(*Quota::Parse(text), SmallStore(clock));
    const Decision first =
        limiter.Check("key", CheckOptions{.cost = Cost::kMax, .mode = ChargeMode::kCountAlways});
    EXPECT_EQ(first.outcome, Outcome::kDenied);
    EXPECT_FALSE(limiter.Check("key").allowed());
    clock.Advance(seconds(60));
    EXPECT_EQ(limiter.Check("key", 0).remaining, 10U);
  }
}

TEST(TakeUpTo, TakesWhatFitsAndNoMore) {
  for (const char* text : {"10/s burst 20", "7/s burst 20", "20/min", "20/min fixed-window"}) {
    SCOPED_TRACE(text);
    ManualClock clock(Noon());
    Limiter limiter = *Limiter::Create(*Quota::Parse(text), SmallStore(clock));
    EXPECT_EQ(limiter.TakeUpTo("key", 15).charged, 15U);
    const Decision rest = limiter.TakeUpTo("key", Cost::kMax);
    EXPECT_TRUE(rest.allowed());
    EXPECT_EQ(rest.charged, 5U);
    const Decision none = limiter.TakeUpTo("key", 1);
    EXPECT_FALSE(none.allowed());
    EXPECT_EQ(none.charged, 0U);
    EXPECT_GT(none.retry_after, Duration::zero());
    EXPECT_EQ(limiter.TakeUpTo("other", 0).charged, 0U);
  }
}

TEST(CheckMany, DecidesAsCheckDoesOneAfterTheOther) {
  for (const char* text :
       {"10/s burst 3", "7/s burst 3", "3/min", "3/min fixed-window",
        "3/min fixed-window from first-hit", "3/min fixed-window from per-key", "gap 1s",
        "3/day calendar", "3/min sliding-log", "3/min sliced-window slices 6"}) {
    SCOPED_TRACE(text);
    ManualClock clock(Noon());
    MemoryOptions options = SmallStore(clock);
    options.budget_bytes = size_t{1} << 16U;  // so small that many keys share lines and lists
    Limiter many = *Limiter::Create(*Quota::Parse(text), options);
    Limiter single = *Limiter::Create(*Quota::Parse(text), options);
    Random random(11);
    for (int round = 0; round < 40; ++round) {
      const uint64_t key_count = round % 2 == 0 ? 30 : 600;
      std::vector<std::string> names;
      for (uint64_t i = random.Below(90); i > 0; --i) {
        names.push_back(random.OneIn(20) ? "" : "key" + std::to_string(random.Below(key_count)));
      }
      const std::vector<std::string_view> keys(names.begin(), names.end());
      std::vector<Decision> decisions(keys.size());
      many.CheckMany(keys, decisions);
      for (size_t i = 0; i < keys.size(); ++i) {
        const Decision expected = single.Check(keys[i]);
        ASSERT_EQ(decisions[i].outcome, expected.outcome) << i;
        ASSERT_EQ(decisions[i].problem, expected.problem) << i;
        ASSERT_EQ(decisions[i].remaining, expected.remaining) << i;
        ASSERT_EQ(decisions[i].charged, expected.charged) << i;
        ASSERT_EQ(decisions[i].retry_after, expected.retry_after) << i;
        ASSERT_EQ(decisions[i].reset_after, expected.reset_after) << i;
      }
      clock.Advance(milliseconds(random.Below(500)));
    }
    EXPECT_EQ(many.store()->Stats().denials, single.store()->Stats().denials);
    EXPECT_EQ(many.store()->Stats().refusals, single.store()->Stats().refusals);
  }
}

}  // namespace
}  // namespace weir
