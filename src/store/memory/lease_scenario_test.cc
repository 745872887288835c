// Leases, one step at a time: several threads played on one, at instants chosen to go wrong. Each
// story is told again with a fault planted, which must then show.
#include <chrono>
#include <memory>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "store/memory/lease_probe.h"
#include "store/memory/stress_hooks.h"

namespace weir::store {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr const char* kKey = "one hot key of twenty";
constexpr uint32_t kBurst = 1000;

class LeaseStory : public ::testing::Test {
 protected:
  explicit LeaseStory(const char* quota = "1000/s burst 1000")
      : store_(*MemoryStore::Create({.budget_bytes = 256 << 10, .clock = &clock_})),
        limiter_(*Limiter::Create(*Quota::Parse(quota), store_)) {
    Check();
    clock_.Advance(hours(2));
    store_->Maintain();
  }

  uint32_t Check(uint64_t cost = 1) { return limiter_.Check(kKey, limiter_.Now(), cost).charged; }

  // As this one, which then holds a lease.
  uint32_t TakeLease(PlayedThread& thread) {
    const PlayedThread::As self(thread);
    uint64_t admitted = 0;
    EXPECT_EQ(CheckAsHot(limiter_, kKey, limiter_.Now(), 1, &admitted).basis, Basis::kLease);
    EXPECT_TRUE(HoldsLeases());
    return static_cast<uint32_t>(admitted);
  }

  // As much as it gets by single requests.
  uint32_t SpendAll(PlayedThread& thread, Timestamp now) {
    const PlayedThread::As self(thread);
    uint32_t spent = 0;
    while (limiter_.Check(kKey, now).allowed()) {
      ++spent;
    }
    return spent;
  }
  uint32_t SpendAll(PlayedThread& thread) { return SpendAll(thread, limiter_.Now()); }

  // All that the key's state has, in one request, so that no lease is asked back.
  uint32_t TakeAllOfState() {
    const uint32_t charged = Check(limiter_.Check(kKey, 0).remaining);
    EXPECT_EQ(limiter_.Check(kKey, 0).remaining, 0U);
    return charged;
  }

  ManualClock clock_{WallTime(hours(24 * 20'000))};
  std::shared_ptr<MemoryStore> store_;
  Limiter limiter_;
  PlayedThread one_{0};
  PlayedThread two_{1};
};

class Bucket : public LeaseStory {
 protected:
  // Units admitted at one instant, of which there are kBurst.
  uint32_t AfterRefilling() {
    TakeLease(one_);
    clock_.Advance(milliseconds(100));  // 31 units were left, and 100 have refilled
    return TakeAllOfState() + SpendAll(one_);
  }

  uint32_t AfterGivingBackWhatLayBelow() {
    Receipt receipt;
    limiter_.Check(kKey, CheckOptions{.cost = 100, .receipt = &receipt});
    TakeLease(one_);
    EXPECT_EQ(limiter_.GiveBack(receipt), 100U);
    clock_.Advance(milliseconds(40));
    return TakeAllOfState() + SpendAll(one_);
  }

  // Units admitted with the stamp of the first instant.
  uint32_t ByAStampBeforeTheLease() {
    const Timestamp then = limiter_.Now();
    const uint32_t all = TakeAllOfState();
    clock_.Advance(milliseconds(600));
    TakeLease(one_);
    return all + SpendAll(one_, then);
  }

  // The owner spends while another gives back, and time has gone on.
  uint32_t SpentWhileOthersGiveBack() {
    Receipt receipt;
    limiter_.Check(kKey, CheckOptions{.cost = 100, .receipt = &receipt});
    TakeLease(one_);
    uint32_t admitted = 0;
    InterruptAt(TestPoint::kReckoned, [&] {
      clock_.Advance(milliseconds(110));
      const PlayedThread::As owner(one_);
      for (int i = 0; i < 20; ++i) {
        admitted += Check();
      }
    });
    limiter_.GiveBack(receipt);
    EXPECT_TRUE(Interrupted());
    EXPECT_EQ(admitted, 20U);
    return admitted + TakeAllOfState() + SpendAll(one_);
  }

  // The other denies just before the owner says that it has spent.
  uint32_t ClosedBeforeSpending(TestPoint point) {
    uint32_t admitted = TakeLease(one_);
    InterruptAt(point, [&] {
      {
        const PlayedThread::As other(two_);
        admitted += TakeAllOfState();
      }
      admitted += SpendAll(two_);
    });
    admitted += SpendAll(one_);
    EXPECT_TRUE(Interrupted());
    return admitted + SpendAll(two_);
  }
};

TEST_F(Bucket, WhatRefillsIsNotSpentFromALease) {
  EXPECT_EQ(AfterRefilling(), kBurst);
}

TEST_F(Bucket, WhatRefillsWouldBeSpentTwice) {
  const Planted fault(Mutant::kLeaseNeverFades);
  EXPECT_GT(AfterRefilling(), kBurst);
}

TEST_F(Bucket, ALeaseMovesWithWhatIsGivenBackBelowIt) {
  EXPECT_EQ(AfterGivingBackWhatLayBelow(), kBurst);
}

TEST_F(Bucket, ALeaseThatDidNotMoveWouldAdmitTooMuch) {
  const Planted fault(Mutant::kLeaseUncounted);
  EXPECT_GT(AfterGivingBackWhatLayBelow(), kBurst);
}

TEST_F(Bucket, AStampFromBeforeTheLeaseGetsNothingOfIt) {
  EXPECT_EQ(ByAStampBeforeTheLease(), kBurst);
}

TEST_F(Bucket, AStampFromBeforeTheLeaseWouldGoOverTheLimitOfThen) {
  const Planted fault(Mutant::kLeaseOverdrawn);
  EXPECT_GT(ByAStampBeforeTheLease(), kBurst);
}

TEST_F(Bucket, AGiveBackKnowsOfWhatWasSpentMeanwhile) {
  // What is left of the lease moves with the counter, and so may be less than it could.
  EXPECT_LE(SpentWhileOthersGiveBack(), kBurst);
}

TEST_F(Bucket, AGiveBackReckonedTooEarlyWouldMoveWhatWasSpent) {
  const Planted fault(Mutant::kRefundBeforeSpends);
  EXPECT_GT(SpentWhileOthersGiveBack(), kBurst);
}

TEST_F(Bucket, ALeaseClosedBeforeItIsSpentFromIsNotSpent) {
  EXPECT_EQ(ClosedBeforeSpending(TestPoint::kLeaseSpend), kBurst);
}

TEST_F(Bucket, ALeaseClosedJustAfterItWasSpentFromLosesNothing) {
  EXPECT_EQ(ClosedBeforeSpending(TestPoint::kLeaseSpent), kBurst);
}

TEST_F(Bucket, AnOwnerThatDoesNotAskSpendsWhatOthersHave) {
  const Planted fault(Mutant::kLeaseUnasked);
  EXPECT_GT(ClosedBeforeSpending(TestPoint::kLeaseSpend), kBurst);
}

// Spends between the closing and the giving back.
TEST_F(Bucket, WhatIsSpentWhileALeaseIsBeingClosedCountsOnce) {
  uint32_t admitted = TakeLease(one_);
  admitted += TakeAllOfState();
  InterruptAt(TestPoint::kLeaseClosed, [&] {
    const PlayedThread::As self(one_);
    admitted += limiter_.Check(kKey, limiter_.Now()).charged;
  });
  admitted += SpendAll(two_);
  EXPECT_TRUE(Interrupted());
  EXPECT_EQ(admitted + SpendAll(one_) + SpendAll(two_), kBurst);
}

class Window : public LeaseStory, public ::testing::WithParamInterface<const char*> {
 protected:
  Window() : LeaseStory(GetParam()) {}

  // Units admitted in the window after the one that the lease is from. It turns so soon after that
  // nobody has given the lease back for being idle.
  uint32_t InTheNextWindow() {
    limiter_.Check(kKey);  // opens it, if that is how it begins
    clock_.Advance(hours(1) - milliseconds(1));
    TakeLease(one_);
    clock_.Advance(milliseconds(2));
    return TakeAllOfState() + SpendAll(one_);
  }
};

TEST_P(Window, ALeaseEndsWithIt) {
  EXPECT_EQ(InTheNextWindow(), kBurst);
}

TEST_P(Window, ALeaseThatOutlivedItWouldAdmitTooMuch) {
  const Planted fault(Mutant::kLeaseNeverFades);
  EXPECT_GT(InTheNextWindow(), kBurst);
}

INSTANTIATE_TEST_SUITE_P(Quotas, Window,
                         ::testing::Values("1000/h fixed-window",
                                           "1000/h fixed-window from first-hit"));

}  // namespace
}  // namespace weir::store
