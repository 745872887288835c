// Clocks that step: no crash, no extra admission on a step back, no lock-out beyond the bound.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "testing/twin.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Noon;
using testing::Random;
using testing::SmallStore;

constexpr const char* kQuotas[] = {"10/s burst 10",
                                   "7/s burst 10",
                                   "10/s",
                                   "10/s fixed-window",
                                   "10/s fixed-window from first-hit",
                                   "10/s fixed-window from per-key",
                                   "gap 100ms"};

uint32_t Drain(Limiter& limiter) {
  uint32_t admitted = 0;
  while (limiter.Check("key").allowed() && admitted < 1000) {
    ++admitted;
  }
  return admitted;
}

TEST(ClockSteps, BackAdmitsNothingExtra) {
  for (const char* text : kQuotas) {
    for (const Duration back : {Duration(1), Duration(milliseconds(1)), Duration(milliseconds(999)),
                                Duration(seconds(5)), Duration(hours(5))}) {
      SCOPED_TRACE(std::string(text) + " back " + std::to_string(back.count()));
      ManualClock clock(Noon());
      clock.SetNow(Timestamp(hours(100)));
      Limiter limiter = *Limiter::Create(*Quota::Parse(text), SmallStore(clock));
      clock.Advance(milliseconds(330));
      EXPECT_GT(Drain(limiter), 0U);
      clock.SetNow(clock.Now() - back);
      EXPECT_EQ(Drain(limiter), 0U);
    }
  }
}

TEST(ClockSteps, BackLocksNobodyOutLongerThanTheStepOrTheBucket) {
  // After a step back by J a key may wait min(J, what it owes) longer, never J for its own sake.
  for (const char* text : kQuotas) {
    for (const Duration back :
         {Duration(milliseconds(500)), Duration(seconds(5)), Duration(hours(5))}) {
      SCOPED_TRACE(std::string(text) + " back " + std::to_string(back.count()));
      ManualClock clock(Noon());
      clock.SetNow(Timestamp(hours(100)));
      Limiter limiter = *Limiter::Create(*Quota::Parse(text), SmallStore(clock));
      EXPECT_GT(Drain(limiter), 0U);
      clock.SetNow(clock.Now() - back);
      EXPECT_EQ(Drain(limiter), 0U);
      clock.Advance(seconds(2) + seconds(2));  // two windows, and the skew that is believed
      EXPECT_TRUE(limiter.Check("key").allowed());
      EXPECT_TRUE(limiter.Check("new key").allowed());
      EXPECT_TRUE(limiter.Check("another", limiter.Now()).allowed())
          << "the limiter's own time is one that it takes";
    }
  }
}

TEST(ClockSteps, ForwardAdmitsAtMostABurst) {
  for (const char* text : kQuotas) {
    SCOPED_TRACE(text);
    ManualClock clock(Noon());
    Limiter limiter = *Limiter::Create(*Quota::Parse(text), SmallStore(clock));
    const uint32_t burst = Drain(limiter);
    for (const Duration step : {Duration(hours(1)), Duration(hours(24 * 400))}) {
      clock.Advance(step);
      EXPECT_LE(Drain(limiter), burst);
    }
  }
}

TEST(ClockSteps, RandomlyAdmitNoMoreThanTheStepsForwardRefill) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    ManualClock clock(Noon());
    clock.SetNow(Timestamp(hours(24 * 365)));
    Limiter limiter = *Limiter::Create(*Quota::TokenBucket(10, seconds(1), 10), SmallStore(clock));
    Duration forward{};
    int64_t admitted = 0;
    for (int i = 0; i < 200; ++i) {
      const Duration step(static_cast<int64_t>(random.OneIn(20) ? random.Scaled(1, 10'000'000'000)
                                                                : random.Below(100'000'000)));
      if (random.OneIn(3)) {
        clock.SetNow(clock.Now() - step);
      } else {
        clock.SetNow(clock.Now() + step);
        forward += step;
      }
      clock.SetWall(Noon() + Duration(static_cast<int64_t>(random.Below(1'000'000'000'000))));
      admitted += limiter.TakeUpTo("key", random.Between(1, 5)).charged;
      limiter.Check("key" + std::to_string(i), limiter.Now());
      ASSERT_LE(admitted, 10 + forward / milliseconds(100)) << "seed " << seed << " step " << i;
    }
  }
}

TEST(ClockSteps, OfTheWallDoNotMoveWindowsThatCountElapsedTime) {
  ManualClock clock(Noon());
  Limiter limiter = *Limiter::Create(*Quota::Parse("10/min fixed-window"), SmallStore(clock));
  EXPECT_EQ(Drain(limiter), 10U);
  for (const Duration step : {Duration(hours(10)), Duration(-hours(20))}) {
    clock.SetWall(clock.WallNow() + step);
    clock.Advance(seconds(5));
    EXPECT_EQ(Drain(limiter), 0U);
  }
  clock.Advance(seconds(50));
  EXPECT_EQ(Drain(limiter), 10U);
}

TEST(ClockSteps, OfTheWallBackDoNotReopenACalendarPeriod) {
  ManualClock clock(Noon());
  Limiter limiter = *Limiter::Create(*Quota::Parse("10/day calendar"), SmallStore(clock));
  clock.Advance(hours(12));  // midnight
  EXPECT_EQ(Drain(limiter), 10U);
  clock.SetWall(clock.WallNow() - hours(6));
  clock.Advance(seconds(2));
  EXPECT_EQ(Drain(limiter), 0U);
  clock.Advance(hours(31));
  EXPECT_EQ(Drain(limiter), 10U);
}

// One random history under `quota` from `wall` on, as a line of text a decision.
std::vector<std::string> History(const Quota& quota, WallTime wall, uint64_t seed) {
  Random random(seed);
  ManualClock clock(wall);
  Limiter limiter = *Limiter::Create(quota, SmallStore(clock));
  std::vector<std::string> lines;
  for (int i = 0; i < 60; ++i) {
    clock.Advance(Duration(static_cast<int64_t>(random.Scaled(1, 50'000'000'000))));
    const Duration behind = milliseconds(random.OneIn(4) ? random.Below(1000) : 0);
    const Decision decision =
        limiter.Check("key" + std::to_string(random.Below(3)),
                      {.cost = random.Between(1, 4), .now = clock.Now() - behind});
    lines.push_back(std::to_string(i) + ": allowed " + std::to_string(decision.allowed()) +
                    ", remaining " + std::to_string(decision.remaining) + ", retry_after " +
                    std::to_string(decision.retry_after.count()) + ", reset_after " +
                    std::to_string(decision.reset_after.count()));
  }
  return lines;
}

TEST(TheFirstMomentsOf1970, DecideAsAnyOtherTime) {
  // Whole windows of every quota here, slices included, lie between the two instants compared.
  constexpr Duration kLater = hours(24 * 365);
  for (const char* text : {"10/min fixed-window", "10/min fixed-window from per-key", "10/min",
                           "10/min sliced-window slices 6", "10/h sliced-window slices 60",
                           "10/min sliding-log", "10/min burst 3", "10/day calendar"}) {
    const Quota quota = *Quota::Parse(text);
    for (const Duration wall :
         {Duration::zero(), Duration(1), Duration(milliseconds(500)), Duration(milliseconds(999)),
          Duration(seconds(59)), Duration(minutes(33)), Duration(-hours(48))}) {
      for (uint64_t seed = 0; seed < 20; ++seed) {
        ASSERT_EQ(History(quota, WallTime(wall), seed),
                  History(quota, WallTime(wall + kLater), seed))
            << text << " at " << wall.count() << " ns, seed " << seed;
      }
    }
  }
}

TEST(TheFirstMomentsOf1970, GiveOutFencesThatOnlyGrow) {
  uint64_t last = 0;  // over all the programs that start one after the other
  for (const Duration wall : {Duration::zero(), Duration(milliseconds(500)), Duration(seconds(2)),
                              Duration(minutes(33)), Duration(minutes(34))}) {
    SCOPED_TRACE(wall.count());
    ManualClock clock{WallTime(wall)};
    Limiter limiter = *Limiter::Create(*Quota::Parse("concurrency 9 lease 60s"), SmallStore(clock));
    for (const Duration behind :
         {Duration::zero(), Duration(milliseconds(900)), Duration::zero()}) {
      const Acquired got = limiter.Acquire("lock", {.now = clock.Now() - behind});
      ASSERT_GT(got.hold.fence(), last);
      last = got.hold.fence();
    }
    limiter.Release(limiter.Acquire("lock").hold);
    clock.Advance(milliseconds(100));
  }
}

// A microsecond has a thousand stamps and an 8-byte slot one tick for them: what comes at its end
// is answered as at its beginning, hence up to a tick early. A 16-byte slot sees every nanosecond.
TEST(SubTickStamps, AreAnsweredAsTheirTick) {
  const Quota quota = *Quota::TokenBucket(1, std::chrono::microseconds(1), 1);
  for (const bool wide : {false, true}) {
    SCOPED_TRACE(wide ? "16 bytes" : "8 bytes");
    ManualClock clock(Noon());
    MemoryOptions options = SmallStore(clock);
    options.wide_percent = wide ? 100 : 0;
    Limiter limiter = *Limiter::Create(quota, options);
    const auto allowed_after = [&](int64_t ns) {
      clock.Advance(Duration(ns));
      return limiter.Check("key").allowed();
    };
    ASSERT_TRUE(limiter.Check("key").allowed());
    while (!allowed_after(1)) {
    }  // now at the beginning of a tick
    EXPECT_FALSE(allowed_after(999));
    EXPECT_TRUE(allowed_after(1)) << "a microsecond after the last";
    EXPECT_TRUE(allowed_after(1999));
    EXPECT_EQ(allowed_after(1), !wide) << "the next tick, a nanosecond later";
    EXPECT_EQ(allowed_after(999), wide) << "a microsecond after the last but one";
    // Over whole ticks never more than the law: a burst of one, and one a microsecond.
    int admitted = 0;
    for (int i = 0; i < 10'000; ++i) {
      admitted += static_cast<int>(allowed_after(1));
    }
    EXPECT_LE(admitted, 11);
    EXPECT_GE(admitted, 9);
  }
}

}  // namespace
}  // namespace weir
