#include "redis/breaker.h"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Cause = Breaker::Cause;

constexpr Timestamp kStart{std::chrono::hours(1)};

// Fails until it opens, which it does at `now`; how many it took. What is silent has been so for
// long enough.
int FailUntilOpen(Breaker& breaker, Timestamp now, Cause cause, double chance = 0) {
  EXPECT_FALSE(breaker.OnFailure(now - BreakerOptions{}.silence_min, cause, chance));
  for (int i = 2;; ++i) {
    if (breaker.OnFailure(now, cause, chance)) {
      return i;
    }
  }
}

void CloseByProbes(Breaker& breaker, Timestamp now) {
  breaker.BeginProbing();
  while (!breaker.OnProbe(now, true, 0)) {
  }
}

TEST(BreakerTest, OpensAfterFiveFailuresInARow) {
  Breaker breaker{BreakerOptions{}};
  EXPECT_EQ(FailUntilOpen(breaker, kStart, Cause::kSilence), 5);
  EXPECT_EQ(breaker.state(), BreakerState::kOpen);
  EXPECT_EQ(breaker.transitions(), 1U);
  EXPECT_FALSE(breaker.OnFailure(kStart, Cause::kSilence, 0));  // it is open already
}

TEST(BreakerTest, ASuccessBetweenStartsTheRowAnew) {
  Breaker breaker{BreakerOptions{}};
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(breaker.OnFailure(kStart, Cause::kSilence, 0));
  }
  breaker.OnSuccess(kStart);
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(breaker.OnFailure(kStart, Cause::kSilence, 0));
  }
  EXPECT_TRUE(breaker.closed());
}

// A client with many calls under way, a machine that stands still: all of them are late at once.
TEST(BreakerTest, AMomentOfSilenceIsNoReasonHoweverManyItKeptWaiting) {
  Breaker breaker{BreakerOptions{}};
  const Duration least = BreakerOptions{}.silence_min;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(breaker.OnFailure(kStart, Cause::kSilence, 0));
    EXPECT_FALSE(breaker.OnFailure(kStart + least - Duration(1), Cause::kSilence, 0));
  }
  EXPECT_TRUE(breaker.OnFailure(kStart + least, Cause::kSilence, 0));
}

// Nor does it matter that a call failed now and then before.
TEST(BreakerTest, AMomentOfSilenceIsNoReasonBesideOtherFailuresOfThatSecond) {
  for (int before = 1; before <= 3; ++before) {
    Breaker breaker{BreakerOptions{}};
    Timestamp now = kStart;
    for (int i = 0; i < before; ++i, now += milliseconds(250)) {
      EXPECT_FALSE(breaker.OnFailure(now, Cause::kSilence, 0));
      breaker.OnSuccess(now);
    }
    for (int i = 0; i < 100; ++i) {
      EXPECT_FALSE(breaker.OnFailure(now, Cause::kSilence, 0)) << before;
    }
  }
}

TEST(BreakerTest, WhoIsGoneIsLeftAloneAtOnce) {
  Breaker breaker{BreakerOptions{}};
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(breaker.OnFailure(kStart, Cause::kAway, 0));
  }
  EXPECT_TRUE(breaker.OnFailure(kStart, Cause::kAway, 0));
}

TEST(BreakerTest, ARowMayTakeItsTime) {
  Breaker breaker{BreakerOptions{}};
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(breaker.OnFailure(kStart + seconds(60 * i), Cause::kSilence, 0));
  }
  EXPECT_TRUE(breaker.OnFailure(kStart + seconds(240), Cause::kSilence, 0));
}

TEST(BreakerTest, OpensWhenHalfOfTwentyCallsOfASecondFail) {
  Breaker breaker{BreakerOptions{}};
  Timestamp now = kStart;
  for (int i = 0; i < 9; ++i, now += milliseconds(20)) {
    breaker.OnSuccess(now);
    EXPECT_FALSE(breaker.OnFailure(now, Cause::kSilence, 0));
  }
  breaker.OnSuccess(now);
  Breaker away = breaker;
  EXPECT_TRUE(away.OnFailure(now, Cause::kAway, 0));  // the 20th call, the 10th failure
  // Silence must go on for a while, and may end before.
  EXPECT_FALSE(breaker.OnFailure(now, Cause::kSilence, 0));
  Breaker well = breaker;
  now += BreakerOptions{}.silence_min;
  well.OnSuccess(now);
  EXPECT_FALSE(well.OnFailure(now, Cause::kSilence, 0));
  EXPECT_TRUE(breaker.OnFailure(now, Cause::kSilence, 0));
}

// The second is the last one, whenever it began: a tenth of it is not its half, however it lies.
TEST(BreakerTest, AShareOfTheLastSecondCountsNotOfOneThatJustBegan) {
  for (int begin = 0; begin < 2000; begin += 50) {
    Breaker breaker{BreakerOptions{}};
    for (int ms = 0; ms < 3000; ++ms) {
      const Timestamp now = kStart + milliseconds(ms);
      if (ms >= 900 + begin && ms < 1000 + begin && ms % 5 != 0) {
        ASSERT_FALSE(breaker.OnFailure(now, Cause::kSilence, 0)) << begin << " " << ms;
      } else {
        breaker.OnSuccess(now);
      }
    }
  }
}

TEST(BreakerTest, FailuresOfOtherSecondsDoNotAddUp) {
  Breaker breaker{BreakerOptions{}};
  Timestamp now = kStart;
  for (int i = 0; i < 100; ++i) {
    breaker.OnSuccess(now);
    EXPECT_FALSE(breaker.OnFailure(now, Cause::kSilence, 0));
    now += milliseconds(200);
  }
}

TEST(BreakerTest, SettlesForAsLongAsOthersMayStayAway) {
  Breaker breaker{BreakerOptions{}};
  FailUntilOpen(breaker, kStart, Cause::kSilence);
  CloseByProbes(breaker, kStart + seconds(10));
  EXPECT_GT(breaker.settled_at(), kStart + seconds(12));  // the longest pause of all
  EXPECT_LE(breaker.settled_at(), kStart + seconds(13));
  Breaker away{BreakerOptions{}};
  FailUntilOpen(away, kStart, Cause::kAway);
  CloseByProbes(away, kStart + seconds(1));
  EXPECT_GT(away.settled_at(), kStart + milliseconds(1200));
  EXPECT_LE(away.settled_at(), kStart + seconds(2));
  Breaker heard{BreakerOptions{}};
  FailUntilOpen(heard, kStart, Cause::kSilence);
  CloseByProbes(heard, kStart + milliseconds(100));
  EXPECT_EQ(heard.settled_at(), kStart + milliseconds(600));
}

TEST(BreakerTest, ASilentNodeIsLeftAloneForTenToTwelveSeconds) {
  Breaker breaker{BreakerOptions{}};
  FailUntilOpen(breaker, kStart, Cause::kSilence);
  EXPECT_EQ(breaker.probe_at(), kStart + seconds(10));
  Breaker other{BreakerOptions{}};
  FailUntilOpen(other, kStart, Cause::kSilence, 0.999);
  EXPECT_GT(other.probe_at(), kStart + milliseconds(11'900));
  EXPECT_LT(other.probe_at(), kStart + seconds(12));
}

TEST(BreakerTest, ANodeThatWasOnlyAwayIsLookedAtSoonerTheFirstTime) {
  Breaker breaker{BreakerOptions{}};
  FailUntilOpen(breaker, kStart, Cause::kAway);
  EXPECT_EQ(breaker.probe_at(), kStart + seconds(1));
  CloseByProbes(breaker, kStart + seconds(1));
  FailUntilOpen(breaker, kStart + seconds(2), Cause::kAway);
  EXPECT_EQ(breaker.probe_at(), kStart + seconds(12));  // it flaps
  CloseByProbes(breaker, kStart + seconds(12));
  FailUntilOpen(breaker, kStart + seconds(23), Cause::kAway);
  EXPECT_EQ(breaker.probe_at(), kStart + seconds(24));  // it has been well for a while
}

TEST(BreakerTest, ANodeThatWasOnlySilentIsHeardTheFirstTime) {
  Breaker breaker{BreakerOptions{}};
  FailUntilOpen(breaker, kStart, Cause::kSilence);
  EXPECT_TRUE(breaker.listens());
  CloseByProbes(breaker, kStart + seconds(1));
  FailUntilOpen(breaker, kStart + seconds(2), Cause::kSilence);
  EXPECT_FALSE(breaker.listens());  // it flaps
  CloseByProbes(breaker, kStart + seconds(12));
  FailUntilOpen(breaker, kStart + seconds(23), Cause::kSilence);
  EXPECT_TRUE(breaker.listens());  // it has been well for a while
  breaker.BeginProbing();
  EXPECT_FALSE(breaker.OnProbe(kStart + seconds(23), false, 0));
  EXPECT_FALSE(breaker.listens());  // it spoke, but does not answer
  Breaker away{BreakerOptions{}};
  FailUntilOpen(away, kStart, Cause::kAway);
  EXPECT_FALSE(away.listens());
}

TEST(BreakerTest, ClosesAfterThreeGoodProbesAndOpensAfterABadOne) {
  Breaker breaker{BreakerOptions{}};
  FailUntilOpen(breaker, kStart, Cause::kSilence);
  breaker.BeginProbing();
  EXPECT_FALSE(breaker.OnProbe(kStart + seconds(10), true, 0));
  EXPECT_FALSE(breaker.OnProbe(kStart + seconds(10), true, 0));
  EXPECT_FALSE(breaker.OnProbe(kStart + seconds(10), false, 0));
  EXPECT_EQ(breaker.state(), BreakerState::kOpen);
  EXPECT_EQ(breaker.probe_at(), kStart + seconds(20));
  breaker.BeginProbing();
  EXPECT_FALSE(breaker.OnProbe(kStart + seconds(20), true, 0));
  EXPECT_FALSE(breaker.OnProbe(kStart + seconds(20), true, 0));
  EXPECT_TRUE(breaker.OnProbe(kStart + seconds(20), true, 0));
  EXPECT_TRUE(breaker.closed());
  EXPECT_EQ(breaker.transitions(), 2U);
}

// Up and down for ten minutes, with calls all the time.
TEST(BreakerTest, AFlappingNodeCostsAtMostOneTransitionInFiveSeconds) {
  for (const Cause cause : {Cause::kAway, Cause::kSilence}) {
    for (int period = 200; period <= 30'000; period += period / 3) {
      Breaker breaker{BreakerOptions{}};
      for (int ms = 0; ms < 600'000; ++ms) {
        const Timestamp now = kStart + milliseconds(ms);
        const bool up = ms % period < period / 2;
        if (breaker.state() == BreakerState::kOpen && up &&
            (now >= breaker.probe_at() || breaker.listens())) {
          CloseByProbes(breaker, now);
        } else if (breaker.closed() && up) {
          breaker.OnSuccess(now);
        } else if (breaker.closed()) {
          breaker.OnFailure(now, cause, 0);
        }
      }
      EXPECT_LE(breaker.transitions(), 120U + 2) << period;  // the first time there is no before
      EXPECT_GE(breaker.transitions(), 36U) << period;
    }
  }
}

}  // namespace
}  // namespace weir::redis
