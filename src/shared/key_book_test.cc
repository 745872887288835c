#include "shared/key_book.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir::shared {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kNow = 1000 * kSecond;
constexpr BookKey kKey{.low = 7, .high = 9};
constexpr Duration kLongest = seconds(5);

BookQuota Made(const char* text, uint32_t nodes = 1, uint32_t number = 0) {
  return {.number = number, .plan = MakeLocalPlan(*Quota::Parse(text), nodes)};
}

Decision Answer(Outcome outcome, uint32_t limit, uint32_t remaining, Duration retry,
                Duration reset) {
  Decision decision;
  decision.outcome = outcome;
  decision.limit = limit;
  decision.remaining = remaining;
  decision.retry_after = retry;
  decision.reset_after = reset;
  return decision;
}

class KeyBookTest : public ::testing::Test {
 protected:
  std::unique_ptr<KeyBook> book_ = *KeyBook::Create(KeyBook::kMinBytes);

  Decision Take(const BookQuota& quota, uint64_t cost, int64_t now,
                ChargeMode mode = ChargeMode::kAdmit, MayHaveRun known = MayHaveRun::kNo) {
    Decision decision;
    book_->Take(kKey, quota, cost, mode, known, now, decision, nullptr);
    return decision;
  }

  void Deny(const BookQuota& quota, uint64_t cost, Duration retry) {
    book_->NoteReply(kKey, quota, Answer(Outcome::kDenied, 10, 0, retry, seconds(10)), cost, kNow,
                     KeyBook::Denial::kRemember);
  }
};

TEST(KeyBook, RefusesTooLittleMemory) {
  EXPECT_FALSE(KeyBook::Create(1000));
}

TEST_F(KeyBookTest, RemembersADenialUntilItsRetryTime) {
  const BookQuota quota = Made("10/s burst 10");
  Deny(quota, 1, milliseconds(100));
  Decision decision;
  ASSERT_TRUE(book_->FindDenial(kKey, quota, 1, kNow + kSecond / 20, kLongest, decision));
  EXPECT_EQ(decision.basis, Basis::kCached);
  EXPECT_EQ(decision.outcome, Outcome::kDenied);
  EXPECT_EQ(decision.retry_after, milliseconds(50));
  EXPECT_EQ(decision.limit, 10U);
  EXPECT_FALSE(book_->FindDenial(kKey, quota, 1, kNow + kSecond / 10, kLongest, decision));
}

TEST_F(KeyBookTest, ADenialHoldsForLargerCostsOnly) {
  const BookQuota quota = Made("10/s burst 10");
  Deny(quota, 3, milliseconds(100));
  Decision decision;
  EXPECT_FALSE(book_->FindDenial(kKey, quota, 2, kNow, kLongest, decision));
  ASSERT_TRUE(book_->FindDenial(kKey, quota, 5, kNow, kLongest, decision));
  EXPECT_EQ(decision.retry_after, milliseconds(300));  // two units more, at ten a second
}

TEST_F(KeyBookTest, TheSmallestRefusedCostStays) {
  const BookQuota quota = Made("10/s burst 10");
  Deny(quota, 2, milliseconds(100));
  Deny(quota, 7, milliseconds(600));
  Decision decision;
  EXPECT_TRUE(book_->FindDenial(kKey, quota, 2, kNow, kLongest, decision));
}

TEST_F(KeyBookTest, WindowsDoNotGuessTheWaitOfALargerCost) {
  const BookQuota sliding = Made("10/min");
  Deny(sliding, 1, seconds(3));
  Decision decision;
  EXPECT_TRUE(book_->FindDenial(kKey, sliding, 1, kNow, kLongest, decision));
  EXPECT_FALSE(book_->FindDenial(kKey, sliding, 2, kNow, kLongest, decision));
  const BookQuota fixed = Made("10/min fixed-window", 1, 1);
  Deny(fixed, 1, seconds(3));
  ASSERT_TRUE(book_->FindDenial(kKey, fixed, 2, kNow, kLongest, decision));
  EXPECT_EQ(decision.retry_after, seconds(3));
}

TEST_F(KeyBookTest, ADenialEndsWithItsQuotaAGiveBackAnAdmissionAndItsLongestTime) {
  const BookQuota quota = Made("1/min burst 10");
  Decision decision;
  Deny(quota, 1, seconds(60));
  EXPECT_FALSE(book_->FindDenial(kKey, Made("2/min burst 10", 1, 1), 1, kNow, kLongest, decision));
  EXPECT_FALSE(book_->FindDenial(kKey, quota, 1, kNow + 5 * kSecond, kLongest, decision));
  ASSERT_TRUE(book_->FindDenial(kKey, quota, 1, kNow, kLongest, decision));
  book_->ForgetDenial(kKey);
  EXPECT_FALSE(book_->FindDenial(kKey, quota, 1, kNow, kLongest, decision));
  Deny(quota, 1, seconds(60));
  book_->NoteReply(kKey, quota, Answer(Outcome::kAllowed, 10, 3, {}, seconds(7)), 1, kNow + 1,
                   KeyBook::Denial::kRemember);
  EXPECT_FALSE(book_->FindDenial(kKey, quota, 1, kNow + 2, kLongest, decision));
  Deny(quota, 1, seconds(60));
  book_->Forget(kKey);
  EXPECT_FALSE(book_->FindDenial(kKey, quota, 1, kNow, kLongest, decision));
}

TEST_F(KeyBookTest, AnOlderReplyDoesNotReplaceANewerOne) {
  const BookQuota quota = Made("10/s burst 10");
  const auto denied = Answer(Outcome::kDenied, 10, 0, milliseconds(100), seconds(1));
  const auto allowed = Answer(Outcome::kAllowed, 10, 9, {}, milliseconds(100));
  book_->NoteReply(kKey, quota, denied, 1, kNow + 10, KeyBook::Denial::kRemember);
  book_->NoteReply(kKey, quota, allowed, 1, kNow, KeyBook::Denial::kRemember);
  Decision decision;
  EXPECT_TRUE(book_->FindDenial(kKey, quota, 1, kNow + 20, kLongest, decision));
}

TEST_F(KeyBookTest, AStrangerGetsThisNodesShareOfTheBurst) {
  const BookQuota quota = Made("30/s burst 30", 3);
  int admitted = 0;
  for (int i = 0; i < 50; ++i) {
    admitted += Take(quota, 1, kNow).allowed() ? 1 : 0;
  }
  EXPECT_EQ(admitted, 10);
  const Decision denied = Take(quota, 1, kNow);
  EXPECT_EQ(denied.basis, Basis::kLocal);
  EXPECT_EQ(denied.retry_after, milliseconds(100));  // a third of 30 a second
  EXPECT_EQ(denied.limit, 10U);
  EXPECT_EQ(denied.remaining, 0U);
}

TEST_F(KeyBookTest, ANotedKeyGoesOnWhereTheStoreLeftIt) {
  const BookQuota quota = Made("10/s burst 10", 2);
  book_->NoteReply(kKey, quota, Answer(Outcome::kAllowed, 10, 0, {}, seconds(1)), 1, kNow,
                   KeyBook::Denial::kRemember);
  EXPECT_FALSE(Take(quota, 1, kNow).allowed());
  // Two hundred milliseconds drain two units of the fleet: one of this node.
  EXPECT_TRUE(Take(quota, 1, kNow + kSecond / 5).allowed());
  EXPECT_FALSE(Take(quota, 1, kNow + kSecond / 5).allowed());
}

TEST_F(KeyBookTest, AWindowsDebtIsWhatIsUsedNotWhenItEnds) {
  const BookQuota quota = Made("100/min fixed-window");
  book_->NoteReply(kKey, quota, Answer(Outcome::kAllowed, 100, 90, {}, seconds(50)), 10, kNow,
                   KeyBook::Denial::kRemember);
  EXPECT_EQ(Take(quota, 0, kNow).remaining, 90U);
  // The window is over.
  EXPECT_EQ(Take(quota, 0, kNow + 51 * kSecond).remaining, 100U);
}

TEST_F(KeyBookTest, AShareOfLessThanOneUnitSavesUp) {
  const BookQuota quota = Made("gap 2s", 4);  // one in two seconds for all, in eight for this node
  EXPECT_FALSE(Take(quota, 1, kNow).allowed());
  const Decision denied = Take(quota, 1, kNow + kSecond);
  EXPECT_FALSE(denied.allowed());
  EXPECT_EQ(denied.retry_after, seconds(5));
  EXPECT_TRUE(Take(quota, 1, kNow + 6 * kSecond).allowed());
  EXPECT_FALSE(Take(quota, 1, kNow + 7 * kSecond).allowed());
  EXPECT_TRUE(Take(quota, 1, kNow + 14 * kSecond).allowed());
}

TEST_F(KeyBookTest, PeeksAndDryRunsTakeNothing) {
  const BookQuota quota = Made("10/s burst 10");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Take(quota, 5, kNow, ChargeMode::kDryRun).remaining, 10U);
    EXPECT_EQ(Take(quota, 0, kNow).remaining, 10U);
  }
  EXPECT_FALSE(book_->owes());
  EXPECT_EQ(book_->Stats(kNow).live, 0U);
}

TEST_F(KeyBookTest, CountsAlwaysAndUpTo) {
  const BookQuota quota = Made("10/s burst 10");
  EXPECT_EQ(Take(quota, 7, kNow).charged, 7U);
  EXPECT_EQ(Take(quota, 7, kNow, ChargeMode::kUpTo).charged, 3U);
  const Decision over = Take(quota, 5, kNow, ChargeMode::kCountAlways);
  EXPECT_FALSE(over.allowed());
  EXPECT_EQ(over.charged, 5U);
  EXPECT_EQ(Take(quota, 1, kNow).retry_after, milliseconds(600));
}

TEST_F(KeyBookTest, AQueueTellsWhenToStart) {
  const BookQuota quota = Made("10/s burst 21 queue");
  EXPECT_EQ(Take(quota, 1, kNow).start_after(), Duration::zero());
  EXPECT_EQ(Take(quota, 1, kNow).start_after(), milliseconds(100));
}

TEST_F(KeyBookTest, TellsTheStoreOnceWhatIsStillOwed) {
  const BookQuota quota = Made("10/s burst 10");
  Take(quota, 8, kNow);
  EXPECT_TRUE(book_->owes());
  EXPECT_EQ(book_->TakeOwed(kKey, quota, kNow + kSecond / 2), 3U);  // five have drained
  EXPECT_EQ(book_->TakeOwed(kKey, quota, kNow + kSecond / 2), 0U);
  EXPECT_FALSE(book_->owes());
  book_->PutOwedBack(kKey, quota, 3, kNow + kSecond / 2);
  EXPECT_EQ(book_->TakeOwed(kKey, quota, kNow + kSecond / 2), 3U);
}

TEST_F(KeyBookTest, WhatTheStoreMayHaveCountedIsNotToldAgain) {
  const BookQuota quota = Made("10/s burst 10");
  Take(quota, 4, kNow, ChargeMode::kAdmit, MayHaveRun::kYes);
  EXPECT_EQ(Take(quota, 0, kNow).remaining, 6U);
  EXPECT_FALSE(book_->owes());
  // Nor does it make the key fresh again, however often that happens.
  Take(quota, 6, kNow, ChargeMode::kAdmit, MayHaveRun::kYes);
  EXPECT_FALSE(Take(quota, 1, kNow, ChargeMode::kAdmit, MayHaveRun::kYes).allowed());
}

TEST_F(KeyBookTest, WhileTheStoreSettlesAKeyIsHeldToItsShare) {
  const BookQuota quota = Made("10/s burst 20", 2);
  const auto settling = [&](int64_t now) {
    Decision decision;
    return book_->TakeSettling(kKey, quota, 1, now, decision);
  };
  const auto note = [&](Duration reset, int64_t now, KeyBook::Word word) {
    book_->NoteReply(kKey, quota, Answer(Outcome::kAllowed, 20, 10, {}, reset), 1, now,
                     KeyBook::Denial::kRemember, word);
  };
  EXPECT_EQ(settling(kNow), KeyBook::Settling::kNot);  // nobody knows it
  note(seconds(1), kNow, KeyBook::Word::kSettling);
  EXPECT_EQ(settling(kNow), KeyBook::Settling::kNot);  // it was not decided here
  // The store goes. Half of the ten that are left are this node's.
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(Take(quota, 1, kNow).allowed());
  }
  EXPECT_FALSE(Take(quota, 1, kNow).allowed());
  // It returns, and has room for those that the other node has admitted and not told yet.
  EXPECT_EQ(book_->TakeOwed(kKey, quota, kNow), 5U);
  EXPECT_EQ(settling(kNow), KeyBook::Settling::kDenied);
  note(milliseconds(1500), kNow, KeyBook::Word::kSettling);
  EXPECT_EQ(settling(kNow), KeyBook::Settling::kDenied);
  // A unit in 200 ms is its share, whatever the store has; what the store denied comes back.
  EXPECT_EQ(settling(kNow + kSecond / 5), KeyBook::Settling::kFits);
  EXPECT_EQ(settling(kNow + kSecond / 5), KeyBook::Settling::kDenied);
  book_->GiveBackSettling(kKey, quota, 1);
  EXPECT_EQ(settling(kNow + kSecond / 5), KeyBook::Settling::kFits);
  EXPECT_FALSE(book_->owes());  // the store counts them itself
  // Settled: its word is all.
  note(milliseconds(500), kNow + kSecond / 5, KeyBook::Word::kFinal);
  EXPECT_EQ(settling(kNow + kSecond / 5), KeyBook::Settling::kNot);
}

TEST_F(KeyBookTest, AShareThatIsExhaustedSaysWhenItIsNot) {
  const BookQuota quota = Made("10/s burst 20", 2);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(Take(quota, 1, kNow).allowed());
  }
  Decision decision;
  ASSERT_EQ(book_->TakeSettling(kKey, quota, 1, kNow, decision), KeyBook::Settling::kDenied);
  EXPECT_EQ(decision.outcome, Outcome::kDenied);
  EXPECT_EQ(decision.basis, Basis::kLocal);
  EXPECT_EQ(decision.limit, 10U);
  EXPECT_EQ(decision.remaining, 0U);
  EXPECT_EQ(decision.retry_after, milliseconds(200));
  EXPECT_EQ(book_->TakeSettling(kKey, quota, 1, kNow + decision.retry_after.count(), decision),
            KeyBook::Settling::kFits);
}

TEST_F(KeyBookTest, AnOpenWindowOwesAllOfIt) {
  const BookQuota quota = Made("100/min fixed-window");
  book_->NoteReply(kKey, quota, Answer(Outcome::kAllowed, 100, 99, {}, seconds(50)), 1, kNow,
                   KeyBook::Denial::kRemember);
  Take(quota, 20, kNow);
  EXPECT_EQ(book_->TakeOwed(kKey, quota, kNow + 40 * kSecond), 20U);
}

TEST_F(KeyBookTest, GivesBackWhatIsStillOwed) {
  const BookQuota quota = Made("10/s burst 10");
  Decision decision;
  LocalReceipt receipt;
  book_->Take(kKey, quota, 5, ChargeMode::kAdmit, MayHaveRun::kNo, kNow, decision, &receipt);
  EXPECT_EQ(book_->GiveBack(kKey, quota, receipt, kNow + kSecond / 5), 3U);
  EXPECT_EQ(book_->GiveBack(kKey, quota, receipt, kNow + kSecond / 5), 0U);
  EXPECT_EQ(Take(quota, 0, kNow + kSecond / 5).remaining, 10U);
  EXPECT_FALSE(book_->owes());
}

TEST_F(KeyBookTest, NearItsLimitUntilItIsReset) {
  const BookQuota quota = Made("10/s burst 10");
  EXPECT_FALSE(book_->IsNearLimit(kKey, 1, kNow));
  book_->NoteReply(kKey, quota, Answer(Outcome::kAllowed, 10, 1, {}, milliseconds(900)), 1, kNow,
                   KeyBook::Denial::kRemember);
  EXPECT_TRUE(book_->IsNearLimit(kKey, 1, kNow));
  EXPECT_FALSE(book_->IsNearLimit(kKey, 1, kNow + kSecond));
}

TEST_F(KeyBookTest, CountsTheLiveNotesThatMakeRoom) {
  const BookQuota quota = Made("1/min burst 10");
  const auto noted = [&](uint64_t i) {
    book_->NoteReply({.low = i, .high = ~i}, quota,
                     Answer(Outcome::kAllowed, 10, 5, {}, seconds(300)), 1, kNow,
                     KeyBook::Denial::kRemember);
  };
  for (uint64_t i = 1; i <= book_->cells(); ++i) {
    noted(i);
  }
  EXPECT_EQ(book_->Stats(kNow).evicted, 0U);  // consecutive digests fill every place
  EXPECT_EQ(book_->Stats(kNow).live, book_->cells());
  for (uint64_t i = 1; i <= 100; ++i) {
    noted(i + book_->cells());
  }
  EXPECT_EQ(book_->Stats(kNow).evicted, 100U);
  EXPECT_EQ(book_->Stats(kNow).evicted_owed, 0U);
  EXPECT_EQ(book_->Stats(kNow + 301 * kSecond).live, 0U);
}

TEST_F(KeyBookTest, KeysThatOweGoLast) {
  const BookQuota quota = Made("1/min burst 10");
  Take(quota, 1, kNow);
  for (uint64_t i = 1; i <= 4 * book_->cells(); ++i) {
    book_->NoteReply({.low = i, .high = ~i}, quota,
                     Answer(Outcome::kAllowed, 10, 5, {}, seconds(3000)), 1, kNow,
                     KeyBook::Denial::kRemember);
  }
  EXPECT_EQ(book_->Stats(kNow).evicted_owed, 0U);
  EXPECT_EQ(book_->TakeOwed(kKey, quota, kNow), 1U);
}

TEST(KeyBook, ThreadsShareOneShareOfAKey) {
  const auto book = *KeyBook::Create(KeyBook::kMinBytes);
  const BookQuota quota = Made("1/h burst 1000", 2);
  std::atomic<uint64_t> admitted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        Decision decision;
        book->Take(kKey, quota, 1, ChargeMode::kAdmit, MayHaveRun::kNo, kNow, decision, nullptr);
        admitted += decision.allowed() ? 1 : 0;
        (void)book->FindDenial(kKey, quota, 1, kNow, kLongest, decision);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(admitted.load(), 500U);
  const BookQuota* const quotas[] = {&quota};
  OwedUnits owed[16];
  uint64_t told = 0;
  for (size_t cursor = 0; cursor < book->cells();) {
    const size_t found = book->Sweep(cursor, quotas, owed, kNow);
    for (size_t i = 0; i < found; ++i) {
      told += owed[i].units;
    }
  }
  EXPECT_EQ(told, 500U);
}

}  // namespace
}  // namespace weir::shared
