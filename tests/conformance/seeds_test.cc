// The worked examples of the documents that weir was asked to implement, one test each, and the
// claims beside them that needed putting right.
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "testing/twin.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Noon;
using testing::SmallStore;

struct Subject {
  explicit Subject(const Quota& quota)
      : clock(Noon()), limiter(*Limiter::Create(quota, SmallStore(clock))) {}
  explicit Subject(std::string_view text) : Subject(*Quota::Parse(text)) {}

  int Admitted(int requests) {
    int admitted = 0;
    for (int i = 0; i < requests; ++i) {
      admitted += static_cast<int>(limiter.Check("user").allowed());
    }
    return admitted;
  }

  ManualClock clock;
  Limiter limiter;
};

TEST(Seeds, SlidingCounterOf80Before30NowAQuarterInLeaves10Of100) {
  Subject subject("100/min");
  ASSERT_TRUE(subject.limiter.Check("user", 80).allowed());
  subject.clock.Advance(seconds(75));  // a quarter into the next minute
  ASSERT_TRUE(subject.limiter.Check("user", 30).allowed());
  EXPECT_EQ(subject.limiter.Check("user", 0).remaining, 10U) << "0.75 * 80 + 30 = 90";
  EXPECT_TRUE(subject.limiter.Check("user").allowed());
}

TEST(Seeds, SlidingCounterOf5Before3NowAt30PercentAllowsOf7) {
  Subject subject("7/min");
  ASSERT_TRUE(subject.limiter.Check("user", 5).allowed());
  subject.clock.Advance(seconds(78));
  ASSERT_TRUE(subject.limiter.Check("user", 3).allowed());
  EXPECT_TRUE(subject.limiter.Check("user").allowed()) << "floor(0.7 * 5) + 3 = 6";
  EXPECT_FALSE(subject.limiter.Check("user").allowed());
}

TEST(Seeds, SlidingCounterOf40Before15NowAt70PercentIs27) {
  Subject subject("100/min");
  ASSERT_TRUE(subject.limiter.Check("user", 40).allowed());
  subject.clock.Advance(seconds(102));
  ASSERT_TRUE(subject.limiter.Check("user", 15).allowed());
  EXPECT_EQ(subject.limiter.Check("user", 0).remaining, 73U) << "0.3 * 40 + 15 = 27";
}

// At 100 s with a window of 60 s the log holds what is younger than 40 s: all four stay. A limit of
// four is then used up (not one more, as where count <= limit admits), a limit of five is not.
TEST(Seeds, ALogOf42And55And78And99HoldsAllFourAt100WithA60SecondWindow) {
  for (const uint32_t limit : {4U, 5U}) {
    Subject subject(*Quota::SlidingLog(limit, seconds(60)));
    const WallTime start = subject.clock.WallNow();
    const auto go_to = [&](int at) {
      subject.clock.Advance(start + seconds(at) - subject.clock.WallNow());
    };
    for (const int at : {42, 55, 78, 99}) {
      go_to(at);
      EXPECT_TRUE(subject.limiter.Check("user").allowed()) << at;
    }
    go_to(100);
    EXPECT_EQ(subject.limiter.Check("user", 0).remaining, limit - 4);
    const Decision decision = subject.limiter.Check("user");
    EXPECT_EQ(decision.allowed(), limit == 5);
    if (!decision.allowed()) {
      EXPECT_EQ(decision.retry_after, seconds(2)) << "the one of 42 leaves at 102";
      go_to(102);
      EXPECT_TRUE(subject.limiter.Check("user").allowed());
      EXPECT_FALSE(subject.limiter.Check("user").allowed());
    }
  }
}

TEST(Seeds, ALogForgetsWhatIsOlderThanTheWindow) {
  Subject subject("4/min sliding-log");
  const WallTime start = subject.clock.WallNow();
  for (const int at : {12, 39, 78, 99}) {
    subject.clock.Advance(start + seconds(at) - subject.clock.WallNow());
    EXPECT_TRUE(subject.limiter.Check("user").allowed()) << at;
  }
  subject.clock.Advance(seconds(1));
  EXPECT_EQ(subject.limiter.Check("user", 0).remaining, 2U) << "12 and 39 are before 40";
}

TEST(Seeds, TenASecondWithBurst20Admits20Of25AtOnce) {
  Subject subject("10/s burst 20");
  EXPECT_EQ(subject.Admitted(25), 20);
  subject.clock.Advance(milliseconds(500));
  EXPECT_EQ(subject.Admitted(25), 5) << "half a second refills five";
}

TEST(Seeds, TenWithin50MillisecondsAfter5SecondsOfSilencePass) {
  Subject subject("2/s burst 10");
  EXPECT_EQ(subject.Admitted(20), 10);
  subject.clock.Advance(seconds(5));
  int admitted = 0;
  for (int i = 0; i < 10; ++i) {
    admitted += subject.Admitted(1);
    subject.clock.Advance(milliseconds(5));
  }
  EXPECT_EQ(admitted, 10);
}

TEST(Seeds, Burst10AtTwoASecond) {
  Subject subject("2/s burst 10");
  EXPECT_EQ(subject.Admitted(30), 10);
  for (int i = 0; i < 10; ++i) {
    subject.clock.Advance(milliseconds(500));
    EXPECT_EQ(subject.Admitted(5), 1);
  }
  subject.clock.Advance(seconds(100));
  EXPECT_EQ(subject.Admitted(30), 10) << "never more than the burst";
}

TEST(Seeds, AFixedWindowLets200PassAcrossItsEdge) {
  Subject subject("100/min fixed-window");
  subject.clock.Advance(seconds(59));
  EXPECT_EQ(subject.Admitted(150), 100);
  subject.clock.Advance(seconds(1));
  EXPECT_EQ(subject.Admitted(150), 100);
}

TEST(Seeds, TheSameEdgeUnderASlidingCounterLetsNoneOfTheSecondHundredPassAtOnce) {
  Subject subject("100/min");
  subject.clock.Advance(seconds(59));
  EXPECT_EQ(subject.Admitted(150), 100);
  subject.clock.Advance(seconds(1));
  EXPECT_EQ(subject.Admitted(150), 0);
}

TEST(Seeds, LAtOneInstantPassesASlidingWindowToo) {
  Subject subject("100/min");
  EXPECT_EQ(subject.Admitted(150), 100);
}

TEST(Seeds, ThreeOfThreeIsNoExcessAndTheFourthIs) {
  for (const char* text : {"3/min", "3/min fixed-window", "3/min burst 3"}) {
    Subject subject(text);
    EXPECT_EQ(subject.Admitted(4), 3) << text;
  }
}

TEST(Seeds, TenAMinuteAndTwoSecondsBetweenAreTakenTogetherOrNotAtAll) {
  ManualClock clock(Noon());
  const auto store = *MemoryStore::Create(SmallStore(clock));
  Limiter minute = *Limiter::Create(*Quota::Parse("10/min"), store);
  Limiter gap = *Limiter::Create(*Quota::Parse("gap 2s"), store);
  const std::array<Charge, 2> charges = {Charge{&minute, "user"}, Charge{&gap, "user"}};
  std::array<Decision, 2> decisions;
  EXPECT_TRUE(CheckAll(charges, decisions).allowed());
  for (int i = 0; i < 19; ++i) {
    clock.Advance(milliseconds(100));  // faster than the gap: refused, and never recorded
    EXPECT_FALSE(CheckAll(charges, decisions).allowed());
    EXPECT_EQ(minute.Check("user", 0).remaining, 9U);
  }
  clock.Advance(milliseconds(100));
  EXPECT_TRUE(CheckAll(charges, decisions).allowed());
}

TEST(Seeds, PollingFasterThanTheGapStillGetsIn) {
  Subject subject("gap 2s");
  int admitted = 0;
  for (int i = 0; i < 100; ++i) {
    admitted += subject.Admitted(1);
    subject.clock.Advance(milliseconds(100));
  }
  EXPECT_EQ(admitted, 5);
}

TEST(Seeds, ASlowBucketIsNotFullAgainAfterAnIdleHour) {
  Subject subject("5000/day burst 5000");
  EXPECT_EQ(subject.Admitted(6000), 5000);
  subject.clock.Advance(std::chrono::hours(1));
  EXPECT_EQ(subject.Admitted(6000), 208) << "5000 / 24";
}

TEST(Seeds, ABucketOf20At10ASecondAdmits619OfAMinuteAt100ASecond) {
  Subject subject("10/s burst 20");
  int admitted = 0;
  for (int i = 0; i < 6000; ++i) {
    admitted += subject.Admitted(1);
    subject.clock.Advance(milliseconds(10));
  }
  EXPECT_EQ(admitted, 619) << "denials neither charge nor refill";
}

TEST(Seeds, TheWaitIsNeverZeroAtAWindowsEdge) {
  for (const char* text : {"1/min", "1/min fixed-window", "1/min burst 1"}) {
    Subject subject(text);
    EXPECT_EQ(subject.Admitted(1), 1);
    subject.clock.Advance(seconds(60) - std::chrono::microseconds(1));
    const Decision decision = subject.limiter.Check("user");
    EXPECT_FALSE(decision.allowed());
    EXPECT_GT(decision.retry_after, Duration::zero()) << text;
  }
}

}  // namespace
}  // namespace weir
