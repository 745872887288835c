// Single schedules that would break the protocol if it left something out. Each is played once with
// the fault planted, where it must do harm, and once without, where it must not.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "store/memory/stress_hooks.h"
#include "store/memory/table_probe.h"

namespace weir::store {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kHome = 100;

struct Bench {
  Bench(const Quota& quota, int wide_percent, Duration max_skew = milliseconds(100))
      : store(*MemoryStore::Create({.budget_bytes = 64 << 10,
                                    .max_skew = max_skew,
                                    .clock = &clock,
                                    .wide_percent = wide_percent})),
        limiter(*Limiter::Create(quota, store)),
        probe(*store) {}

  void Advance(Duration by) {
    clock.Advance(by);
    store->Maintain();
  }

  ManualClock clock;
  std::shared_ptr<MemoryStore> store;
  Limiter limiter;
  TableProbe probe;
};

class Interleaving : public ::testing::TestWithParam<int> {};

// A key is missed, another thread installs and spends it, time passes, a third thread takes its
// slot, and only then does the first one look again.
int SpentAtOneInstant(int wide_percent) {
  Bench bench(*Quota::TokenBucket(1, milliseconds(50), 1), wide_percent);
  const std::string key = bench.probe.KeysAt(kHome, 1)[0];
  const std::vector<std::string> neighbours =
      bench.probe.KeysAt(kHome - 1, bench.probe.compact() ? 9 : 5);
  const Timestamp stamp = bench.limiter.Now();
  int allowed = 0;
  InterruptAt(TestPoint::kInsertLock, [&] {
    allowed += static_cast<int>(bench.limiter.Check(key, stamp).allowed());
    InterruptAt(TestPoint::kSearch, [&] {
      bench.Advance(milliseconds(151));  // the key has expired at the floor
      for (const std::string& neighbour : neighbours) {
        EXPECT_TRUE(bench.limiter.Check(neighbour).allowed());
      }
      EXPECT_EQ(bench.probe.SlotsOf(key), 0U) << "the last neighbour has its slot";
    });
  });
  allowed += static_cast<int>(bench.limiter.Check(key, stamp).allowed());
  EXPECT_TRUE(Interrupted());
  return allowed;
}

TEST_P(Interleaving, AKeyReclaimedWhileItIsSearchedBeginsAtTheNewFloor) {
  EXPECT_EQ(SpentAtOneInstant(GetParam()), 1);
  const Planted fault(Mutant::kFloorBeforeSearch);
  EXPECT_EQ(SpentAtOneInstant(GetParam()), 2);
}

// A thread has read an empty window; its slot goes to another key, which gives all of it back.
// Returns what that key then has left.
uint32_t LeftByAnothersCharge(const char* quota, bool sweep) {
  Bench bench(*Quota::Parse(quota), 100);
  const std::vector<std::string> keys = bench.probe.KeysAt(kHome, 2);
  Receipt receipt;
  EXPECT_TRUE(bench.limiter.Check(keys[0], CheckOptions{.receipt = &receipt}).allowed());
  EXPECT_EQ(bench.limiter.GiveBack(receipt), 1U);
  if (sweep) {
    bench.Advance(seconds(250));
  }
  InterruptAt(TestPoint::kCommit, [&] {
    EXPECT_TRUE(bench.limiter.Check(keys[1], CheckOptions{.receipt = &receipt}).allowed());
    EXPECT_EQ(bench.limiter.GiveBack(receipt), 1U);
  });
  EXPECT_TRUE(bench.limiter.Check(keys[0]).allowed());
  EXPECT_TRUE(Interrupted());
  EXPECT_FALSE(bench.limiter.Check(keys[0]).allowed());
  return bench.limiter.Check(keys[1], 0).remaining;
}

TEST(WindowInterleaving, AnEmptyWindowThatIsOpenKeepsItsSlot) {
  for (const char* quota : {"1/min fixed-window", "1/min", "1/min fixed-window from first-hit"}) {
    SCOPED_TRACE(quota);
    EXPECT_EQ(LeftByAnothersCharge(quota, false), 1U);
    EXPECT_EQ(LeftByAnothersCharge(quota, true), 1U);
    const Planted fault(Mutant::kEmptyIsExpired);
    EXPECT_EQ(LeftByAnothersCharge(quota, false), 0U);
  }
}

// Between its two loads of a slot, the slot goes to another key, which spends all it has.
bool DeniedByAnothersDebt() {
  Bench bench(*Quota::TokenBucket(1, milliseconds(10), 1), 100);
  const std::vector<std::string> keys = bench.probe.KeysAt(kHome, 2);
  EXPECT_TRUE(bench.limiter.Check(keys[0]).allowed());
  bench.Advance(milliseconds(200));
  InterruptAt(TestPoint::kRead, [&] {
    EXPECT_TRUE(bench.limiter.Check(keys[1]).allowed());
    EXPECT_EQ(bench.probe.SlotsOf(keys[0]), 0U);
  });
  const bool denied = !bench.limiter.Check(keys[0]).allowed();
  EXPECT_TRUE(Interrupted());
  return denied;
}

TEST(WideInterleaving, TheIdentityIsReadAfterTheState) {
  EXPECT_FALSE(DeniedByAnothersDebt());
  const Planted fault(Mutant::kIdentityFirst);
  EXPECT_TRUE(DeniedByAnothersDebt());
}

// The sweeper comes to the bits of the epoch before while a thread whose stamp was accepted before
// the clock jumped looks for a key behind them.
bool SpentBehindAClearedBit(int wide_percent) {
  Bench bench(*Quota::TokenBucket(1, seconds(1), 30), wide_percent);
  const std::vector<std::string> keys = bench.probe.KeysAt(kHome, bench.probe.compact() ? 9 : 5);
  const std::string& key = keys.back();
  for (const std::string& each : keys) {
    EXPECT_TRUE(bench.limiter.Check(each, 30).allowed());
  }
  EXPECT_EQ(bench.probe.DistanceOf(key), 1);
  const unsigned epoch = bench.probe.table().epoch();
  while (bench.probe.table().epoch() == epoch) {
    bench.limiter.TakeUpTo(key, 30);
    bench.Advance(seconds(1));
  }
  const Timestamp stamp = bench.limiter.Now();
  bool allowed = false;
  InterruptAt(TestPoint::kCleared,
              [&] { allowed = bench.limiter.Check(key, stamp, 30).allowed(); });
  bench.Advance(seconds(70));
  InterruptAt(TestPoint::kCleared, nullptr);
  return allowed;
}

TEST_P(Interleaving, BitsAreClearedOnlyWhenAllCanSeeThatTheKeysBehindThemExpired) {
  EXPECT_FALSE(SpentBehindAClearedBit(GetParam()));
  const Planted fault(Mutant::kClearUnpublished);
  EXPECT_TRUE(SpentBehindAClearedBit(GetParam()));
}

// A key beyond its home that is never idle, through many epochs.
bool LosesAKeyThatIsHit(int wide_percent) {
  Bench bench(*Quota::TokenBucket(1, seconds(1), 5), wide_percent);
  const std::vector<std::string> keys = bench.probe.KeysAt(kHome, bench.probe.compact() ? 9 : 5);
  for (const std::string& each : keys) {
    EXPECT_TRUE(bench.limiter.Check(each, 5).allowed());
  }
  for (int second = 0; second < 200; ++second) {
    bench.Advance(seconds(1));
    if (!bench.limiter.Check(keys.back(), 1).allowed() ||
        bench.limiter.Check(keys.back(), 1).allowed()) {
      return true;
    }
  }
  return false;
}

TEST_P(Interleaving, AHitBeyondHomeKeepsItsPath) {
  EXPECT_FALSE(LosesAKeyThatIsHit(GetParam()));
  const Planted fault(Mutant::kUnprotectedHit);
  EXPECT_TRUE(LosesAKeyThatIsHit(GetParam()));
}

// Two charges; the first is given back, a third comes, then the second is given back late.
Duration OwedAfterALateGiveBack(int wide_percent) {
  Bench bench(*Quota::TokenBucket(1, milliseconds(10), 3), wide_percent);
  Receipt first;
  Receipt second;
  EXPECT_TRUE(bench.limiter.Check("key", CheckOptions{.receipt = &first}).allowed());
  EXPECT_TRUE(bench.limiter.Check("key", CheckOptions{.receipt = &second}).allowed());
  bench.Advance(milliseconds(5));
  bench.limiter.GiveBack(first);  // of its 10 ms, 5 are still owed; the second now ends at 15
  bench.Advance(milliseconds(9));
  EXPECT_TRUE(bench.limiter.Check("key").allowed());  // from 15 to 25
  bench.limiter.GiveBack(second);                     // 1 ms is still owed
  return bench.limiter.Check("key", 0).reset_after;
}

TEST_P(Interleaving, AReceiptKnowsOfGiveBacksAfterIt) {
  EXPECT_EQ(OwedAfterALateGiveBack(GetParam()), milliseconds(10));
  const Planted fault(Mutant::kRefundUncounted);
  EXPECT_EQ(OwedAfterALateGiveBack(GetParam()), milliseconds(5));
}

// A charge is given back with a stamp from before another one that it did not hold back.
int SpentAfterAnOldGiveBack(int wide_percent) {
  Bench bench(*Quota::TokenBucket(1, milliseconds(10), 1), wide_percent);
  Receipt first;
  const Timestamp begin = bench.limiter.Now();
  EXPECT_TRUE(bench.limiter.Check("key", CheckOptions{.receipt = &first}).allowed());
  bench.Advance(milliseconds(10));
  int allowed = static_cast<int>(bench.limiter.Check("key").allowed());
  bench.limiter.GiveBack(first, begin);
  return allowed + static_cast<int>(bench.limiter.Check("key").allowed());
}

TEST_P(Interleaving, AnOldStampGivesBackNoMoreThanIsOwed) {
  EXPECT_EQ(SpentAfterAnOldGiveBack(GetParam()), 1);
  const Planted fault(Mutant::kRefundToNow);
  EXPECT_EQ(SpentAfterAnOldGiveBack(GetParam()), 2);
}

TEST_P(Interleaving, AReceiptFromBeforeAReclaimTakesNothingFromTheKeysNextLife) {
  Bench bench(*Quota::TokenBucket(1, milliseconds(10), 2), GetParam());
  const std::vector<std::string> keys = bench.probe.KeysAt(kHome, 2);
  Receipt first;
  Receipt second;
  ASSERT_TRUE(bench.limiter.Check(keys[0], CheckOptions{.receipt = &first}).allowed());
  ASSERT_TRUE(bench.limiter.Check(keys[0], CheckOptions{.receipt = &second}).allowed());
  ASSERT_EQ(bench.limiter.GiveBack(first), 1U);  // the second now ends at 10 ms and says 20
  bench.Advance(milliseconds(112));
  ASSERT_TRUE(bench.limiter.Check(keys[1]).allowed());
  ASSERT_EQ(bench.probe.SlotsOf(keys[0]), 0U);
  const Timestamp floor = bench.limiter.Now() - milliseconds(100);  // at 12 ms
  ASSERT_TRUE(bench.limiter.Check(keys[0], floor).allowed());
  EXPECT_EQ(bench.limiter.GiveBack(second, floor), 0U);
  EXPECT_EQ(bench.limiter.Check(keys[0], floor, 0).reset_after, milliseconds(10));
}

// Count-always fills a state up and the rest is forgotten. Given back in full, it would take along
// what others were charged.
TEST(CountAlways, WhatAFullStateForgotIsNotGivenBack) {
  for (const char* text : {"10/h burst 10", "10/h", "10/h fixed-window",
                           "10/h fixed-window from first-hit", "gap 1h"}) {
    SCOPED_TRACE(text);
    Bench bench(*Quota::Parse(text), 50);
    ASSERT_TRUE(bench.limiter.Check("key", bench.limiter.quota().burst()).allowed());
    Receipt receipt;
    const Decision decision = bench.limiter.Check(
        "key", CheckOptions{.cost = 100, .mode = ChargeMode::kCountAlways, .receipt = &receipt});
    EXPECT_FALSE(decision.allowed());
    EXPECT_LE(bench.limiter.GiveBack(receipt), 22U);
    EXPECT_FALSE(bench.limiter.Check("key").allowed());
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Interleaving, ::testing::Values(0, 100),
                         [](const auto& param) { return param.param == 0 ? "Compact" : "Wide"; });

// A key's debt under the quota before is known, the key starts anew, and only then is its record
// made. Returns what it then has left.
uint32_t LeftAfterAReset(const char* before, const char* after) {
  ManualClock clock;
  Limiter limiter = *Limiter::Create(
      *Quota::Parse(before), {.budget_bytes = 64 << 10, .clock = &clock, .record_percent = 50});
  EXPECT_TRUE(limiter.Check("key", 5).allowed());
  EXPECT_TRUE(limiter.Update(*Quota::Parse(after)).ok());
  InterruptAt(TestPoint::kCarried, [&] { EXPECT_EQ(limiter.Reset("key"), ResetOutcome::kDone); });
  EXPECT_TRUE(limiter.Check("key").allowed());
  EXPECT_TRUE(Interrupted());
  return limiter.Check("key", 0).remaining;
}

TEST(RecordInterleaving, WhatAResetHasWipedOutIsNotCarriedOver) {
  for (const char* before : {"10/h sliced-window slices 6", "10/h sliding-log", "10/h burst 10"}) {
    SCOPED_TRACE(before);
    EXPECT_EQ(LeftAfterAReset(before, "10/h sliced-window slices 4"), 9U);
    const Planted fault(Mutant::kCarriedPastReset);
    EXPECT_EQ(LeftAfterAReset(before, "10/h sliced-window slices 4"), 4U);
  }
}

}  // namespace
}  // namespace weir::store
