// Reservations by example, under threads, and random lives of a key against exact oracles.
#include "weir/reservation.h"

#include <rapidcheck.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "weir/limiter.h"

#include "testing/oracle.h"
#include "testing/random.h"
#include "testing/twin.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Random;

struct Fixture {
  explicit Fixture(const char* text, size_t budget_bytes = size_t{1} << 20, int record_percent = 50)
      : limiter(
            *Limiter::Create(*Quota::Parse(text), MemoryOptions{.budget_bytes = budget_bytes,
                                                                .clock = &clock,
                                                                .wide_percent = 50,
                                                                .record_percent = record_percent,
                                                                .huge_pages = false})) {}

  uint32_t Left() { return limiter.Check("key", 0).remaining; }

  ManualClock clock{testing::Noon()};
  Limiter limiter;
};

constexpr const char* kEveryKind[] = {"100/h burst 100",
                                      "97/h burst 100",
                                      "100/h fixed-window",
                                      "100/h fixed-window from first-hit",
                                      "100/h fixed-window from per-key",
                                      "100/h",
                                      "100/day calendar",
                                      "100/h sliding-log",
                                      "100/h sliced-window slices 60"};

TEST(Reservation, GivesBackWhatWasNotUsedWithEveryKindOfQuota) {
  for (const char* text : kEveryKind) {
    SCOPED_TRACE(text);
    Fixture at(text);
    const Reserved got = at.limiter.Reserve("key", 40);
    ASSERT_TRUE(got.allowed());
    EXPECT_EQ(got.decision.charged, 40U);
    EXPECT_EQ(at.Left(), 60U);
    const Settlement settled = at.limiter.Settle(got.reservation, 15);
    EXPECT_EQ(settled.outcome, SettleOutcome::kSettled);
    EXPECT_EQ(settled.given_back, 25U);
    EXPECT_EQ(settled.charged, 0U);
    EXPECT_EQ(settled.decision.remaining, 85U);
    EXPECT_EQ(at.Left(), 85U);
  }
}

TEST(Reservation, CountsWhatWasUsedBeyondItEvenIfTheKeyThenOwes) {
  for (const char* text : kEveryKind) {
    SCOPED_TRACE(text);
    Fixture at(text);
    const Reserved got = at.limiter.Reserve("key", 40);
    const Settlement settled = at.limiter.Settle(got.reservation, 70);
    EXPECT_EQ(settled.charged, 30U);
    EXPECT_TRUE(settled.decision.allowed());
    EXPECT_EQ(at.Left(), 30U);
    const Reserved more = at.limiter.Reserve("key", 30);
    const Settlement over = at.limiter.Settle(more.reservation, 80);
    EXPECT_EQ(over.outcome, SettleOutcome::kSettled);
    EXPECT_EQ(over.decision.outcome, Outcome::kDenied);
    EXPECT_EQ(at.Left(), 0U);
    EXPECT_FALSE(at.limiter.Reserve("key", 1).allowed());
  }
}

TEST(Reservation, IsSettledOnceWhoeverRepeatsIt) {
  Fixture at("100/h fixed-window");
  const Reservation reservation = at.limiter.Reserve("key", 40).reservation;
  ASSERT_EQ(at.limiter.Settle(reservation, 10).given_back, 30U);
  for (const Cost actual : {Cost(10), Cost(0), Cost(100)}) {
    const Settlement again = at.limiter.Settle(reservation, actual);
    EXPECT_EQ(again.outcome, SettleOutcome::kAlreadySettled);
    EXPECT_EQ(again.actual, 10U);
    EXPECT_EQ(again.given_back + again.charged, 0U);
  }
  EXPECT_EQ(at.Left(), 90U);
  EXPECT_EQ(at.limiter.Settle(Reservation{12345}, 1).outcome, SettleOutcome::kGone);
  EXPECT_EQ(at.limiter.Settle(Reservation{}, 1).outcome, SettleOutcome::kGone);
}

TEST(Reservation, EndsByItselfAndStaysCharged) {
  Fixture at("100/h fixed-window");
  const Reserved got = at.limiter.Reserve("key", 40, {.lasts = seconds(30)});
  at.clock.Advance(seconds(30) - Duration(1));
  const Reserved in_time = at.limiter.Reserve("key", 10, {.lasts = seconds(30)});
  at.clock.Advance(Duration(1));
  EXPECT_EQ(at.limiter.Settle(got.reservation, 1).outcome, SettleOutcome::kGone);
  EXPECT_EQ(at.limiter.Settle(in_time.reservation, 1).given_back, 9U);
  EXPECT_EQ(at.Left(), 59U);
}

TEST(Reservation, DeniedChargesNothingAndTakesNoMemory) {
  Fixture at("100/h fixed-window");
  ASSERT_TRUE(at.limiter.Reserve("key", 80).allowed());
  const uint64_t records = at.limiter.store()->Stats().records;
  for (int i = 0; i < 1000; ++i) {
    const Reserved denied = at.limiter.Reserve("key", 30);
    ASSERT_EQ(denied.decision.outcome, Outcome::kDenied);
    ASSERT_EQ(denied.reservation, Reservation{});
  }
  EXPECT_EQ(at.limiter.store()->Stats().records, records);
  EXPECT_EQ(at.Left(), 20U);
}

TEST(Reservation, RefusesBadInputAndChangesNothing) {
  Fixture at("100/h fixed-window");
  const auto problem = [&](std::string_view key, Cost cost, const ReserveOptions& options = {}) {
    const Reserved got = at.limiter.Reserve(key, cost, options);
    EXPECT_EQ(got.reservation, Reservation{});
    EXPECT_EQ(got.decision.outcome, Outcome::kRefused);
    return got.decision.problem;
  };
  EXPECT_EQ(problem("", 1), Problem::kKeyEmpty);
  EXPECT_EQ(problem("key", 101), Problem::kCostAboveBurst);
  EXPECT_EQ(problem("key", -1), Problem::kCostTooLarge);
  EXPECT_EQ(problem("key", 1, {.lasts = Duration(999)}), Problem::kLeaseOutOfRange);
  EXPECT_EQ(problem("key", 1, {.lasts = Quota::kMaxLease + Duration(1)}),
            Problem::kLeaseOutOfRange);
  EXPECT_EQ(problem("key", 1, {.now = at.limiter.Now() + hours(1)}), Problem::kNowTooFar);
  EXPECT_EQ(at.limiter.store()->Stats().records, 0U);
  EXPECT_EQ(at.Left(), 100U);

  const Reservation open = at.limiter.Reserve("key", 10).reservation;
  const Settlement refused = at.limiter.Settle(open, -1);
  EXPECT_EQ(refused.outcome, SettleOutcome::kRefused);
  EXPECT_EQ(refused.decision.problem, Problem::kCostTooLarge);
  EXPECT_EQ(at.limiter.Settle(open, 1, at.limiter.Now() + hours(1)).outcome,
            SettleOutcome::kRefused);
  EXPECT_TRUE(at.limiter.Settle(open, 0).settled()) << "it was still open";

  Fixture held("concurrency 5 lease 30s");
  EXPECT_EQ(held.limiter.Reserve("key", 1).decision.problem, Problem::kWrongQuota);
  Fixture without("100/h", size_t{1} << 20, 0);
  EXPECT_EQ(without.limiter.Reserve("key", 1).decision.problem, Problem::kNoRecords);
  EXPECT_EQ(without.limiter.Settle(open, 1).outcome, SettleOutcome::kGone);
}

TEST(Reservation, BelongsToTheLimiterThatMadeIt) {
  ManualClock clock{testing::Noon()};
  auto store =
      *MemoryStore::Create({.budget_bytes = 1 << 20, .clock = &clock, .record_percent = 20});
  Limiter mine = *Limiter::Create(*Quota::Parse("100/h fixed-window"), store);
  Limiter other = *Limiter::Create(*Quota::Parse("100/h fixed-window"), store);
  const Reservation reservation = mine.Reserve("key", 10).reservation;
  EXPECT_EQ(other.Settle(reservation, 0).outcome, SettleOutcome::kGone);
  EXPECT_TRUE(mine.Settle(reservation, 0).settled());
}

TEST(Reservation, SurvivesAChangeOfQuota) {
  Fixture at("100/h burst 100");
  const Reservation first = at.limiter.Reserve("key", 40).reservation;
  const Reservation second = at.limiter.Reserve("key", 40).reservation;
  ASSERT_TRUE(at.limiter.Update(*Quota::Parse("200/h burst 200")).ok());
  EXPECT_EQ(at.Left(), 120U);
  EXPECT_EQ(at.limiter.Settle(first, 10).given_back, 30U);
  EXPECT_EQ(at.Left(), 150U);
  // Another kind: what was charged cannot be found any more, what is used on top is counted.
  ASSERT_TRUE(at.limiter.Update(*Quota::Parse("200/h fixed-window")).ok());
  const uint32_t left = at.Left();
  const Settlement settled = at.limiter.Settle(second, 60);
  EXPECT_TRUE(settled.settled());
  EXPECT_EQ(settled.charged, 20U);
  EXPECT_EQ(at.Left(), left - 20);
}

TEST(Reservation, GivesBackOnlyWhatIsStillOwed) {
  Fixture bucket("60/min burst 60");
  const Reservation reservation = bucket.limiter.Reserve("key", 60).reservation;
  bucket.clock.Advance(seconds(45));
  EXPECT_EQ(bucket.limiter.Settle(reservation, 10).given_back, 15U) << "45 have come back by time";
  EXPECT_EQ(bucket.Left(), 60U);

  Fixture window("60/min fixed-window");
  const Reservation old = window.limiter.Reserve("key", 60).reservation;
  window.clock.Advance(minutes(1));
  ASSERT_TRUE(window.limiter.Check("key", 50).allowed());
  EXPECT_EQ(window.limiter.Settle(old, 0).given_back, 0U) << "its window has closed";
  EXPECT_EQ(window.Left(), 10U);
}

TEST(Reservation, OfAGapIsOneRequestWhateverItCosts) {
  Fixture at("gap 1min");
  const Reservation used = at.limiter.Reserve("key", 500).reservation;
  EXPECT_FALSE(at.limiter.Reserve("key", 1).allowed());
  EXPECT_TRUE(at.limiter.Settle(used, 700).settled());
  EXPECT_EQ(at.limiter.Check("key").retry_after, minutes(1));
  at.clock.Advance(minutes(1));
  const Reservation unused = at.limiter.Reserve("key", 500).reservation;
  EXPECT_TRUE(at.limiter.Settle(unused, 0).settled());
  EXPECT_TRUE(at.limiter.Check("key").allowed());
}

TEST(Reservation, WithoutRoomChargesNothingAndRoomComesBack) {
  Fixture at("1000/h fixed-window", size_t{128} << 10);
  std::vector<Reservation> open;
  Reserved last;
  for (int i = 0; i < 10'000; ++i) {
    last = at.limiter.Reserve("key " + std::to_string(i % 20), 1, {.lasts = minutes(1)});
    if (!last.allowed()) {
      break;
    }
    open.push_back(last.reservation);
  }
  EXPECT_EQ(last.decision.basis, Basis::kClosed);
  // Half of what the sketch leaves, less six percent for finding them, at 96 bytes: with 80 it
  // would be 742 of them, with 112 it would be 530.
  EXPECT_NEAR(static_cast<double>(open.size()), 618, 6);
  uint64_t charged = 0;
  for (int i = 0; i < 20; ++i) {
    charged += 1000 - at.limiter.Check("key " + std::to_string(i), 0).remaining;
  }
  EXPECT_EQ(charged, open.size());
  EXPECT_GT(at.limiter.store()->Stats().overflow, 0U);
  at.clock.Advance(minutes(2));
  EXPECT_TRUE(at.limiter.Reserve("key 0", 1).allowed());
}

TEST(Reservation, HasANumberThatCanBeWrittenDown) {
  Fixture at("100000/h fixed-window");
  std::set<uint64_t> ids;
  for (int i = 0; i < 1000; ++i) {
    const Reservation reservation = at.limiter.Reserve("key", 1).reservation;
    ids.insert(reservation.id);
    const std::string text = reservation.ToString();
    ASSERT_EQ(text.size(), 16U);
    ASSERT_EQ(*Reservation::Parse(text), reservation);
  }
  EXPECT_EQ(ids.size(), 1000U);
  EXPECT_EQ(Reservation{0xab}.ToString(), "00000000000000ab");
  for (const char* text : {"", "ab", "00000000000000000", "0000000000000000", "000000000000000g",
                           "-00000000000000a", "0x000000000000ab", " 0000000000000ab"}) {
    const auto parsed = Reservation::Parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_NE(parsed.error().message.find("16 hexadecimal digits"), std::string::npos);
  }
}

TEST(ReservationsUnderThreads, OfRacingSettlesOneCounts) {
  Limiter limiter = *Limiter::Create(
      *Quota::Parse("1000000/h sliding-window"),
      MemoryOptions{.budget_bytes = 4 << 20, .record_percent = 50, .huge_pages = false});
  uint64_t expected = 0;
  for (uint32_t round = 0; round < 300; ++round) {
    const Reservation reservation = limiter.Reserve("key", 10).reservation;
    std::atomic<int> ready{0};
    std::atomic<uint32_t> settled{0};
    std::atomic<uint64_t> counted{0};
    const auto settle = [&](uint64_t actual) {
      ready.fetch_add(1);
      while (ready.load() < 2) {
      }
      const Settlement settlement = limiter.Settle(reservation, actual);
      EXPECT_NE(settlement.outcome, SettleOutcome::kGone);
      if (settlement.settled()) {
        settled.fetch_add(1);
        counted.fetch_add(actual);
      }
    };
    std::thread other(settle, 3);
    settle(25);
    other.join();
    ASSERT_EQ(settled.load(), 1U);
    expected += counted.load();
  }
  EXPECT_EQ(limiter.Check("key", 0).remaining, 1'000'000 - expected);
}

TEST(ReservationsUnderThreads, AddUpToWhatWasSettled) {
  Limiter limiter = *Limiter::Create(
      *Quota::Parse("100000000/h fixed-window"),
      MemoryOptions{.budget_bytes = 4 << 20, .record_percent = 50, .huge_pages = false});
  constexpr int kThreads = 4;
  std::atomic<uint64_t> used{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random random(static_cast<uint64_t>(t) + 1);
      for (int i = 0; i < 3000; ++i) {
        const Reserved got = limiter.Reserve("key", random.Below(50));
        ASSERT_TRUE(got.allowed());
        const uint64_t actual = random.Below(80);
        ASSERT_TRUE(limiter.Settle(got.reservation, actual).settled());
        ASSERT_FALSE(limiter.Settle(got.reservation, actual).settled());
        used.fetch_add(actual);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(limiter.Check("key", 0).remaining, 100'000'000 - used.load());
}

// What the same quota would be with an overdraft, of which as much as a limit is remembered.
Quota Twice(const Quota& quota) {
  const int64_t limit = quota.limit();
  switch (quota.algorithm()) {
    case Algorithm::kTokenBucket:
      return *Quota::TokenBucket(limit, quota.window(), 2 * int64_t{quota.burst()});
    case Algorithm::kSlidingLog:
      return *Quota::SlidingLog(2 * limit, quota.window());
    default:
      return *Quota::FixedWindow(2 * limit, quota.window());
  }
}

// One key. Windows and logs must show exactly what was settled and what is still estimated; buckets
// give back less where time has paid already, so they lie between that and no giving back at all.
std::string Follow(uint64_t seed, bool exact) {
  Random random(seed);
  ManualClock clock(testing::Noon());
  const auto limit = static_cast<int64_t>(random.Between(1, 60));
  // Whole microseconds, which every slot can tell apart; a bucket asked between them may answer for
  // the one before (docs/accuracy.md, Ticks).
  const Duration window = microseconds(random.Scaled(1000, 3'600'000'000));
  const Quota quota = !exact            ? *Quota::TokenBucket(limit, window * limit, limit)
                      : random.OneIn(2) ? *Quota::SlidingLog(limit, window)
                                        : *Quota::FixedWindow(limit, window);
  MemoryOptions options = testing::SmallStore(clock);
  options.record_percent = 50;
  Limiter limiter = *Limiter::Create(quota, options);
  const std::unique_ptr<testing::Oracle> least = testing::MakeOracle(quota);
  const std::unique_ptr<testing::Oracle> most = testing::MakeOracle(quota);
  const std::unique_ptr<testing::Oracle> overdraft = testing::MakeOracle(Twice(quota));
  struct Open {
    Reservation reservation;
    size_t handle;
    int64_t ends;
    uint64_t estimate;
    bool settled = false;
  };
  std::vector<Open> opened;
  bool owed = false;
  const auto unit = static_cast<uint64_t>(window / microseconds(1));
  for (int step = 0; step < 80; ++step) {
    const auto fail = [&](const std::string& what) {
      return "seed " + std::to_string(seed) + ", step " + std::to_string(step) + ", " +
             quota.ToString() + ": " + what;
    };
    const auto now = clock.WallNow().time_since_epoch().count();
    const uint64_t choice = random.Below(5);
    if (choice < 2) {
      const uint64_t estimate = random.Below(static_cast<uint64_t>(limit) / 2 + 2);
      const Duration lasts = microseconds(random.Scaled(1, 3 * unit));
      const Reserved got = limiter.Reserve("key", estimate, {.lasts = lasts});
      const bool fits = estimate == 0 || least->Fits(now, estimate);
      if (got.allowed() && !fits) {
        return fail("reserved what does not fit");
      }
      if (exact && !owed && !got.allowed() && fits) {
        return fail("denied what fits");
      }
      if (!got.allowed() && estimate <= quota.burst() && most->Fits(now, estimate)) {
        return fail("denied what fits even without giving back");
      }
      if (got.allowed()) {
        opened.push_back(
            {got.reservation, least->Charge(now, estimate), now + lasts.count(), estimate});
        most->Charge(now, estimate);
        overdraft->Charge(now, estimate);
      }
    } else if (choice < 4 && !opened.empty()) {
      Open& one = opened[random.Below(opened.size())];
      uint64_t actual = random.Below(2 * one.estimate + 2);
      if (actual > one.estimate && !overdraft->Fits(now, actual - one.estimate)) {
        actual = one.estimate;
      }
      const Settlement settlement = limiter.Settle(one.reservation, actual);
      const SettleOutcome expected = now >= one.ends ? SettleOutcome::kGone
                                     : one.settled   ? SettleOutcome::kAlreadySettled
                                                     : SettleOutcome::kSettled;
      // A record past its end may be there still or not, and says the same.
      if (settlement.outcome != expected) {
        return fail("settled wrongly");
      }
      if (settlement.settled()) {
        one.settled = true;
        if (actual < one.estimate) {
          least->Lower(one.handle, actual);
        } else if (actual > one.estimate) {
          least->Charge(now, actual - one.estimate);
          most->Charge(now, actual - one.estimate);
          overdraft->Charge(now, actual - one.estimate);
          // What falls out of a log is remembered a little longer than it need be.
          owed = owed || settlement.decision.outcome == Outcome::kDenied;
        }
      }
    } else {
      clock.Advance(microseconds(random.Scaled(1, 2 * unit)));
      continue;
    }
    const uint64_t left = limiter.Check("key", 0).remaining;
    const uint64_t upper = least->Remaining(now, quota.burst());
    const bool tight = exact && !(owed && quota.algorithm() == Algorithm::kSlidingLog);
    const uint64_t lower = tight ? upper : most->Remaining(now, quota.burst());
    if (left > upper || left < lower) {
      return fail(std::to_string(left) + " left, expected " + std::to_string(lower) + " to " +
                  std::to_string(upper));
    }
  }
  return "";
}

TEST(ReservationOracle, WindowsAndLogsShowExactlyWhatWasSettled) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    ASSERT_EQ(Follow(seed, true), "");
  }
}

TEST(ReservationOracle, BucketsNeverGiveBackMoreThanWasPaidNorLessThanNothing) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    ASSERT_EQ(Follow(seed, false), "");
  }
}

RC_GTEST_PROP(ReservationOracleProperty, HoldsForAnyLife, ()) {
  RC_ASSERT(Follow(*rc::gen::arbitrary<uint64_t>(), *rc::gen::arbitrary<bool>()) == "");
}

}  // namespace
}  // namespace weir
