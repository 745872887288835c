// The leaky bucket as a queue: worked examples, give-back, several quotas at once, changes,
// threads.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "testing/queue_oracle.h"
#include "testing/random.h"
#include "testing/twin.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::Noon;
using testing::SmallStore;
using testing::Start;

struct Bench {
  explicit Bench(const char* quota)
      : clock(Noon()), limiter(*Limiter::Create(*Quota::Parse(quota), SmallStore(clock))) {}

  Decision Take(Receipt& receipt) { return limiter.Check("key", {.receipt = &receipt}); }

  ManualClock clock;
  Limiter limiter;
};

// In milliseconds; -1 if denied.
int64_t StartOf(const Decision& decision) {
  return decision.allowed()
             ? std::chrono::duration_cast<milliseconds>(decision.start_after()).count()
             : -1;
}

TEST(Queue, StartsOneEveryTenthOfASecondAndTurnsTheRestAway) {
  Bench bench("10/s burst 4 queue");
  for (const int64_t expected : {0, 100, 200, 300, -1, -1}) {
    EXPECT_EQ(StartOf(bench.limiter.Check("key")), expected);
  }
  const Decision denied = bench.limiter.Check("key");
  EXPECT_EQ(denied.retry_after, milliseconds(100)) << "when the first of those who wait starts";
  EXPECT_EQ(denied.reset_after, milliseconds(400));
  EXPECT_EQ(bench.limiter.quota().longest_wait(), milliseconds(300));
  bench.clock.Advance(milliseconds(150));
  EXPECT_EQ(StartOf(bench.limiter.Check("key")), 250);
}

TEST(Queue, LetsTheFirstFewStartAtOnce) {
  Bench bench("10/s burst 6 queue after 3");
  for (const int64_t expected : {0, 0, 0, 100, 200, 300, -1}) {
    EXPECT_EQ(StartOf(bench.limiter.Check("key")), expected);
  }
  bench.clock.Advance(milliseconds(250));
  EXPECT_EQ(StartOf(bench.limiter.Check("key")), 150);
}

TEST(Queue, WhereAllStartAtOnceIsAMeter) {
  Bench queue("7/s burst 5 queue after 5");
  Bench meter("7/s burst 5 leaky-bucket");
  for (int i = 0; i < 200; ++i) {
    const Decision a = queue.limiter.Check("key");
    const Decision b = meter.limiter.Check("key");
    EXPECT_EQ(a.allowed(), b.allowed());
    EXPECT_EQ(a.retry_after, b.retry_after);
    EXPECT_EQ(a.remaining, b.remaining);
    queue.clock.Advance(milliseconds(31));
    meter.clock.Advance(milliseconds(31));
  }
}

TEST(Queue, GivesADeadlineOnAnyClock) {
  Bench bench("10/s burst 4 queue");
  bench.limiter.Check("key");
  const Timestamp now = bench.limiter.Now();
  const Decision second = bench.limiter.Check("key", now);
  EXPECT_EQ(second.StartAt(now), now + milliseconds(100));
  const std::chrono::steady_clock::time_point steady(seconds(5));
  EXPECT_EQ(second.StartAt(steady), steady + milliseconds(100));
}

TEST(Queue, RefusesAtOnceWhatWouldWaitTooLong) {
  Bench bench("10/s burst 20 queue");
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(bench.limiter.Check("key").allowed());
  }
  Receipt receipt;
  const auto ask = [&](Duration max_wait, uint64_t cost = 1) {
    return bench.limiter.Check("key", {.cost = cost, .receipt = &receipt, .max_wait = max_wait});
  };
  const Decision denied = ask(milliseconds(300));
  EXPECT_EQ(denied.outcome, Outcome::kDenied);
  EXPECT_EQ(denied.retry_after, milliseconds(200));
  EXPECT_EQ(denied.remaining, 0U) << "of those who start within 300 ms";
  EXPECT_EQ(receipt.charged, 0U);
  EXPECT_EQ(StartOf(ask(milliseconds(500))), 500);
  EXPECT_EQ(bench.limiter.store()->Stats().denials, 1U);

  const Decision never = ask(milliseconds(300), 5);  // its fifth unit waits for four
  EXPECT_EQ(never.outcome, Outcome::kRefused);
  EXPECT_EQ(never.problem, Problem::kMaxWaitTooShort);
  EXPECT_EQ(ask(-milliseconds(1)).problem, Problem::kMaxWaitTooShort);
  EXPECT_EQ(receipt.charged, 0U);
  EXPECT_EQ(bench.limiter.store()->Stats().refusals, 2U);
  EXPECT_NE(Explain(Problem::kMaxWaitTooShort).find("max_wait:"), std::string_view::npos);
  EXPECT_EQ(bench.limiter.Check("key", 0).reset_after, milliseconds(600)) << "nothing was charged";
}

TEST(Queue, TakesNoNoticeOfAMaximumWhereNothingWaits) {
  for (const char* text :
       {"10/s burst 20", "10/s leaky-bucket", "10/s", "gap 1s", "10/s sliding-log"}) {
    SCOPED_TRACE(text);
    Bench bench(text);
    const Decision decision = bench.limiter.Check("key", {.max_wait = Duration::zero()});
    EXPECT_TRUE(decision.allowed());
    EXPECT_EQ(decision.start_after(), Duration::zero());
    EXPECT_EQ(bench.limiter.Check("key", {.max_wait = -seconds(1)}).problem,
              Problem::kMaxWaitTooShort);
  }
}

TEST(QueueGiveBack, FreesTheLastPlaceForWhoComesNext) {
  Bench bench("10/s burst 4 queue");
  Receipt receipts[4];
  for (Receipt& receipt : receipts) {
    ASSERT_TRUE(bench.Take(receipt).allowed());
  }
  ASSERT_FALSE(bench.limiter.Check("key").allowed());
  EXPECT_EQ(bench.limiter.GiveBack(receipts[3]), 1U);
  EXPECT_EQ(bench.limiter.GiveBack(receipts[2]), 1U) << "now that is the last";
  EXPECT_EQ(StartOf(bench.limiter.Check("key")), 200);
  EXPECT_EQ(StartOf(bench.limiter.Check("key")), 300);
}

TEST(QueueGiveBack, OfAPlaceInTheMiddleMovesNobody) {
  Bench bench("10/s burst 4 queue");
  Receipt receipts[3];
  for (Receipt& receipt : receipts) {
    ASSERT_TRUE(bench.Take(receipt).allowed());
  }
  EXPECT_EQ(bench.limiter.GiveBack(receipts[1]), 0U);
  EXPECT_EQ(StartOf(bench.limiter.Check("key")), 300)
      << "not beside the third, which starts at 200";
}

TEST(QueueGiveBack, TakesAnythingWhileNobodyWaits) {
  Bench bench("10/s burst 8 queue after 4");
  Receipt receipts[4];
  for (Receipt& receipt : receipts) {
    ASSERT_EQ(StartOf(bench.Take(receipt)), 0);
  }
  EXPECT_EQ(bench.limiter.GiveBack(receipts[0]), 1U);
  EXPECT_EQ(StartOf(bench.limiter.Check("key")), 0);
  EXPECT_EQ(StartOf(bench.limiter.Check("key")), 100);
  EXPECT_EQ(bench.limiter.GiveBack(receipts[2]), 0U) << "now somebody waits";
}

TEST(QueueGiveBack, AfterADetourOfOthersIsNotTakenForTheLast) {
  Bench bench("10/s burst 8 queue");
  Receipt receipts[4];
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(bench.Take(receipts[i]).allowed());
  }
  ASSERT_EQ(bench.limiter.GiveBack(receipts[2]), 1U);
  ASSERT_EQ(StartOf(bench.Take(receipts[3])), 200);
  EXPECT_EQ(bench.limiter.GiveBack(receipts[1]), 0U);
  EXPECT_EQ(StartOf(bench.limiter.Check("key")), 300);
}

TEST(QueueGiveBack, WhileNobodyWaitsTakesNothingThatHasBeenServedMeanwhile) {
  Bench bench("10/s burst 8 queue after 4");
  Receipt first;
  Receipt second;
  ASSERT_EQ(StartOf(bench.Take(first)), 0);
  ASSERT_EQ(StartOf(bench.Take(second)), 0);
  ASSERT_EQ(bench.limiter.GiveBack(first), 1U) << "which moves the second forward";
  bench.clock.Advance(milliseconds(100));
  ASSERT_EQ(bench.limiter.Check("key", 0).reset_after, Duration::zero()) << "served";
  ASSERT_TRUE(bench.limiter.Check("key").allowed());
  EXPECT_EQ(bench.limiter.GiveBack(second), 0U) << "its mark is from before it was moved";
  EXPECT_EQ(bench.limiter.Check("key", 0).reset_after, milliseconds(100));
}

TEST(QueueGiveBack, OfPlacesThatAChangeCutOffMovesNobody) {
  for (const Duration later : {Duration::zero(), Duration(milliseconds(500))}) {
    for (const bool again : {false, true}) {
      Bench bench("10/s burst 100 queue");
      std::vector<Receipt> receipts(100);
      for (Receipt& receipt : receipts) {
        ASSERT_TRUE(bench.Take(receipt).allowed());
      }
      // More wait than the new queue remembers, so that the ends of many have become the same.
      ASSERT_TRUE(bench.limiter.Update(*Quota::Parse("10/s burst 20 queue")).ok());
      if (again) {
        ASSERT_TRUE(bench.limiter.Update(*Quota::Parse("10/s burst 30 queue")).ok());
      }
      bench.clock.Advance(later);
      const Duration reset = bench.limiter.Check("key", 0).reset_after;
      for (const size_t place : {size_t{45}, size_t{70}, size_t{99}}) {
        EXPECT_EQ(bench.limiter.GiveBack(receipts[place]), 0U) << place;
      }
      EXPECT_EQ(bench.limiter.Check("key", 0).reset_after, reset);
      bench.clock.Advance(reset - milliseconds(50));
      EXPECT_EQ(bench.limiter.GiveBack(receipts[50]), 0U) << "not even half of a place is owed";
    }
  }
}

TEST(QueueCheckAll, StartsWithTheLatestAndChargesAllOrNone) {
  ManualClock clock(Noon());
  auto store = *MemoryStore::Create(SmallStore(clock));
  Limiter fast = *Limiter::Create(*Quota::Parse("10/s burst 8 queue"), store);
  Limiter slow = *Limiter::Create(*Quota::Parse("2/s burst 3 queue"), store);
  Limiter meter = *Limiter::Create(*Quota::Parse("100/min"), store);
  Charge charges[] = {{&fast, "key"}, {&slow, "key"}, {&meter, "key"}};
  Decision parts[3];
  EXPECT_EQ(CheckAll(charges, parts).start_after, Duration::zero());
  const Verdict second = CheckAll(charges, parts);
  EXPECT_TRUE(second.allowed());
  EXPECT_EQ(second.start_after, milliseconds(500));
  EXPECT_EQ(parts[0].start_after(), milliseconds(100));
  EXPECT_TRUE(CheckAll(charges, parts).allowed());
  const Verdict fourth = CheckAll(charges, parts);
  EXPECT_FALSE(fourth.allowed());
  EXPECT_EQ(fourth.start_after, Duration::zero());
  EXPECT_EQ(fourth.retry_after, milliseconds(500));
  EXPECT_EQ(fast.Check("key", 0).reset_after, milliseconds(300)) << "the fourth took nothing here";

  clock.Advance(seconds(10));
  for (Charge& charge : charges) {
    charge.max_wait = milliseconds(400);
  }
  EXPECT_TRUE(CheckAll(charges, parts).allowed());
  EXPECT_FALSE(CheckAll(charges, parts).allowed()) << "the slow one would wait for 500 ms";
  EXPECT_EQ(fast.Check("key", 0).reset_after, milliseconds(100));
}

TEST(QueueCheckAll, CountsAlwaysWhateverTheLongestWait) {
  Bench bench("10/s burst 8 queue");
  Charge charge{&bench.limiter, "key", 1, ChargeMode::kCountAlways, Duration::zero()};
  Decision part;
  for (const int64_t expected : {0, 100, 200}) {
    EXPECT_TRUE(CheckAll({&charge, 1}, {&part, 1}).allowed());
    EXPECT_EQ(StartOf(part), expected);
  }
}

TEST(QueueUpdate, FromAMeterAndBackKeepsWhatIsOwed) {
  Bench bench("10/s burst 8 leaky-bucket");
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(bench.limiter.Check("key").allowed());
  }
  ASSERT_TRUE(bench.limiter.Update(*Quota::Parse("10/s burst 8 queue")).ok());
  EXPECT_NEAR(static_cast<double>(StartOf(bench.limiter.Check("key"))), 400, 1);
  ASSERT_TRUE(bench.limiter.Update(*Quota::Parse("10/s burst 8 queue after 4")).ok());
  EXPECT_NEAR(static_cast<double>(StartOf(bench.limiter.Check("key"))), 200, 1);
  ASSERT_TRUE(bench.limiter.Update(*Quota::Parse("10/s burst 8 leaky-bucket")).ok());
  EXPECT_EQ(StartOf(bench.limiter.Check("key")), 0);
  EXPECT_EQ(bench.limiter.Check("key", 0).remaining, 1U);
}

// Two threads ask for places at one instant: each place is given once, and each thread is told its
// own in order.
TEST(QueueThreads, ArePutInTheOrderInWhichTheyWereAdmitted) {
  constexpr int kPlaces = 20'000;
  ManualClock clock(Noon());
  Limiter limiter = *Limiter::Create(*Quota::Queue(1000, seconds(1), kPlaces), SmallStore(clock));
  std::vector<Duration> told[2];
  const auto ask = [&](std::vector<Duration>& mine) {
    for (;;) {
      const Decision decision = limiter.Check("key");
      if (!decision.allowed()) {
        return;
      }
      mine.push_back(decision.start_after());
    }
  };
  std::thread other([&] { ask(told[1]); });
  ask(told[0]);
  other.join();
  for (const auto& mine : told) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
  }
  std::vector<Duration> all = told[0];
  all.insert(all.end(), told[1].begin(), told[1].end());
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), size_t{kPlaces});
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i], milliseconds(i));
  }
}

// Threads that take places, give them back and ask again, at one instant: what remains obeys the
// rate, whichever order it came about in.
TEST(QueueThreads, ThatGiveBackNeverLetTwoStartAtOnce) {
  for (const int64_t undelayed : {1, 5}) {
    const Quota quota = *Quota::Queue(1000, seconds(1), 300, undelayed);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      ManualClock clock(Noon());
      Limiter limiter = *Limiter::Create(quota, SmallStore(clock));
      std::mutex mutex;
      std::vector<Start> starts;
      const auto work = [&](uint64_t id) {
        testing::Random random(seed * 2 + id);
        std::vector<std::pair<Receipt, Start>> mine;
        for (int i = 0; i < 400; ++i) {
          if (!mine.empty() && random.OneIn(2)) {
            const auto at = mine.begin() + static_cast<std::ptrdiff_t>(random.Below(mine.size()));
            const auto given = random.OneIn(2) ? at : mine.end() - 1;
            limiter.GiveBack(given->first);
            mine.erase(given);
          }
          Receipt receipt;
          const Decision decision = limiter.Check("key", {.receipt = &receipt});
          if (decision.allowed()) {
            mine.push_back({receipt, {decision.start_after().count(), 1}});
          }
        }
        const std::scoped_lock lock(mutex);
        for (const auto& [receipt, start] : mine) {
          starts.push_back(start);
        }
      };
      std::thread other(work, 1);
      work(0);
      other.join();
      std::sort(starts.begin(), starts.end(),
                [](const Start& a, const Start& b) { return a.at < b.at; });
      ASSERT_TRUE(testing::ObeyTheRate(quota, starts)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace weir
