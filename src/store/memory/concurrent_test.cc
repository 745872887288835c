// Everything at once from many threads; clean under the thread sanitizer, and never more admitted
// than the quota allows.
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

namespace weir::store {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

#if defined(__SANITIZE_THREAD__)
constexpr int kOps = 4'000;
#else
constexpr int kOps = 20'000;
#endif
constexpr int kThreads = 4;

uint64_t Next(uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  const uint64_t mixed = (state ^ (state >> 29)) * 0xbf58476d1ce4e5b9U;
  return mixed ^ (mixed >> 32);
}

// Begins on all threads at the same moment.
void Together(int threads, const std::function<void(int)>& work) {
  std::atomic<int> ready{0};
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      ready.fetch_add(1);
      while (ready.load() < threads) {
        std::this_thread::yield();
      }
      work(i);
    });
  }
  for (std::thread& thread : running) {
    thread.join();
  }
}

class Concurrent : public ::testing::TestWithParam<const char*> {
 protected:
  // Time stands still, so that what may be admitted is known exactly.
  ManualClock clock_{WallTime(hours(24 * 20'000))};
  std::shared_ptr<MemoryStore> store_ = *MemoryStore::Create(
      {.budget_bytes = 384 << 10, .clock = &clock_, .wide_percent = 33, .record_percent = 33});
  Quota quota_ = *Quota::Parse(GetParam());
};

TEST_P(Concurrent, HotKeysGetTheirBurstExactly) {
  Limiter limiter = *Limiter::Create(quota_, store_);
  const std::array<std::string, 3> keys = {"one hot key of twenty b", "another hot key of so", "c"};
  std::array<std::atomic<uint64_t>, 3> admitted{};
  Together(kThreads, [&](int self) {
    uint64_t random = static_cast<uint64_t>(self);
    for (int i = 0; i < kOps; ++i) {
      const size_t key = Next(random) % keys.size();
      admitted[key] += limiter.Check(keys[key]).charged;
    }
  });
  for (const auto& units : admitted) {
    EXPECT_EQ(units.load(), quota_.burst());
  }
  EXPECT_EQ(store_->Stats().decisions, uint64_t{kThreads} * kOps);
}

TEST_P(Concurrent, FirstChargesOfOneKeyMakeOneState) {
  Limiter limiter = *Limiter::Create(quota_, store_);
  for (int round = 0; round < 30; ++round) {
    const std::string key = "new" + std::to_string(round);
    std::atomic<uint64_t> admitted{0};
    Together(kThreads, [&](int) {
      for (uint32_t i = 0; i < quota_.burst(); ++i) {
        admitted += limiter.Check(key).charged;
      }
    });
    ASSERT_EQ(admitted.load(), quota_.burst()) << round;
  }
}

TEST_P(Concurrent, BatchesTakeUpToAndAllOrNothingStayWithinTheQuota) {
  Limiter limiter = *Limiter::Create(quota_, store_);
  Limiter second = *Limiter::Create(*Quota::Parse("500/s burst 500"), store_);
  constexpr size_t kKeys = 40;
  std::vector<std::string> keys;
  for (size_t i = 0; i < kKeys; ++i) {
    keys.push_back("key" + std::to_string(i));
  }
  std::vector<std::atomic<uint64_t>> admitted(kKeys);
  Together(kThreads, [&](int self) {
    uint64_t random = static_cast<uint64_t>(self) + 99;
    std::vector<std::string_view> batch(40);
    std::vector<Decision> decisions(40);
    for (int i = 0; i < kOps / 8; ++i) {
      const uint64_t bits = Next(random);
      const size_t key = bits % kKeys;
      switch (bits >> 32 & 3U) {
        case 0: {
          std::vector<size_t> chosen;
          for (std::string_view& each : batch) {
            chosen.push_back(Next(random) % kKeys);
            each = keys[chosen.back()];
          }
          limiter.CheckMany(batch, decisions);
          for (size_t n = 0; n < batch.size(); ++n) {
            admitted[chosen[n]] += decisions[n].charged;
          }
          break;
        }
        case 1:
          admitted[key] += limiter.TakeUpTo(keys[key], 3).charged;
          break;
        case 2: {
          const std::array<Charge, 2> charges = {Charge{&limiter, keys[key]},
                                                 Charge{&second, "everybody"}};
          std::array<Decision, 2> both;
          admitted[key] += static_cast<uint64_t>(CheckAll(charges, both).allowed());
          break;
        }
        default:
          admitted[key] += limiter.Check(keys[key]).charged;
      }
    }
  });
  for (size_t i = 0; i < kKeys; ++i) {
    EXPECT_LE(admitted[i].load(), quota_.burst()) << i;
    admitted[i] += limiter.TakeUpTo(keys[i], quota_.burst()).charged;
    EXPECT_EQ(admitted[i].load(), quota_.burst()) << i << ": given back is given back";
  }
}

TEST_P(Concurrent, GiveBacksReturnWhatWasPaidAndNoMore) {
  Limiter limiter = *Limiter::Create(quota_, store_);
  std::array<std::atomic<int64_t>, 5> net{};
  std::atomic<uint64_t> returned{0};
  Together(kThreads, [&](int self) {
    uint64_t random = static_cast<uint64_t>(self) + 5;
    std::vector<std::pair<size_t, Receipt>> held;
    for (int i = 0; i < kOps / 2; ++i) {
      const uint64_t bits = Next(random);
      if (bits % 2 == 0 && !held.empty()) {
        auto [key, receipt] = held.back();
        held.pop_back();
        const uint32_t units = limiter.GiveBack(receipt);
        net[key] -= units;
        returned += units;
        continue;
      }
      const size_t key = bits / 2 % net.size();
      Receipt receipt;
      const Decision decision =
          limiter.Check("key" + std::to_string(key), CheckOptions{.cost = 1, .receipt = &receipt});
      if (decision.allowed()) {
        net[key] += 1;
        held.emplace_back(key, receipt);
      }
    }
  });
  EXPECT_GT(returned.load(), 0U);
  for (size_t key = 0; key < net.size(); ++key) {
    const Decision decision = limiter.Check("key" + std::to_string(key), 0);
    EXPECT_GE(net[key].load(), 0);
    // Receipts learn of others' give-backs with caution, so a little may stay charged.
    EXPECT_LE(int64_t{decision.remaining}, int64_t{quota_.burst()} - net[key].load()) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Quotas, Concurrent,
                         ::testing::Values("100/h burst 50", "7/h burst 50", "50/h",
                                           "50/h fixed-window", "50/h fixed-window from first-hit",
                                           "50/h fixed-window from per-key", "50/month",
                                           "50/h sliding-log", "50/h sliced-window slices 6"));

TEST(ConcurrentStore, EverythingAtOnceWhileTimeMoves) {
  ManualClock clock(WallTime(hours(24 * 20'000)));
  auto store = *MemoryStore::Create({.budget_bytes = 64 << 10,
                                     .max_skew = milliseconds(50),
                                     .clock = &clock,
                                     .wide_percent = 50});
  Limiter buckets = *Limiter::Create(*Quota::Parse("1000/s burst 3"), store);
  Limiter windows = *Limiter::Create(*Quota::Parse("5/s"), store);
  Limiter months = *Limiter::Create(*Quota::Parse("1000000/month"), store);
  std::atomic<uint64_t> hot_units{0};
  const Timestamp begin = buckets.Now();
  Together(kThreads + 2, [&](int self) {
    uint64_t random = static_cast<uint64_t>(self) + 1000;
    if (self == kThreads) {  // the one who manages
      for (int i = 0; i < kOps / 40; ++i) {
        const int64_t limit = 5 + static_cast<int64_t>(Next(random) % 1000);
        const auto updated = windows.Update(*Quota::SlidingWindow(limit, std::chrono::seconds(1)));
        EXPECT_TRUE(updated.ok() || updated.error().code == ErrorCode::kUnavailable);
        Limiter another = *Limiter::Create(*Quota::TokenBucket(1 + i, milliseconds(1 + i)), store);
        EXPECT_TRUE(another.Check("first").allowed());
        EXPECT_EQ(windows.quota().window(), std::chrono::seconds(1));
        store->Maintain();
        const StoreStats stats = store->Stats();
        EXPECT_LE(stats.live_slots, stats.slots);
        clock.Advance(milliseconds(1));
      }
      return;
    }
    if (self > kThreads) {  // threads that come and go
      for (int i = 0; i < kOps / 100; ++i) {
        std::thread([&] {
          (void)windows.Check("guest" + std::to_string(Next(random) % 50));
        }).join();
      }
      return;
    }
    std::vector<Receipt> held;
    for (int i = 0; i < kOps; ++i) {
      const uint64_t bits = Next(random);
      if (bits % 16 == 0) {
        clock.Advance(microseconds(200));
      }
      const std::string key = "key" + std::to_string((bits >> 20) % 3000);
      switch (bits >> 8 & 7U) {
        case 0:
          hot_units += buckets.Check("hot").charged;
          break;
        case 1:
          hot_units += buckets.Check("hot", buckets.Now() - milliseconds(bits >> 50 & 31U)).charged;
          break;
        case 2:
          (void)windows.Check(key, 2);
          break;
        case 3: {
          Receipt receipt;
          if (windows.Check(key, CheckOptions{.receipt = &receipt}).allowed()) {
            held.push_back(receipt);
          }
          break;
        }
        case 4:
          if (!held.empty()) {
            EXPECT_LE(windows.GiveBack(held.back()), 2U);
            held.pop_back();
          }
          break;
        case 5:
          (void)months.Check(key);
          break;
        case 6: {
          const std::array<Charge, 3> charges = {Charge{&buckets, key}, Charge{&windows, key},
                                                 Charge{&months, key}};
          std::array<Decision, 3> decisions;
          (void)CheckAll(charges, decisions);
          break;
        }
        default:
          (void)buckets.Check(key);
      }
    }
  });
  // Stamps up to a skew old, and a burst.
  const Duration span = buckets.Now() - begin + milliseconds(100);
  EXPECT_LE(hot_units.load(), static_cast<uint64_t>(span / milliseconds(1)) + 3);
  const StoreStats stats = store->Stats();
  EXPECT_GT(stats.reclaims, 0U);
  EXPECT_GT(stats.decisions, uint64_t{kOps});
}

TEST(ConcurrentStore, ThreadsThatShareAKeyReallyMeet) {
  ManualClock clock;
  Limiter limiter = *Limiter::Create(*Quota::TokenBucket(1'000'000, hours(1), 1'000'000),
                                     {.budget_bytes = 64 << 10, .clock = &clock});
  std::atomic<uint64_t> admitted{0};
  // Threads of one processor meet only when one loses it in the middle of a decision.
  for (int round = 0; round < 200 && limiter.store()->Stats().lost_races == 0; ++round) {
    Together(kThreads, [&](int) {
      for (int i = 0; i < 5000; ++i) {
        admitted += limiter.Check("key", CheckOptions{}).charged;
      }
    });
  }
  EXPECT_GT(limiter.store()->Stats().lost_races, 0U);
  EXPECT_LE(admitted.load(), 1'000'000U);
}

}  // namespace
}  // namespace weir::store
