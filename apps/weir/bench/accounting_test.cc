// When requests should leave, and what is said about those that did not: with a clock moved by
// hand, so that every figure is known beforehand.
#include <algorithm>

#include <gtest/gtest.h>

#include "apps/weir/bench/schedule.h"
#include "apps/weir/bench/tally.h"

namespace weir::bench {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Timestamp kStart{seconds(1000)};

TEST(Schedule, SpacesRequestsEvenlyWithoutDrift) {
  Schedule schedule(kStart, 3, hours(24));
  EXPECT_EQ(schedule.total(), 3U * 24 * 3600);
  for (uint64_t n = 0; n < schedule.total(); ++n) {
    const auto exact = Duration(static_cast<int64_t>(n) * 1'000'000'000 / 3);
    ASSERT_EQ(schedule.next(), kStart + exact) << n;
    schedule.Advance();
  }
  EXPECT_TRUE(schedule.done());
}

TEST(Schedule, CountsTheRequestsOfPartsOfASecond) {
  EXPECT_EQ(Schedule(kStart, 1000, milliseconds(1500)).total(), 1500U);
  EXPECT_EQ(Schedule(kStart, 10'000'000, microseconds(1)).total(), 10U);
  EXPECT_TRUE(Schedule(kStart, 1, milliseconds(999)).done());
}

// Sends whatever is due at `now`, as the load does while some connection has room.
uint64_t SendDue(Schedule& schedule, Tally& tally, Timestamp now) {
  uint64_t sent = 0;
  for (; !schedule.done() && schedule.next() <= now; ++sent) {
    tally.Sent(schedule.next(), now);
    schedule.Advance();
  }
  return sent;
}

TEST(Accounting, AGeneratorThatKeepsItsScheduleHasNoLateSends) {
  ManualClock clock;
  clock.SetNow(kStart);
  Schedule schedule(kStart, 1000, seconds(1));
  Tally tally(kStart);
  while (!schedule.done()) {
    EXPECT_EQ(SendDue(schedule, tally, clock.Now()), 1U);
    clock.Advance(milliseconds(1));
  }
  EXPECT_EQ(tally.sent(), 1000U);
  EXPECT_EQ(tally.late(), 0U);
  EXPECT_EQ(tally.lateness().max(), 0U);
}

TEST(Accounting, AGeneratorThatWasHeldUpSendsAllThatIsDueAndCallsItLate) {
  ManualClock clock;
  clock.SetNow(kStart);
  Schedule schedule(kStart, 1000, seconds(1));
  Tally tally(kStart);
  clock.Advance(milliseconds(100));
  // Due at 0, 1, … 100 ms; those of the last millisecond are not late.
  EXPECT_EQ(SendDue(schedule, tally, clock.Now()), 101U);
  EXPECT_EQ(tally.late(), 99U);
  EXPECT_EQ(tally.lateness().max(), 100'000'000U);
}

// A server that takes one request at a time and stops for 100 ms: a closed loop would report one
// slow answer, but a hundred requests had to wait.
TEST(Accounting, AServersPauseIsChargedToAllThatWaited) {
  ManualClock clock;
  clock.SetNow(kStart);
  Schedule schedule(kStart, 1000, milliseconds(200));
  Tally tally(kStart);
  clock.Advance(milliseconds(100));  // the first request is under way all the while
  while (!schedule.done()) {
    const Timestamp due = schedule.next();
    clock.SetNow(std::max(clock.Now(), due));
    tally.Sent(due, clock.Now());
    tally.Answered(due, clock.Now(), Answer::kAllowed);  // at once, from now on
    schedule.Advance();
  }
  EXPECT_EQ(tally.answers(), 200U);
  EXPECT_EQ(tally.unanswered(), 0U);
  EXPECT_EQ(tally.latency().max(), 100'000'000U);
  // Half of them waited, 50 ms on the average.
  EXPECT_NEAR(tally.latency().mean(), 25.25e6, 1);
  EXPECT_NEAR(static_cast<double>(tally.latency().ValueAt(0.75)), 50e6, 0.02 * 50e6);
}

TEST(Accounting, WarmUpCountsNowhere) {
  Tally tally(kStart);
  tally.Sent(kStart - milliseconds(1), kStart + seconds(1));
  tally.Answered(kStart - milliseconds(1), kStart + seconds(1), Answer::kError);
  tally.Sent(kStart, kStart);
  tally.Answered(kStart, kStart + milliseconds(2), Answer::kDenied);
  EXPECT_EQ(tally.sent(), 1U);
  EXPECT_EQ(tally.late(), 0U);
  EXPECT_EQ(tally.count(Answer::kError), 0U);
  EXPECT_EQ(tally.count(Answer::kDenied), 1U);
  EXPECT_EQ(tally.elapsed(), milliseconds(2));
  EXPECT_DOUBLE_EQ(tally.answers_per_second(), 500);
}

}  // namespace
}  // namespace weir::bench
