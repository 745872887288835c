// Clocks that step: no crash, no extra admission on a step back, no lock-out beyond the bound.
#include <chrono>
#include <string>

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

}  // namespace
}  // namespace weir
