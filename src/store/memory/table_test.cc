// The parts of the table by themselves: words, lines, stripes, clock, counters, memory, dispatch.
#include "store/memory/table.h"

#include <chrono>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "base/mapped_memory.h"
#include "base/thread_index.h"
#include "store/memory/counters.h"
#include "store/memory/shared_state.h"
#include "store/memory/table_clock.h"

namespace weir::store {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(CompactWord, ChargesAndInstallsKeepTheOverflowBitAndNothingElse) {
  Line line{};
  const uint64_t identity = CompactLayout::IdentityOf(0x123456789abcdefU, 7);
  line.words[1] = kAuxBit;
  Snapshot victim = CompactLayout::Read(line, 1);
  EXPECT_EQ(CompactLayout::IdentityAt(line, 1, victim), 0U) << "the bit is no identity";
  ASSERT_TRUE(CompactLayout::Install(line, 1, victim, identity, 3, CompactLayout::kPayloadMask));
  Snapshot snapshot = CompactLayout::Read(line, 1);
  EXPECT_EQ(CompactLayout::IdentityAt(line, 1, snapshot), identity);
  EXPECT_EQ(CompactLayout::Generation(snapshot.value), 3U);
  EXPECT_EQ(CompactLayout::Payload(snapshot.value), CompactLayout::kPayloadMask);
  ASSERT_TRUE(CompactLayout::Commit(snapshot, 1, 42));
  snapshot = CompactLayout::Read(line, 1);
  EXPECT_EQ(CompactLayout::IdentityAt(line, 1, snapshot), identity);
  EXPECT_EQ(CompactLayout::Generation(snapshot.value), 1U);
  EXPECT_EQ(CompactLayout::Payload(snapshot.value), 42U);
  EXPECT_NE(snapshot.value & kAuxBit, 0U);
}

TEST(CompactWord, ACommitAgainstAnOlderWordFailsAndBringsTheNewOne) {
  Line line{};
  line.words[0] = CompactLayout::IdentityOf(1, 1) | 5;
  Snapshot old = CompactLayout::Read(line, 0);
  line.words[0] = CompactLayout::IdentityOf(2, 1) | 5;
  EXPECT_FALSE(CompactLayout::Commit(old, 0, 6));
  EXPECT_EQ(CompactLayout::IdentityAt(line, 0, old), CompactLayout::IdentityOf(2, 1));
}

TEST(Identity, IsNeverThatOfAnEmptySlotNorTouchesTheOverflowBit) {
  for (const uint64_t hash : {uint64_t{0}, ~uint64_t{0}, uint64_t{1} << 23, uint64_t{1} << 43}) {
    EXPECT_NE(CompactLayout::IdentityOf(hash, 0), 0U);
    EXPECT_EQ(CompactLayout::IdentityOf(hash, 0) & ~CompactLayout::kIdentityMask, 0U);
    EXPECT_NE(WideLayout::IdentityOf(hash, 0), 0U);
    EXPECT_EQ(WideLayout::IdentityOf(hash, 0) & kAuxBit, 0U);
    EXPECT_EQ(WideLayout::QuotaOf(WideLayout::IdentityOf(hash, 12345)), 12345U);
  }
}

TEST(WideSlot, IsTakenWithItsOverflowBitAndReadTogether) {
  Line line{};
  line.words[2] = kAuxBit;
  const uint64_t identity = WideLayout::IdentityOf(99, 5);
  Snapshot victim = WideLayout::Read(line, 1);
  ASSERT_TRUE(WideLayout::Install(line, 1, victim, identity, 2, WideLayout::kPayloadMask));
  EXPECT_EQ(line.words[2].load(), identity | kAuxBit);
  Snapshot snapshot = WideLayout::Read(line, 1);
  EXPECT_EQ(WideLayout::IdentityAt(line, 1, snapshot), identity);
  EXPECT_EQ(WideLayout::Generation(snapshot.value), 2U);
  EXPECT_EQ(WideLayout::Payload(snapshot.value), WideLayout::kPayloadMask);
  EXPECT_TRUE(WideLayout::StillCurrent(snapshot));
  line.words[3] = 1;
  EXPECT_FALSE(WideLayout::StillCurrent(snapshot));
  EXPECT_FALSE(WideLayout::Install(line, 1, snapshot, identity, 0, 7))
      << "no longer as it was read";
}

TEST(Table, HomesSpreadOverAllLinesButTheLastFifteen) {
  for (const auto kind : {algorithm::SlotKind::kCompact, algorithm::SlotKind::kWide}) {
    const Table table(kind, 64 << 10, base::MappedMemory::Pages::kDefault);
    ASSERT_TRUE(table.ok());
    EXPECT_EQ(table.HomeOf(0), 0U);
    EXPECT_EQ(table.HomeOf(~uint64_t{0}), table.line_count() - Table::kProbe);
    EXPECT_LE(table.line_count() * sizeof(Line), size_t{64} << 10);
    EXPECT_GE(table.line_count() * sizeof(Line), (size_t{64} << 10) * 97 / 100);
    EXPECT_EQ(table.slot_count(),
              table.line_count() * (kind == algorithm::SlotKind::kCompact ? 8 : 4));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(&table.line(0)) % 64, 0U);
    EXPECT_EQ(table.line(table.line_count() - 1).words[7].load(), 0U);
  }
}

template <class Layout>
class OverflowBits : public ::testing::Test {};
using Layouts = ::testing::Types<CompactLayout, WideLayout>;
TYPED_TEST_SUITE(OverflowBits, Layouts);

TYPED_TEST(OverflowBits, ProtectTheLinesPassedInTheCurrentEpochOnly) {
  Table table(TypeParam::kSlot, 64 << 10, base::MappedMemory::Pages::kDefault);
  ProtectPath<TypeParam>(table, 10, 3);
  for (const uint64_t line : {10, 11, 12}) {
    EXPECT_TRUE(Overflowed<TypeParam>(table.line(line)));
  }
  EXPECT_FALSE(Overflowed<TypeParam>(table.line(9)));
  EXPECT_FALSE(Overflowed<TypeParam>(table.line(13)));
  EXPECT_TRUE(PathProtected<TypeParam>(table, 10, 3));
  EXPECT_FALSE(PathProtected<TypeParam>(table, 10, 4));
  EXPECT_TRUE(PathProtected<TypeParam>(table, 20, 0)) << "at home there is nothing to pass";
  table.FlipEpoch();
  EXPECT_FALSE(PathProtected<TypeParam>(table, 10, 3));
  EXPECT_TRUE(Overflowed<TypeParam>(table.line(10))) << "either epoch's bit leads on";
  table.FlipEpoch();
  EXPECT_TRUE(PathProtected<TypeParam>(table, 10, 3));
}

TEST(MappedMemory, IsZeroedAlignedAndMovable) {
  for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{100'000}, size_t{3} << 20}) {
    base::MappedMemory memory(bytes, base::MappedMemory::Pages::kHuge);
    ASSERT_NE(memory.data(), nullptr);
    EXPECT_EQ(memory.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % (bytes >= (2 << 20) ? 2 << 20 : 4096),
              0U);
    const auto* const chars = static_cast<char*>(memory.data());
    for (size_t i = 0; i < bytes; i += 509) {
      ASSERT_EQ(chars[i], 0);
    }
    std::memset(memory.data(), 1, bytes);
    base::MappedMemory other = std::move(memory);
    EXPECT_EQ(memory.data(), nullptr);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(other.data(), chars);
  }
}

TEST(MappedMemory, RefusesWhatTheSystemCannotGive) {
  const base::MappedMemory memory(std::numeric_limits<size_t>::max() / 4,
                                  base::MappedMemory::Pages::kDefault);
  EXPECT_EQ(memory.data(), nullptr);
}

TEST(TableClock, AcceptsStampsFromTheFloorToALittlePastTheReading) {
  ManualClock source;
  source.SetNow(Timestamp(hours(5)));
  TableClock clock(source, seconds(1));
  const uint64_t start = clock.ReadSource();
  EXPECT_EQ(start, TableClock::kStartNs);
  EXPECT_EQ(clock.now_ns(), start);
  EXPECT_EQ(clock.floor_ns(), start - 1'000'000'000);
  EXPECT_TRUE(clock.Accepts(start - 1'000'000'000));
  EXPECT_FALSE(clock.Accepts(start - 1'000'000'001));
  EXPECT_TRUE(clock.Accepts(start + 250'000'000));
  EXPECT_FALSE(clock.Accepts(start + 250'000'001));
  EXPECT_TRUE(clock.Near(start + 1'000'000'000));
  EXPECT_FALSE(clock.Near(start + 1'000'000'001));
  EXPECT_FALSE(clock.Near(start - 1'000'000'001));
  EXPECT_FALSE(clock.Near(0));
  EXPECT_FALSE(clock.Near(~uint64_t{0}));
  EXPECT_EQ(clock.ToStore(Timestamp(hours(4))), start - 3'600'000'000'000U);
}

struct SkewTest : ::testing::Test {
  ManualClock clock;
  Limiter limiter = *Limiter::Create(*Quota::TokenBucket(1, seconds(10), 100),
                                     {.budget_bytes = 64 << 10, .clock = &clock});

  void SetUp() override { clock.SetNow(Timestamp(hours(1000))); }

  [[nodiscard]] Problem At(Duration offset) {
    return limiter.Check("key", limiter.Now() + offset).problem;
  }
};

TEST_F(SkewTest, StampsWithinASecondPassAndOthersAreRefusedAndChangeNothing) {
  ASSERT_TRUE(limiter.Check("key").allowed());
  EXPECT_EQ(At(seconds(-1)), Problem::kNone);
  EXPECT_EQ(At(seconds(1)), Problem::kNone);
  const uint32_t before = limiter.Check("key", 0).remaining;
  for (const Duration offset :
       {Duration(seconds(1)) + nanoseconds(1), Duration(seconds(-1)) - nanoseconds(1),
        Duration(hours(80)), Duration(hours(-80)), Duration(hours(24 * 36500)),
        Duration(hours(-24 * 36500))}) {
    EXPECT_EQ(At(offset), Problem::kNowTooFar) << offset.count();
  }
  EXPECT_EQ(limiter.Check("key", 0).remaining, before);
  EXPECT_EQ(limiter.store()->Stats().refusals, 6U);
}

TEST_F(SkewTest, AClockThatStepsBackStandsStillAndGoesOnFromThere) {
  ASSERT_TRUE(limiter.Check("key", 100).allowed());
  for (const Duration back : {Duration(milliseconds(1)), Duration(seconds(2)), Duration(hours(1)),
                              Duration(hours(900))}) {
    clock.Advance(-back);
    const Decision decision = limiter.Check("key");
    EXPECT_FALSE(decision.allowed()) << back.count();
    EXPECT_EQ(decision.problem, Problem::kNone);
    EXPECT_LE(decision.retry_after, seconds(11));
  }
  clock.Advance(seconds(7));
  EXPECT_FALSE(limiter.Check("key").allowed());
  clock.Advance(seconds(5));
  EXPECT_TRUE(limiter.Check("key").allowed());
  EXPECT_FALSE(limiter.Check("key").allowed());
}

TEST_F(SkewTest, AStepForwardIsBelievedBecauseTheClockIsOurs) {
  ASSERT_TRUE(limiter.Check("key", 100).allowed());
  clock.Advance(hours(24 * 365));
  EXPECT_TRUE(limiter.Check("key", 100).allowed());
  EXPECT_EQ(At(hours(-24)), Problem::kNowTooFar);
}

TEST(ThreadIndex, IsUniqueAmongLivingThreadsAndHandedOn) {
  const uint32_t mine = base::ThreadIndex();
  EXPECT_EQ(base::ThreadIndex(), mine);
  std::set<uint32_t> seen;
  for (int i = 0; i < 200; ++i) {
    uint32_t index = mine;
    std::thread([&] { index = base::ThreadIndex(); }).join();
    EXPECT_NE(index, mine);
    seen.insert(index);
  }
  EXPECT_EQ(seen.size(), 1U) << "one after the other they share one number";
}

TEST(Counters, LoseNothingHoweverManyThreadsCount) {
  Counters counters;
  constexpr int kThreads = 100;  // more than have a cell of their own
  constexpr int kEach = 500;
  std::vector<std::thread> threads;
  std::atomic<int> ready{0};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const Counters::Mine mine = counters.Get();
      ready.fetch_add(1);
      while (ready.load() < kThreads) {  // so that all of them hold an index at once
        std::this_thread::yield();
      }
      for (int n = 0; n < kEach; ++n) {
        mine.Add(&CounterCell::denials, 2);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(counters.Sum(&CounterCell::denials), uint64_t{2} * kThreads * kEach);
  EXPECT_EQ(counters.Sum(&CounterCell::allowed), 0U);
}

TEST(Dispatch, AutoTakesTheBestThereIsAndMissingOnesAreRefused) {
  EXPECT_TRUE(HasSimd(Simd::kScalar));
  EXPECT_TRUE(HasSimd(BestSimd()));
  const auto store = MemoryStore::Create({.budget_bytes = 64 << 10});
  ASSERT_TRUE(store.ok());
  EXPECT_EQ((*store)->Stats().simd, BestSimd());
  for (const Simd simd : {Simd::kScalar, Simd::kAvx2, Simd::kAvx512}) {
    const auto asked = MemoryStore::Create({.budget_bytes = 64 << 10, .simd = simd});
    EXPECT_EQ(asked.ok(), HasSimd(simd));
    if (!asked) {
      EXPECT_TRUE(asked.error().message.starts_with("simd: ")) << asked.error().message;
    }
  }
}

}  // namespace
}  // namespace weir::store
