// A quota that becomes one of another kind: what a key had in use counts on from the change, no
// longer and no shorter, however late the key is asked again.
#include <rapidcheck.h>

#include <algorithm>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "weir/limiter.h"

#include "testing/oracle.h"
#include "testing/random.h"
#include "testing/twin.h"

namespace weir {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::Random;

MemoryOptions Store(const Clock& clock) {
  MemoryOptions options = testing::SmallStore(clock);
  options.budget_bytes = size_t{1} << 20;
  options.record_percent = 40;
  options.fleet_secret = 7;
  return options;
}

Quota RandomQuota(Random& random) {
  switch (random.Below(8)) {
    case 0:
      return testing::RandomBucket(random);
    case 1:
      return testing::RandomOddBucket(random);
    case 2:
    case 3:
      return testing::RandomWindow(random);
    case 4:
      return testing::RandomGap(random);
    case 5:
      return testing::RandomCalendar(random);
    default:
      return testing::RandomRecord(random);
  }
}

// One life of a key under several quotas.
class Life {
 public:
  explicit Life(uint64_t seed)
      : random_(seed),
        quota_(RandomQuota(random_)),
        limiter_(*Limiter::Create(quota_, Store(clock_))) {
    Begin();
  }

  // Empty, or what went wrong.
  std::string Run() {
    for (int change = 0; change < 3 && wrong_.empty(); ++change) {
      for (int step = 0; step < 25 && wrong_.empty(); ++step) {
        Wait();
        Ask();
      }
      Wait();
      Quota next = RandomQuota(random_);
      while (next.algorithm() == quota_.algorithm()) {
        next = RandomQuota(random_);
      }
      if (limiter_.Update(next).ok()) {
        quota_ = next;
        Begin();
      }
    }
    return wrong_;
  }

 private:
  // What is admitted from here on is within the law of the quota by itself.
  void Begin() {
    told_ += (told_.empty() ? "" : " -> ") + quota_.ToString();
    longest_ = std::max(longest_, static_cast<uint64_t>(quota_.window().count()));
    oracle_ = quota_.start() == WindowStart::kEpoch ? testing::MakeOracle(quota_) : nullptr;
  }

  void Wait() {
    if (!random_.OneIn(3)) {
      const uint64_t wait = random_.Scaled(1, random_.OneIn(6) ? longest_ : longest_ / 16 + 1);
      clock_.Advance(Duration(static_cast<int64_t>(wait / 1000 * 1000)));
    }
  }

  void Ask() {
    const uint64_t cost = random_.Scaled(1, std::max<uint64_t>(quota_.burst(), 1));
    Decision decision = Check(cost);
    if (decision.allowed() || random_.OneIn(2)) {
      return;
    }
    if (decision.retry_after <= Duration::zero()) {
      Fail("denied, and told to wait for " + std::to_string(decision.retry_after.count()));
      return;
    }
    clock_.Advance(decision.retry_after);
    if (!Check(cost).allowed()) {
      Fail("denied after the wait of " + std::to_string(decision.retry_after.count()));
    }
  }

  Decision Check(uint64_t cost) {
    const Decision decision = limiter_.Check("key", cost);
    const int64_t at = clock_.WallNow().time_since_epoch().count();
    if (oracle_ != nullptr && decision.charged != 0 && decision.allowed()) {
      if (!oracle_->Fits(at, decision.charged)) {
        Fail("admitted beyond the law, cost " + std::to_string(cost));
      }
      oracle_->Charge(at, decision.charged);
    }
    return decision;
  }

  void Fail(const std::string& what) { wrong_ = wrong_.empty() ? told_ + ": " + what : wrong_; }

  Random random_;
  ManualClock clock_{testing::Noon()};
  Quota quota_;
  Limiter limiter_;
  std::unique_ptr<testing::Oracle> oracle_;
  std::string told_;
  std::string wrong_;
  uint64_t longest_ = 1;
};

RC_GTEST_PROP(UpdateOfKindProperty, WhoWaitsIsAdmittedAndNobodyGetsMoreThanTheLaw, ()) {
  const std::string wrong = Life(*rc::gen::arbitrary<uint64_t>()).Run();
  if (!wrong.empty()) {
    RC_FAIL(wrong);
  }
}

// The first request after the change came late, and was dated back to the change: it left the
// window long before its time.
TEST(UpdateOfKind, ALateFirstRequestCountsForAWholeWindow) {
  for (const char* to : {"10/min sliding-log", "10/min sliced-window slices 6"}) {
    ManualClock clock(testing::Noon());
    Limiter limiter = *Limiter::Create(*Quota::Parse("10/min burst 10"), Store(clock));
    ASSERT_TRUE(limiter.Check("key", 4).allowed());
    ASSERT_TRUE(limiter.Update(*Quota::Parse(to)).ok());
    clock.Advance(seconds(10));
    ASSERT_EQ(limiter.Check("key", 0).remaining, 6U) << to;
    ASSERT_TRUE(limiter.Check("key", 6).allowed()) << to;
    EXPECT_FALSE(limiter.Check("key").allowed()) << to;
    clock.Advance(seconds(60) - Duration(1));
    EXPECT_EQ(limiter.Check("key", 0).remaining, 4U) << to << ": what was used before has left";
    clock.Advance(seconds(11));
    EXPECT_EQ(limiter.Check("key", 0).remaining, 10U) << to;
  }
}

TEST(UpdateOfKind, WhatWasUsedBeforeIsForgottenWhenItsWindowHasPassed) {
  for (const char* to : {"10/min sliding-log", "10/min sliced-window slices 6"}) {
    ManualClock clock(testing::Noon());
    Limiter limiter = *Limiter::Create(*Quota::Parse("10/h burst 10"), Store(clock));
    ASSERT_TRUE(limiter.Check("key", 10).allowed());
    ASSERT_TRUE(limiter.Update(*Quota::Parse(to)).ok());
    const Decision denied = limiter.Check("key", 10);
    ASSERT_FALSE(denied.allowed()) << to;
    EXPECT_GE(denied.retry_after, minutes(1)) << to;
    clock.Advance(denied.retry_after);
    EXPECT_TRUE(limiter.Check("key", 10).allowed()) << to;
  }
}

TEST(UpdateOfKind, FindsWhatAWindowShiftedPerKeyHolds) {
  for (const char* to : {"10/min sliding-log", "10/min sliced-window slices 6", "10/min",
                         "10/min burst 10", "10/min fixed-window"}) {
    ManualClock clock(testing::Noon());
    Limiter limiter =
        *Limiter::Create(*Quota::Parse("10/min fixed-window from per-key"), Store(clock));
    clock.Advance(seconds(13));
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(limiter.Check("key " + std::to_string(i), 6).allowed());
    }
    // Of half of them the window has ended by now.
    clock.Advance(seconds(30));
    uint32_t left[50];
    int ended = 0;
    for (int i = 0; i < 50; ++i) {
      left[i] = limiter.Check("key " + std::to_string(i), 0).remaining;
      ended += static_cast<int>(left[i] == 10);
    }
    ASSERT_TRUE(ended > 10 && ended < 40);
    ASSERT_TRUE(limiter.Update(*Quota::Parse(to)).ok());
    for (int i = 0; i < 50; ++i) {
      const std::string key = "key " + std::to_string(i);
      ASSERT_EQ(limiter.Check(key, 0).remaining, left[i]) << to << ", " << key;
      Decision batched;
      const std::string_view view = key;
      limiter.CheckMany({&view, 1}, {&batched, 1}, left[i]);
      EXPECT_TRUE(batched.allowed()) << to << ", " << key;
      EXPECT_FALSE(limiter.Check(key).allowed()) << to << ", " << key;
    }
  }
}

}  // namespace
}  // namespace weir
