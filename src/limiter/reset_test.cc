// Keys that start anew: nothing of before counts, and nothing of before comes back.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "testing/twin.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Noon;
using testing::SmallStore;

constexpr const char* kRates[] = {
    "10/min burst 10",
    "10/s burst 10",
    "10/min leaky-bucket",
    "10/min",
    "10/min fixed-window",
    "10/min fixed-window from first-hit",
    "10/min fixed-window from per-key",
    "10/min sliding-log",
    "10/min sliced-window slices 6",
    "10/month",
};

Quota Parsed(const char* text) {
  auto quota = Quota::Parse(text);
  EXPECT_TRUE(quota.ok()) << text << ": " << (quota.ok() ? "" : quota.error().message);
  return *quota;
}

struct Bench {
  explicit Bench(const Quota& quota)
      : clock(Noon()), limiter(*Limiter::Create(quota, SmallStore(clock))) {}

  Decision Charge(Receipt& receipt, Cost cost = 1) {
    return limiter.Check("key", CheckOptions{.cost = cost, .receipt = &receipt});
  }

  ManualClock clock;
  Limiter limiter;
};

TEST(Reset, MakesAnExhaustedKeyAsGoodAsNew) {
  for (const char* text : kRates) {
    SCOPED_TRACE(text);
    Bench bench(Parsed(text));
    const Decision fresh = bench.limiter.Check("other", 0);
    while (bench.limiter.Check("key").allowed()) {
    }
    ASSERT_TRUE(bench.limiter.Check("neighbour", 3).allowed());
    const Decision neighbour = bench.limiter.Check("neighbour", 0);
    EXPECT_EQ(bench.limiter.Reset("key"), ResetOutcome::kDone);
    const Decision anew = bench.limiter.Check("key", 0);
    EXPECT_EQ(anew.remaining, fresh.remaining);
    EXPECT_EQ(anew.reset_after, Duration::zero());
    EXPECT_EQ(bench.limiter.Check("neighbour", 0).remaining, neighbour.remaining);
    for (uint32_t i = 0; i < fresh.remaining; ++i) {
      EXPECT_TRUE(bench.limiter.Check("key").allowed());
    }
    EXPECT_FALSE(bench.limiter.Check("key").allowed()) << "and no more than a new key";
  }
}

TEST(Reset, OfAGapLetsTheNextPass) {
  Bench bench(Parsed("gap 1h"));
  ASSERT_TRUE(bench.limiter.Check("key").allowed());
  ASSERT_FALSE(bench.limiter.Check("key").allowed());
  EXPECT_EQ(bench.limiter.Reset("key"), ResetOutcome::kDone);
  EXPECT_TRUE(bench.limiter.Check("key").allowed());
}

TEST(Reset, LeavesReceiptsOfBeforeWorthNothing) {
  for (const char* text : kRates) {
    SCOPED_TRACE(text);
    Bench bench(Parsed(text));
    Receipt old;
    ASSERT_TRUE(bench.Charge(old, 5).allowed());
    ASSERT_EQ(bench.limiter.Reset("key"), ResetOutcome::kDone);
    Receipt since;
    ASSERT_TRUE(bench.Charge(since, 5).allowed());
    const uint32_t left = bench.limiter.Check("key", 0).remaining;
    EXPECT_EQ(bench.limiter.GiveBack(old), 0U);
    EXPECT_EQ(bench.limiter.Check("key", 0).remaining, left);
    EXPECT_EQ(bench.limiter.GiveBack(since), 5U) << "those of after are good";
    EXPECT_EQ(bench.limiter.Check("key", 0).remaining, left + 5);
  }
}

TEST(Reset, EndsHoldsAndTheirLeases) {
  Bench bench(Parsed("concurrency 5 lease 1h"));
  std::vector<Hold> old;
  for (int i = 0; i < 5; ++i) {
    old.push_back(bench.limiter.Acquire("key").hold);
  }
  ASSERT_FALSE(bench.limiter.Acquire("key").allowed());
  EXPECT_EQ(bench.limiter.Reset("key"), ResetOutcome::kDone);
  const Acquired anew = bench.limiter.Acquire("key");
  ASSERT_TRUE(anew.allowed());
  EXPECT_GT(anew.hold.fence(), old.back().fence());
  for (const Hold& hold : old) {
    EXPECT_FALSE(bench.limiter.Renew(hold));
    EXPECT_FALSE(bench.limiter.Release(hold));
  }
  EXPECT_EQ(bench.limiter.Check("key", 0).remaining, 4U);
  EXPECT_TRUE(bench.limiter.Release(anew.hold));
}

TEST(Reset, SettlesNothingThatWasReservedBefore) {
  ManualClock clock(Noon());
  auto store = MemoryStore::Create({.clock = &clock, .record_percent = 20});
  auto limiter = Limiter::Create(Parsed("10/min burst 10"), *store);
  const Reserved reserved = limiter->Reserve("key", 6);
  ASSERT_TRUE(reserved.allowed());
  ASSERT_EQ(limiter->Reset("key"), ResetOutcome::kDone);
  ASSERT_TRUE(limiter->Check("key", 6).allowed());
  EXPECT_EQ(limiter->Settle(reserved.reservation, 1).given_back, 0U);
  EXPECT_EQ(limiter->Check("key", 0).remaining, 4U);
}

TEST(Reset, ForgetsWhatWasOwedUnderQuotasBefore) {
  for (const char* next :
       {"20/min burst 20", "20/min", "20/min sliding-log", "20/h fixed-window"}) {
    SCOPED_TRACE(next);
    ManualClock clock(Noon());
    auto store = MemoryStore::Create({.clock = &clock, .record_percent = 20});
    auto limiter = Limiter::Create(Parsed("10/min fixed-window from first-hit"), *store);
    ASSERT_TRUE(limiter->Check("key", 10).allowed());
    ASSERT_TRUE(limiter->Update(Parsed(next)).ok());
    ASSERT_LT(limiter->Check("key", 0).remaining, 20U);
    EXPECT_EQ(limiter->Reset("key"), ResetOutcome::kDone);
    EXPECT_EQ(limiter->Check("key", 0).remaining, 20U);
    clock.Advance(milliseconds(1));
    EXPECT_EQ(limiter->Check("key", 0).remaining, 20U);
  }
}

TEST(Reset, SaysWhatThereWasToForget) {
  Bench bench(Parsed("10/min"));
  EXPECT_EQ(bench.limiter.Reset("nobody"), ResetOutcome::kUnknown);
  EXPECT_EQ(bench.limiter.Reset(""), ResetOutcome::kRefused);
  EXPECT_EQ(bench.limiter.Reset(std::string(kMaxKeyBytes + 1, 'k')), ResetOutcome::kRefused);
  EXPECT_EQ(bench.limiter.Reset("key", bench.limiter.Now() + hours(24)), ResetOutcome::kRefused);
}

TEST(Reset, TellsOfWhatTheSketchGoesOnCounting) {
  ManualClock clock(Noon());
  MemoryOptions options = SmallStore(clock);
  options.sketch_percent = 25;
  auto limiter =
      Limiter::Create(Parsed("100/min burst 100"), options, {.precision = Precision::kSketch});
  ASSERT_TRUE(limiter.ok()) << limiter.error().message;
  ASSERT_TRUE(limiter->Check("key", 10).allowed());
  EXPECT_EQ(limiter->Reset("key"), ResetOutcome::kShared);
  clock.Advance(hours(1));
  EXPECT_EQ(limiter->Reset("key"), ResetOutcome::kUnknown);
}

// Threads that hold units on lease, one that resets: between two resets no more gets through than
// the quota has.
TEST(Reset, LetsNoMoreThroughThanOneQuotaEach) {
  constexpr uint32_t kLimit = 20'000;
  constexpr int kThreads = 4;
  for (const char* text : {"20000/h fixed-window", "20000/h burst 20000", "20000/h"}) {
    SCOPED_TRACE(text);
    Bench bench(Parsed(text));
    uint64_t resets = 0;
    std::atomic<uint64_t> admitted{0};
    std::atomic<int> working{kThreads};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        uint64_t mine = 0;
        for (int n = 0; n < 60'000; ++n) {
          mine += bench.limiter.Check("key").allowed() ? 1 : 0;
        }
        admitted.fetch_add(mine);
        working.fetch_sub(1);
      });
    }
    while (working.load() != 0) {
      bench.limiter.Reset("key");
      ++resets;
      std::this_thread::yield();
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_LE(admitted.load(), (resets + 1) * kLimit);
    bench.limiter.Reset("key");
    uint64_t last = 0;
    for (uint32_t i = 0; i < 2 * kLimit; ++i) {
      last += bench.limiter.Check("key").allowed() ? 1 : 0;
    }
    EXPECT_EQ(last, kLimit);
  }
}

}  // namespace
}  // namespace weir
