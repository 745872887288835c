// Changing a quota under traffic: a raise never turns an allowed request into a denied one, nobody
// gets a fresh bucket, and nobody owes what was never taken.
#include <rapidcheck.h>

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "weir/limiter.h"

#include "algorithm/plan.h"
#include "testing/twin.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Noon;
using testing::Random;
using testing::SmallStore;

Limiter Make(const Quota& quota, const Clock& clock) {
  MemoryOptions options = SmallStore(clock);
  options.wide_percent = 50;  // a change may need the other layout
  return *Limiter::Create(quota, options);
}

QuotaSpec SpecOf(const Quota& quota) {
  return {.algorithm = quota.algorithm(),
          .limit = quota.limit(),
          .window = quota.window(),
          .burst = quota.burst(),
          .start = quota.start(),
          .period = quota.period(),
          .time_zone = quota.time_zone(),
          .slices = quota.slices()};
}

bool IsBucket(const Quota& quota) {
  return quota.algorithm() == Algorithm::kTokenBucket ||
         quota.algorithm() == Algorithm::kLeakyBucket;
}

// More of something, and less of nothing.
Quota Raise(const Quota& quota, Random& random) {
  QuotaSpec spec = SpecOf(quota);
  if (quota.algorithm() == Algorithm::kMinGap) {
    spec.window =
        std::max(Quota::kMinWindow, spec.window / static_cast<int64_t>(random.Between(2, 4)));
    return *Quota::Create(spec);
  }
  const auto more = [&](int64_t n) {
    return n +
           static_cast<int64_t>(random.OneIn(2) ? random.Between(1, 3) : random.Scaled(1, 1000));
  };
  if (!IsBucket(quota)) {
    spec.limit = more(spec.limit);
    spec.burst = 0;
  } else if (random.OneIn(3)) {
    spec.burst = more(spec.burst);
  } else {
    spec.limit = more(spec.limit);
  }
  return *Quota::Create(spec);
}

struct Twins {
  Twins(const Quota& quota, const Clock& clock)
      : kept(Make(quota, clock)), raised(Make(quota, clock)) {}
  Limiter kept;
  Limiter raised;
};

// What the unraised limiter admits, the raised one must admit too, given the same charges.
std::string RaisesNeverDeny(const Quota& first, Random& random, int steps) {
  ManualClock clock(Noon());
  Twins twins(first, clock);
  Quota quota = first;
  const auto window = static_cast<uint64_t>(first.window().count());
  const uint64_t interval = std::max<uint64_t>(1, window / first.limit());
  std::string changes = first.ToString();
  // 8-byte slots round stamps down to a microsecond and 16-byte slots do not, so between the two a
  // request may be due up to a microsecond later. Everything else is exact.
  const uint64_t grain = algorithm::FitsCompact(first) ? 1000 : 1;
  for (int i = 0; i < steps; ++i) {
    if (!random.OneIn(3)) {
      const uint64_t by = random.OneIn(10) ? random.Below(window) : random.Below(2 * interval);
      clock.Advance(Duration(static_cast<int64_t>(by - by % grain)));
    }
    if (random.OneIn(6)) {
      const Quota next = Raise(quota, random);
      const Result<void> updated = twins.raised.Update(next);
      if (!updated) {
        // Too often, or a limit that no slot holds.
        if (updated.error().code != ErrorCode::kUnavailable &&
            algorithm::Compile(next, algorithm::NeedsRecord(next) ? algorithm::SlotKind::kRecord
                                                                  : algorithm::SlotKind::kWide)
                .ok()) {
          return changes + " -> " + next.ToString() + ": " + updated.error().message;
        }
      } else {
        quota = next;
        changes += " -> " + next.ToString() + " (step " + std::to_string(i) + ")";
      }
    }
    const uint64_t cost = random.Between(1, std::min(first.burst(), 3U));
    const Decision kept = twins.kept.Check("key", cost);
    if (!kept.allowed()) {
      continue;
    }
    const Decision raised = twins.raised.Check("key", cost);
    if (!raised.allowed()) {
      return changes + ": step " + std::to_string(i) + " at " +
             std::to_string((clock.WallNow() - Noon()).count()) + " ns denies cost " +
             std::to_string(cost) + ", retry " + std::to_string(raised.retry_after.count());
    }
  }
  return "";
}

TEST(Update, ARaiseNeverTurnsAllowIntoDenyForBuckets) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Random random(seed);
    const Quota quota =
        random.OneIn(3) ? testing::RandomOddBucket(random) : testing::RandomBucket(random);
    ASSERT_EQ(RaisesNeverDeny(quota, random, 60), "") << "seed " << seed;
  }
}

TEST(Update, ARaiseNeverTurnsAllowIntoDenyForWindowsAndGaps) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Random random(seed);
    const Quota quota =
        random.OneIn(4) ? testing::RandomGap(random) : testing::RandomWindow(random);
    ASSERT_EQ(RaisesNeverDeny(quota, random, 60), "") << "seed " << seed;
  }
}

TEST(Update, ARaiseNeverTurnsAllowIntoDenyForLogsAndSlices) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Random random(seed);
    ASSERT_EQ(RaisesNeverDeny(testing::RandomRecord(random), random, 60), "") << "seed " << seed;
  }
}

std::string RaisesNeverDeny(uint64_t seed) {
  Random random(seed);
  const Quota quota = random.OneIn(2)   ? testing::RandomBucket(random)
                      : random.OneIn(2) ? testing::RandomWindow(random)
                                        : testing::RandomGap(random);
  return RaisesNeverDeny(quota, random, 40);
}

RC_GTEST_PROP(UpdateProperty, ARaiseNeverTurnsAllowIntoDeny, (uint64_t seed)) {
  const std::string problem = RaisesNeverDeny(seed);
  if (!problem.empty()) {
    RC_FAIL(problem);
  }
}

// Seeds with which the property above has failed.
TEST(Update, RaisesThatOnceDenied) {
  for (const uint64_t seed : {uint64_t{729738685}}) {
    EXPECT_EQ(RaisesNeverDeny(seed), "") << seed;
  }
}

// A quota of the same kind, larger or smaller in everything.
Quota Change(const Quota& quota, Random& random) {
  QuotaSpec spec = SpecOf(quota);
  if (quota.algorithm() == Algorithm::kMinGap) {
    spec.window = milliseconds(random.Scaled(1, 100'000));
    return *Quota::Create(spec);
  }
  spec.limit = static_cast<int64_t>(random.Scaled(1, 100'000));
  spec.burst = IsBucket(quota) ? static_cast<int64_t>(random.Scaled(1, 1000)) : 0;
  if (random.OneIn(3)) {
    spec.window = milliseconds(random.Scaled(1, 100'000));
  }
  return *Quota::Create(spec);
}

// However often and whatever the quota became: once a key has had time to be as new under every
// one of them, it is as new.
std::string IdleKeysBecomeFresh(const Quota& first, Random& random) {
  ManualClock clock(Noon());
  Limiter limiter = Make(first, clock);
  std::string changes = first.ToString();
  Quota quota = first;
  for (int round = 0; round < 12; ++round) {
    const std::string key = "key" + std::to_string(round);
    Decision last = limiter.Check(key, random.Between(1, quota.burst()));
    if (!last.allowed()) {
      return changes + ": a new key is denied";
    }
    const uint64_t updates = random.Between(1, 6);
    Duration longest = last.reset_after;
    for (uint64_t i = 0; i < updates; ++i) {
      // A full bucket, or two windows, under any of them.
      const auto refill = [](const Quota& q) {
        return q.window() * 2 + q.window() / q.limit() * int64_t{q.burst()} * 2 +
               std::chrono::seconds(2);
      };
      longest = std::max({longest, refill(quota)});
      const Quota next = Change(quota, random);
      const Result<void> updated = limiter.Update(next);
      if (!updated) {
        if (updated.error().code != ErrorCode::kUnavailable) {
          return changes + " -> " + next.ToString() + ": " + updated.error().message;
        }
        continue;
      }
      quota = next;
      changes += " -> " + next.ToString();
      longest = std::max({longest, refill(quota)});
      clock.Advance(longest);
    }
    clock.Advance(longest);
    const Decision fresh = limiter.Check(key, 0);
    if (fresh.remaining != quota.burst()) {
      return changes + ": round " + std::to_string(round) + " remaining " +
             std::to_string(fresh.remaining) + " reset " +
             std::to_string(fresh.reset_after.count());
    }
  }
  return "";
}

TEST(Update, AnIdleKeyIsFreshAgainWhateverTheQuotaBecameMeanwhile) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Random random(seed);
    const Quota quota = random.OneIn(2)   ? testing::RandomBucket(random)
                        : random.OneIn(3) ? testing::RandomGap(random)
                                          : *Quota::FixedWindow(10, seconds(1));
    ASSERT_EQ(IdleKeysBecomeFresh(quota, random), "") << "seed " << seed;
  }
}

TEST(Update, TwoSlowdownsDoNotInventADebt) {
  ManualClock clock(Noon());
  Limiter limiter = Make(*Quota::TokenBucket(100, seconds(1), 10), clock);
  ASSERT_TRUE(limiter.Check("key").allowed());
  clock.Advance(seconds(10));
  ASSERT_TRUE(limiter.Update(*Quota::TokenBucket(50, seconds(1), 10)).ok());
  clock.Advance(seconds(10));
  ASSERT_TRUE(limiter.Update(*Quota::TokenBucket(1, seconds(1), 10)).ok());
  clock.Advance(seconds(10));
  EXPECT_EQ(limiter.Check("key", 0).remaining, 10U);
}

TEST(Update, AnIdleKeyOfAReusedGenerationIsFresh) {
  // A state names its plan by two bits. Untouched through four changes, it must not be read by the
  // plan that has those bits next, which may cut the word at other places.
  struct Case {
    const char* first;
    std::vector<const char*> later;
  };
  for (const Case& c :
       {Case{"100000/s fixed-window",
             {"30/s fixed-window", "20/s fixed-window", "30/s fixed-window", "10/s fixed-window"}},
        Case{
            "10/s fixed-window",
            {"30/s fixed-window", "20/s fixed-window", "30/s fixed-window", "10/min fixed-window"}},
        Case{"10/s", {"30/s", "20/s", "30/s", "10/min"}},
        Case{"10/s fixed-window from first-hit",
             {"20/s fixed-window from first-hit", "30/s fixed-window from first-hit",
              "20/s fixed-window from first-hit", "9000000/s fixed-window from first-hit"}},
        Case{"7000003/s burst 10",
             {"7/s burst 10", "11/s burst 10", "13/s burst 10", "7/s burst 11"}},
        Case{"7/s burst 10",
             {"11/s burst 10", "13/s burst 10", "7/s burst 11", "7000003/s burst 10"}}}) {
    SCOPED_TRACE(std::string(c.first) + " ... " + c.later.back());
    ManualClock clock(Noon());
    Limiter limiter = Make(*Quota::Parse(c.first), clock);
    for (int key = 0; key < 20; ++key) {
      clock.Advance(milliseconds(137));
      ASSERT_TRUE(limiter.Check("key" + std::to_string(key), 7).allowed());
    }
    for (const char* text : c.later) {
      clock.Advance(seconds(150));
      ASSERT_TRUE(limiter.Update(*Quota::Parse(text)).ok());
    }
    clock.Advance(seconds(150));
    for (int key = 0; key < 20; ++key) {
      const Decision decision = limiter.Check("key" + std::to_string(key), 0);
      ASSERT_EQ(decision.remaining, limiter.quota().burst()) << key;
      ASSERT_EQ(decision.reset_after, Duration::zero()) << key;
      ASSERT_TRUE(limiter.Check("key" + std::to_string(key), limiter.quota().burst()).allowed());
    }
    clock.Advance(seconds(150));
    for (int key = 0; key < 20; ++key) {
      ASSERT_TRUE(limiter.Check("key" + std::to_string(key), limiter.quota().burst()).allowed());
    }
  }
}

TEST(Update, ARaiseReachesAnExhaustedKeyAtTheNewRate) {
  // Within a layout, and from 8-byte to 16-byte slots: 700/s has no whole microseconds.
  for (const int64_t limit : {1000, 700}) {
    ManualClock clock(Noon());
    Limiter limiter = Make(*Quota::TokenBucket(1, hours(1), 1), clock);
    ASSERT_TRUE(limiter.Check("key").allowed());
    ASSERT_TRUE(limiter.Update(*Quota::TokenBucket(limit, seconds(1), 1)).ok());
    clock.Advance(seconds(10));
    EXPECT_TRUE(limiter.Check("key").allowed()) << limit;
  }
}

TEST(Update, NobodyGetsAFreshBucket) {
  struct Case {
    const char* from;
    const char* to;
    uint32_t used;       // of the burst, all of it before the change
    uint32_t remaining;  // at once after it
  };
  for (const Case& c :
       {Case{"100/min burst 10", "200/min burst 10", 10, 0},
        Case{"100/min burst 10", "100/min burst 15", 10, 5},
        Case{"100/min burst 10", "70/min burst 10", 10, 0},  // to 16 bytes
        Case{"70/min burst 10", "100/min burst 12", 10, 2},  // and back
        Case{"100/min", "150/min", 100, 50},
        Case{"100/min fixed-window", "150/min fixed-window", 100, 50},
        Case{"100/min fixed-window from first-hit", "150/min fixed-window from first-hit", 100, 50},
        Case{"100/min fixed-window from per-key", "150/min fixed-window from per-key", 100, 50},
        Case{"1000/month", "1500/month", 1000, 500},
        Case{"100/min", "150/min burst 150", 100, 50},  // another algorithm
        Case{"100/min burst 100", "150/min fixed-window", 100, 50}}) {
    SCOPED_TRACE(std::string(c.from) + " -> " + c.to);
    ManualClock clock(Noon());
    Limiter limiter = Make(*Quota::Parse(c.from), clock);
    ASSERT_TRUE(limiter.Check("key", c.used).allowed());
    ASSERT_TRUE(limiter.Update(*Quota::Parse(c.to)).ok());
    EXPECT_EQ(limiter.Check("key", 0).remaining, c.remaining);
    EXPECT_EQ(limiter.Check("other", 0).remaining, limiter.quota().burst());
    EXPECT_EQ(limiter.quota(), *Quota::Parse(c.to));
  }
}

// Windows of another length: who is denied and waits as long as told is admitted, whatever was used
// before the change; a window of the old quota that is still open counts in one new window only.
std::string WhoWaitsIsAdmitted(Random& random) {
  const char* const kinds[] = {" fixed-window", " fixed-window from first-hit",
                               " fixed-window from per-key", ""};
  const char* const kind = kinds[random.Below(4)];
  const auto quota = [&] {
    return *Quota::Parse(std::to_string(random.Between(1, 50)) + "/" +
                         std::to_string(random.Between(1, 90)) + "s" + kind);
  };
  ManualClock clock(Noon() + milliseconds(random.Below(100'000)));
  Limiter limiter = Make(quota(), clock);
  std::string story = limiter.quota().ToString();
  for (uint64_t changes = random.Between(1, 3); changes > 0; --changes) {
    for (uint64_t charges = random.Between(1, 5); charges > 0; --charges) {
      limiter.Check("key", random.Between(1, limiter.quota().burst()));
      clock.Advance(milliseconds(random.Below(20'000)));
    }
    const Quota next = quota();
    if (!limiter.Update(next).ok()) {
      return "the change was refused: " + next.ToString();
    }
    story += ", then " + next.ToString();
    clock.Advance(milliseconds(random.Below(30'000)));
    const uint64_t cost = random.Between(1, next.burst());
    const Decision asked = limiter.Check("key", cost);
    if (asked.allowed()) {
      continue;
    }
    clock.Advance(asked.retry_after);
    if (const Decision again = limiter.Check("key", cost); !again.allowed()) {
      return story + ": told to wait " + std::to_string(asked.retry_after.count()) + " ns for " +
             std::to_string(cost) + ", then " + std::to_string(again.retry_after.count()) + " more";
    }
  }
  return "";
}

TEST(Update, WhoWaitsAfterAChangeOfWindowIsAdmitted) {
  Random random(2026);
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_EQ(WhoWaitsIsAdmitted(random), "") << i;
  }
}

TEST(Update, ManyRaisesInAMomentKeepEveryDebt) {
  for (const char* text :
       {"100/min burst 10", "70/min burst 10", "100/min", "10/min fixed-window"}) {
    SCOPED_TRACE(text);
    ManualClock clock(Noon());
    Quota quota = *Quota::Parse(text);
    Limiter limiter = Make(quota, clock);
    ASSERT_TRUE(limiter.Check("key", quota.burst()).allowed());
    const uint32_t used = quota.burst();
    for (int i = 0; i < 12; ++i) {
      QuotaSpec spec = SpecOf(quota);
      if (IsBucket(quota)) {
        ++spec.burst;
      } else {
        ++spec.limit;
        spec.burst = 0;
      }
      quota = *Quota::Create(spec);
      ASSERT_TRUE(limiter.Update(quota).ok()) << i;
      ASSERT_EQ(limiter.Check("key", 0).remaining, quota.burst() - used) << i;
    }
  }
}

TEST(Update, TooManyInAMomentIsRefusedWithATimeAndChangesNothing) {
  ManualClock clock(Noon());
  Limiter limiter = Make(*Quota::TokenBucket(1, seconds(60), 1000), clock);
  Quota accepted = limiter.quota();
  for (int64_t burst = 1001; burst < 1100; ++burst) {
    const Quota next = *Quota::TokenBucket(1, seconds(60), burst);
    const Result<void> updated = limiter.Update(next);
    if (!updated) {
      EXPECT_EQ(updated.error().code, ErrorCode::kUnavailable);
      EXPECT_NE(updated.error().message.find("quota: "), std::string::npos);
      EXPECT_NE(updated.error().message.find(" s"), std::string::npos);
      EXPECT_EQ(limiter.quota(), accepted);
      return;
    }
    accepted = next;
  }
  FAIL() << "a hundred in a moment were all accepted";
}

TEST(Update, ToTheSameQuotaIsNothing) {
  ManualClock clock(Noon());
  Limiter limiter = Make(*Quota::Parse("10/s burst 5"), clock);
  ASSERT_TRUE(limiter.Check("key", 3).allowed());
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(limiter.Update(*Quota::Parse("10/s burst 5")).ok());
  }
  EXPECT_EQ(limiter.Check("key", 0).remaining, 2U);
}

}  // namespace
}  // namespace weir
