// Records: the arena by itself, and the quotas that live in it.
#include "store/memory/records.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

namespace weir::store {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr size_t kSmall = size_t{256} << 10;

// Fills the arena with records of `words` that live until `until`; how many there was room for.
uint64_t Fill(Records& records, uint64_t first, uint64_t words, uint64_t until, uint64_t floor) {
  uint64_t added = 0;
  for (uint64_t i = first;; ++i, ++added) {
    const uint64_t hash = i * 0x9e3779b97f4a7c15U;
    Records::Bucket& bucket = records.BucketOf(hash);
    const Records::Holder lock(bucket);
    Record* const record = records.Add(bucket, hash, 1, words, floor);
    if (record == nullptr) {
      return added;
    }
    record->live_until_ns = until;
    for (uint64_t& word : record->body()) {
      EXPECT_EQ(word, 0U);
      word = hash;
    }
  }
}

uint64_t CountIntact(const Records& records, uint64_t first, uint64_t count, uint64_t words) {
  uint64_t intact = 0;
  for (uint64_t i = first; i < first + count; ++i) {
    const uint64_t hash = i * 0x9e3779b97f4a7c15U;
    Records::Bucket& bucket = records.BucketOf(hash);
    const Records::Holder lock(bucket);
    Record* const record = records.Find(bucket, hash, 1);
    if (record != nullptr && record->body().size() == words) {
      const auto body = record->body();
      intact += static_cast<uint64_t>(
          std::all_of(body.begin(), body.end(), [&](uint64_t word) { return word == hash; }));
    }
  }
  return intact;
}

TEST(Records, HoldWhatWasPutIntoThemAndUseNearlyAllOfTheBudget) {
  for (const uint64_t words : {2U, 5U, 101U, 1000U}) {
    Records records(kSmall, base::MappedMemory::Pages::kDefault);
    ASSERT_TRUE(records.ok());
    const uint64_t added = Fill(records, 1, words, 100, 0);
    EXPECT_EQ(records.count(), added);
    EXPECT_EQ(CountIntact(records, 1, added, words), added) << words;
    // A header of 32 bytes, at most a sixteenth of rounding, six percent of buckets.
    const double exact = static_cast<double>(added * (32 + 8 * words));
    EXPECT_GT(exact, 0.75 * kSmall) << words;
  }
}

TEST(Records, TakeBackWhatHasExpiredAndNothingElse) {
  Records records(kSmall, base::MappedMemory::Pages::kDefault);
  const uint64_t first = Fill(records, 1, 20, 100, 0);
  EXPECT_EQ(Fill(records, 10'000'000, 20, 300, 99), 0U);  // all live still
  EXPECT_EQ(CountIntact(records, 1, first, 20), first);
  const uint64_t second = Fill(records, 10'000'000, 20, 300, 100);
  EXPECT_EQ(second, first);
  EXPECT_EQ(CountIntact(records, 10'000'000, second, 20), second);
  EXPECT_EQ(CountIntact(records, 1, first, 20), 0U);
}

// Whatever sizes an arena was full of, once all of it has expired it serves any other as if new.
TEST(Records, WhatOneSizeLeavesServesEveryOther) {
  for (const uint64_t before : {4U, 13U, 101U, 1000U}) {
    for (const uint64_t after : {2U, 4U, 8U, 101U, 201U, 4000U}) {
      SCOPED_TRACE(std::to_string(before) + " -> " + std::to_string(after));
      Records fresh(kSmall, base::MappedMemory::Pages::kDefault);
      const uint64_t most = Fill(fresh, 1, after, 100, 0);
      Records records(kSmall, base::MappedMemory::Pages::kDefault);
      const uint64_t first = Fill(records, 1, before, 100, 0);
      // The list of the first to come is its own to hold, so what is on it stays until next time,
      // and may be in the way of one large block.
      uint64_t second = Fill(records, 10'000'000, after, 300, 100);
      second += Fill(records, 10'000'000 + second, after, 300, 101);
      EXPECT_GE(second + 1, most);
      EXPECT_EQ(CountIntact(records, 10'000'000, second, after), second);
      EXPECT_EQ(CountIntact(records, 1, first, before), 0U);
    }
  }
}

struct Fixture {
  explicit Fixture(const char* text, MemoryOptions options = {})
      : limiter(*Limiter::Create(*Quota::Parse(text), With(options))) {}

  MemoryOptions With(MemoryOptions options) const {
    options.clock = &clock;
    options.huge_pages = false;
    if (options.budget_bytes == MemoryOptions{}.budget_bytes) {
      options.budget_bytes = size_t{1} << 20;
    }
    return options;
  }

  ManualClock clock{WallTime(hours(24 * 20'000))};
  Limiter limiter;
};

TEST(SlidingLog, CountsExactlyOverEveryWindow) {
  Fixture at("3/min sliding-log");
  EXPECT_TRUE(at.limiter.Check("key").allowed());
  at.clock.Advance(seconds(30));
  EXPECT_TRUE(at.limiter.Check("key", 2).allowed());
  const Decision denied = at.limiter.Check("key");
  EXPECT_FALSE(denied.allowed());
  EXPECT_EQ(denied.retry_after, seconds(30));
  EXPECT_EQ(denied.reset_after, seconds(60));
  at.clock.Advance(seconds(30) - Duration(1));
  EXPECT_FALSE(at.limiter.Check("key").allowed());
  at.clock.Advance(Duration(1));
  EXPECT_TRUE(at.limiter.Check("key").allowed());
  EXPECT_EQ(at.limiter.Check("key", 0).remaining, 0U);
}

TEST(SlidingLog, RefusedTrafficTakesNoMemory) {
  Fixture at("2/min sliding-log");
  for (int i = 0; i < 1000; ++i) {
    at.limiter.Check("key");
    at.limiter.Check("other " + std::to_string(i), 0);  // peeks
  }
  EXPECT_EQ(at.limiter.store()->Stats().records, 1U);
}

TEST(SlidingLog, CountAlwaysStaysExact) {
  Fixture at("3/min sliding-log");
  for (int i = 0; i < 5; ++i) {
    at.limiter.Check("key", CheckOptions{.mode = ChargeMode::kCountAlways});
    at.clock.Advance(seconds(10));
  }
  // Counted at 0, 10, 20, 30, 40 s; now 50 s. The first to fit is when only two are left.
  const Decision denied = at.limiter.Check("key");
  EXPECT_FALSE(denied.allowed());
  EXPECT_EQ(denied.retry_after, seconds(30));  // 20 s + 60 s
  at.clock.Advance(seconds(30));
  EXPECT_TRUE(at.limiter.Check("key").allowed());
}

TEST(SlidingLog, GivingBackDoesNotForgetWhatFellOutOfTheRing) {
  Fixture at("3/min sliding-log");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(at.limiter.Check("key").allowed());
    at.clock.Advance(seconds(10));
  }
  Receipt receipt;
  EXPECT_FALSE(
      at.limiter.Check("key", {.mode = ChargeMode::kCountAlways, .receipt = &receipt}).allowed());
  EXPECT_EQ(at.limiter.GiveBack(receipt), 1U);
  // Charged at 0, 10 and 20 s, the first of which had fallen out; now 30 s.
  EXPECT_EQ(at.limiter.Check("key", 0).remaining, 0U);
  at.clock.Advance(seconds(40));
  EXPECT_EQ(at.limiter.Check("key", 0).remaining, 2U) << "it is dated as the oldest then left";
  at.clock.Advance(seconds(10));
  EXPECT_EQ(at.limiter.Check("key", 0).remaining, 3U);
}

TEST(SlidingLog, GivesBackWhatIsStillInTheWindowAndOnce) {
  Fixture at("5/min sliding-log");
  Receipt first;
  Receipt second;
  EXPECT_TRUE(at.limiter.Check("key", CheckOptions{.cost = 3, .receipt = &first}).allowed());
  at.clock.Advance(seconds(20));
  EXPECT_TRUE(at.limiter.Check("key", CheckOptions{.cost = 2, .receipt = &second}).allowed());
  Receipt copy = first;
  EXPECT_EQ(at.limiter.GiveBack(first), 3U);
  EXPECT_EQ(at.limiter.GiveBack(first), 0U);
  EXPECT_EQ(at.limiter.GiveBack(copy), 0U);  // nothing of that stamp is left
  EXPECT_EQ(at.limiter.Check("key", 0).remaining, 3U);
  at.clock.Advance(seconds(60));
  EXPECT_EQ(at.limiter.GiveBack(second), 0U);
}

TEST(SlidingLog, AChangedLimitKeepsEveryStamp) {
  Fixture at("2/min sliding-log", {.record_percent = 50});
  EXPECT_TRUE(at.limiter.Check("key").allowed());
  at.clock.Advance(seconds(10));
  EXPECT_TRUE(at.limiter.Check("key").allowed());
  ASSERT_TRUE(at.limiter.Update(*Quota::Parse("100/min sliding-log")).ok());
  for (int i = 0; i < 98; ++i) {
    ASSERT_TRUE(at.limiter.Check("key").allowed()) << i;
  }
  EXPECT_EQ(at.limiter.Check("key").retry_after, seconds(50));
  ASSERT_TRUE(at.limiter.Update(*Quota::Parse("1/min sliding-log")).ok());
  const Decision denied = at.limiter.Check("key");
  EXPECT_FALSE(denied.allowed());
  EXPECT_EQ(denied.retry_after, seconds(60));
  ASSERT_TRUE(at.limiter.Update(*Quota::Parse("101/min burst 101")).ok());  // another kind
  EXPECT_EQ(at.limiter.Check("key", 0).remaining, 1U);
}

TEST(SlidingLog, TheLargestLimitIsHeld) {
  Fixture at("65536/s sliding-log", {.budget_bytes = size_t{2} << 20});
  EXPECT_EQ(at.limiter.TakeUpTo("key", 100'000).charged, 65536U);
  EXPECT_EQ(at.limiter.Check("key").retry_after, seconds(1));
  at.clock.Advance(seconds(1));
  EXPECT_EQ(at.limiter.TakeUpTo("key", 100'000).charged, 65536U);
}

TEST(SlicedWindow, CountsBySlices) {
  Fixture at("500/h sliced-window slices 60");
  EXPECT_TRUE(at.limiter.Check("key", 300).allowed());
  at.clock.Advance(minutes(30));
  EXPECT_TRUE(at.limiter.Check("key", 200).allowed());
  const Decision denied = at.limiter.Check("key");
  EXPECT_FALSE(denied.allowed());
  // The first slice began now minus 30 min and counts until its last instant is an hour old.
  EXPECT_EQ(denied.retry_after, minutes(31) - Duration(1));
  at.clock.Advance(denied.retry_after - Duration(1));
  EXPECT_FALSE(at.limiter.Check("key").allowed());
  at.clock.Advance(Duration(1));
  EXPECT_EQ(at.limiter.Check("key", 0).remaining, 300U);
}

TEST(SlicedWindow, GivesBackToTheSliceThatPaid) {
  Fixture at("10/min sliced-window slices 6");
  Receipt receipt;
  EXPECT_TRUE(at.limiter.Check("key", CheckOptions{.cost = 4, .receipt = &receipt}).allowed());
  at.clock.Advance(seconds(25));
  EXPECT_TRUE(at.limiter.Check("key", 6).allowed());
  EXPECT_EQ(at.limiter.GiveBack(receipt), 4U);
  EXPECT_EQ(at.limiter.Check("key", 0).remaining, 4U);
}

TEST(RecordQuotas, ShareAStoreWithSlots) {
  ManualClock clock{WallTime(hours(24 * 20'000))};
  auto store = *MemoryStore::Create({.budget_bytes = size_t{1} << 20,
                                     .clock = &clock,
                                     .record_percent = 50,
                                     .huge_pages = false});
  Limiter log = *Limiter::Create(*Quota::Parse("2/min sliding-log"), store);
  Limiter slices = *Limiter::Create(*Quota::Parse("3/min sliced-window slices 6"), store);
  Limiter bucket = *Limiter::Create(*Quota::Parse("4/min burst 4"), store);
  std::vector<Charge> charges = {{&log, "key"}, {&slices, "key"}, {&bucket, "key"}};
  std::vector<Decision> decisions(3);
  EXPECT_TRUE(CheckAll(charges, decisions).allowed());
  EXPECT_TRUE(CheckAll(charges, decisions).allowed());
  EXPECT_FALSE(CheckAll(charges, decisions).allowed());  // the log says no
  EXPECT_EQ(slices.Check("key", 0).remaining, 1U);
  EXPECT_EQ(bucket.Check("key", 0).remaining, 2U);
  EXPECT_EQ(store->Stats().records, 2U);
}

TEST(RecordQuotas, NeedMemoryForRecords) {
  auto store = *MemoryStore::Create({.budget_bytes = size_t{1} << 20});
  auto limiter = Limiter::Create(*Quota::Parse("2/min sliding-log"), store);
  ASSERT_FALSE(limiter.ok());
  EXPECT_NE(limiter.error().message.find("record_percent"), std::string::npos);
}

TEST(RecordQuotas, AFullArenaIsSharedDeniedOrOpenAsToldAndRecovers) {
  for (const OverflowPolicy policy :
       {OverflowPolicy::kSketch, OverflowPolicy::kDeny, OverflowPolicy::kAllow}) {
    Fixture at("20/min sliding-log", {.budget_bytes = size_t{64} << 10, .overflow = policy});
    std::set<Basis> seen;
    int allowed = 0;
    constexpr int kKeys = 20'000;
    for (int i = 0; i < kKeys; ++i) {
      const Decision decision = at.limiter.Check("key " + std::to_string(i));
      seen.insert(decision.basis);
      allowed += static_cast<int>(decision.allowed());
    }
    const StoreStats stats = at.limiter.store()->Stats();
    EXPECT_GT(stats.records, 100U);
    EXPECT_GT(stats.overflow, 10'000U);
    const Basis expected = policy == OverflowPolicy::kSketch ? Basis::kSketch
                           : policy == OverflowPolicy::kDeny ? Basis::kClosed
                                                             : Basis::kOpen;
    EXPECT_TRUE(seen.contains(expected));
    EXPECT_EQ(allowed == kKeys, policy == OverflowPolicy::kAllow);
    EXPECT_EQ(at.limiter.Check("key 0", 0).remaining, 19U);  // a live record is kept
    at.clock.Advance(minutes(3));
    EXPECT_EQ(at.limiter.Check("a new key").basis, Basis::kStore);
  }
}

TEST(RecordQuotas, AFullArenaOfHoldsRecoversForKeysThatHoldMore) {
  Fixture at("concurrency 4 lease 10s", {.budget_bytes = size_t{64} << 10});
  int keys = 0;
  while (at.limiter.Acquire("key " + std::to_string(keys)).decision.allowed()) {
    ++keys;
  }
  EXPECT_GT(keys, 500);
  EXPECT_EQ(at.limiter.Acquire("key 0").decision.basis, Basis::kClosed) << "no second place";
  at.clock.Advance(seconds(20));
  for (int i = 0; i < 100; ++i) {
    for (int held = 0; held < 4; ++held) {
      ASSERT_TRUE(at.limiter.Acquire("other " + std::to_string(i)).decision.allowed()) << i;
    }
  }
}

TEST(RecordQuotas, ARaiseOnAnArenaThatWasFullOnceLeavesItsKeysInRecords) {
  Fixture at("10/min sliding-log", {.budget_bytes = size_t{64} << 10});
  for (int i = 0; i < 2000; ++i) {
    at.limiter.Check("key " + std::to_string(i));
  }
  EXPECT_GT(at.limiter.store()->Stats().overflow, 0U);
  at.clock.Advance(minutes(5));
  ASSERT_TRUE(at.limiter.Update(*Quota::Parse("20/min sliding-log")).ok());
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(at.limiter.Check("other " + std::to_string(i)).basis, Basis::kStore) << i;
  }
}

// A raise that there is no room for: what a key was charged still counts, and it goes on within the
// room that it has.
TEST(RecordQuotas, ARaiseOnAFullArenaAdmitsNoMoreThanTheLaw) {
  for (const OverflowPolicy policy : {OverflowPolicy::kSketch, OverflowPolicy::kDeny}) {
    Fixture at("100/min sliding-log", {.budget_bytes = size_t{64} << 10, .overflow = policy});
    ASSERT_TRUE(at.limiter.Check("key", 60).allowed());
    at.clock.Advance(seconds(30));
    for (int i = 0; i < 1000; ++i) {
      at.limiter.Check("other " + std::to_string(i));
    }
    ASSERT_TRUE(at.limiter.Update(*Quota::Parse("200/min sliding-log")).ok());
    const uint64_t overflow = at.limiter.store()->Stats().overflow;
    EXPECT_EQ(at.limiter.Check("key", 120).retry_after, seconds(60)) << "more than its room";
    EXPECT_TRUE(at.limiter.Check("key", 30).allowed());
    EXPECT_EQ(at.limiter.TakeUpTo("key", 30).charged, 10U);
    const Decision denied = at.limiter.Check("key", 5);
    EXPECT_EQ(denied.outcome, Outcome::kDenied);
    EXPECT_EQ(denied.basis, Basis::kStore);
    EXPECT_EQ(denied.retry_after, seconds(30));
    EXPECT_EQ(denied.limit, 200U);
    at.limiter.Check("key", CheckOptions{.cost = 20, .mode = ChargeMode::kCountAlways});
    EXPECT_EQ(at.limiter.store()->Stats().overflow, overflow + 4);
    at.clock.Advance(seconds(30));
    EXPECT_EQ(at.limiter.TakeUpTo("key", 200).charged, 40U) << "60 of the last half minute count";
    at.clock.Advance(minutes(3));
    EXPECT_EQ(at.limiter.TakeUpTo("new key", 300).charged, 200U);
    EXPECT_EQ(at.limiter.TakeUpTo("key", 300).charged, 200U) << "and grows when there is room";
  }
}

TEST(RecordQuotas, WhatIsCountedBeyondTheRoomOfARecordCountsWhenItGrows) {
  Fixture at("100/min sliding-log", {.budget_bytes = size_t{64} << 10});
  for (int i = 0; i < 1000; ++i) {
    at.limiter.Check("key " + std::to_string(i));
  }
  ASSERT_TRUE(at.limiter.Update(*Quota::Parse("200/min sliding-log")).ok());
  at.clock.Advance(seconds(50));
  at.limiter.Check("key 0", CheckOptions{.cost = 150, .mode = ChargeMode::kCountAlways});
  at.clock.Advance(seconds(15));  // all others have expired
  // 150 count, and the first one: it fell out of the ring and is dated as the oldest that was left.
  EXPECT_EQ(at.limiter.TakeUpTo("key 0", 200).charged, 49U);
}

TEST(SlidingLog, ARaiseDoesNotForgetWhatFellOutOfTheRing) {
  Fixture at("3/min sliding-log", {.record_percent = 50});
  for (int i = 0; i < 5; ++i) {
    at.limiter.Check("key", CheckOptions{.mode = ChargeMode::kCountAlways});
    at.clock.Advance(seconds(10));
  }
  ASSERT_TRUE(at.limiter.Update(*Quota::Parse("6/min sliding-log")).ok());
  // Counted at 0, 10, 20, 30, 40 s; now 50 s.
  EXPECT_EQ(at.limiter.Check("key", 0).remaining, 1U);
  EXPECT_TRUE(at.limiter.Check("key").allowed());
  EXPECT_EQ(at.limiter.Check("key", 0).remaining, 0U);
  const Decision denied = at.limiter.Check("key");
  EXPECT_EQ(denied.retry_after, seconds(30)) << "with the oldest that was left";
  at.clock.Advance(denied.retry_after);
  EXPECT_EQ(at.limiter.Check("key", 0).remaining, 3U) << "those of 30, 40 and 50 s count";
}

// Threads that charge a few keys at once, some of them giving back: no more than the limit is ever
// out, and all of it can be had.
TEST(RecordQuotas, AreExactUnderContention) {
  for (const char* text : {"1000/h sliding-log", "1000/h sliced-window slices 60"}) {
    SCOPED_TRACE(text);
    Fixture at(text);
    constexpr int kThreads = 4;
    std::atomic<uint64_t> admitted{0};
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        ready.fetch_add(1);
        while (ready.load() < kThreads) {
        }
        for (int i = 0; i < 1000; ++i) {
          const std::string key = "key " + std::to_string(i % 3);
          Receipt receipt;
          const Decision decision = at.limiter.Check(key, CheckOptions{.receipt = &receipt});
          if (decision.allowed() && (i + t) % 4 == 0) {
            EXPECT_EQ(at.limiter.GiveBack(receipt), 1U);
          } else {
            admitted.fetch_add(decision.charged);
          }
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    uint64_t left = 0;
    for (int i = 0; i < 3; ++i) {
      left += at.limiter.Check("key " + std::to_string(i), 0).remaining;
    }
    EXPECT_EQ(admitted.load() + left, 3000U);
  }
}

}  // namespace
}  // namespace weir::store
