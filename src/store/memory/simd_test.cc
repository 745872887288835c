// Every instruction set decides alike and leaves the same states behind, most of them the same
// table, word for word.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "store/memory/table_probe.h"

namespace weir::store {
namespace {

using std::chrono::microseconds;

uint64_t Next(uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  const uint64_t mixed = (state ^ (state >> 29)) * 0xbf58476d1ce4e5b9U;
  return mixed ^ (mixed >> 32);
}

struct Side {
  Side(const Quota& quota, const Clock& clock, int wide_percent, Simd simd)
      : limiter(*Limiter::Create(quota, {.budget_bytes = 64 << 10,
                                         .clock = &clock,
                                         .wide_percent = wide_percent,
                                         .simd = simd})) {}

  Limiter limiter;
};

bool Same(const Decision& a, const Decision& b) {
  return a.retry_after == b.retry_after && a.reset_after == b.reset_after && a.limit == b.limit &&
         a.remaining == b.remaining && a.charged == b.charged && a.outcome == b.outcome &&
         a.basis == b.basis && a.problem == b.problem;
}

// What each key has left. Where eight are decided at once those without a slot come last, so that
// the others may revive a slot that one of these would have taken: the states are the same then,
// though not where they are.
void ExpectSameStates(Side& a, Side& b, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    ASSERT_TRUE(Same(a.limiter.Check(key, 0), b.limiter.Check(key, 0))) << key.substr(0, 48);
  }
}

enum class Tables { kTheSame, kOfTheSameStates };

void Compare(const char* text, int wide_percent, Simd simd, int operations,
             Tables tables = Tables::kTheSame) {
  SCOPED_TRACE(text);
  ManualClock clock(WallTime(std::chrono::hours(24 * 20'000)));
  const Quota quota = *Quota::Parse(text);
  Side plain(quota, clock, wide_percent, Simd::kScalar);
  Side wider(quota, clock, wide_percent, simd);
  std::vector<std::string> keys;
  for (int i = 0; i < 9000; ++i) {  // more than fit
    keys.push_back("some key of twenty b" + std::to_string(i));
  }
  uint64_t random = 7;
  std::vector<std::string_view> batch;
  std::vector<Decision> plain_decisions(64);
  std::vector<Decision> wider_decisions(64);
  for (int done = 0; done < operations;) {
    const uint64_t bits = Next(random);
    clock.Advance(microseconds(bits % 4096 == 0 ? 20'000'000 : bits % 64 * 10));
    const size_t range = bits >> 8 & 1U ? keys.size() : 200;
    const uint64_t cost = (bits >> 9) % 8 == 0 ? (bits >> 12) % 8 : 1;
    if (bits >> 60 < 4) {
      batch.clear();
      for (size_t i = (bits >> 20) % 65; i > 0; --i) {
        batch.push_back(keys[Next(random) % range]);
      }
      plain.limiter.CheckMany(batch, plain_decisions, cost);
      wider.limiter.CheckMany(batch, wider_decisions, cost);
      for (size_t i = 0; i < batch.size(); ++i) {
        ASSERT_TRUE(Same(plain_decisions[i], wider_decisions[i])) << done;
      }
      done += static_cast<int>(batch.size()) + 1;
      continue;
    }
    const std::string& key = keys[(bits >> 20) % range];
    Decision a;
    Decision b;
    if (bits >> 60 == 4) {
      Receipt first;
      Receipt second;
      const auto mode = static_cast<ChargeMode>((bits >> 16) % 4);
      a = plain.limiter.Check(key, CheckOptions{.cost = cost, .mode = mode, .receipt = &first});
      b = wider.limiter.Check(key, CheckOptions{.cost = cost, .mode = mode, .receipt = &second});
      ASSERT_EQ(plain.limiter.GiveBack(first), wider.limiter.GiveBack(second)) << done;
    } else {
      a = plain.limiter.Check(key, cost);
      b = wider.limiter.Check(key, cost);
    }
    ASSERT_TRUE(Same(a, b)) << done;
    ++done;
  }
  const StoreStats stats = wider.limiter.store()->Stats();
  ExpectSameStates(plain, wider, keys);
  if (tables == Tables::kTheSame) {
    const TableProbe plain_table(*plain.limiter.store());
    const TableProbe wider_table(*wider.limiter.store());
    EXPECT_EQ(plain_table.Words(), wider_table.Words());
    EXPECT_EQ(stats.reclaims, plain.limiter.store()->Stats().reclaims);
  }
  EXPECT_EQ(stats.denials, plain.limiter.store()->Stats().denials);
  EXPECT_EQ(stats.simd, simd);
  EXPECT_GT(stats.reclaims, 0U);
  EXPECT_GT(stats.denials, 0U);
}

void CompareAll(Simd simd, const char* name) {
  if (!HasSimd(simd)) {
    std::printf("not compared: this processor (or build) has no %s\n", name);
    return;
  }
  Compare("2/s burst 5", 0, simd, 300'000,
          simd == Simd::kAvx512 ? Tables::kOfTheSameStates : Tables::kTheSame);
  Compare("2/s burst 5", 100, simd, 200'000);
  Compare("70/s burst 3", 100, simd, 100'000);
  Compare("gap 1s", 0, simd, 100'000);
  Compare("5/s", 100, simd, 100'000);
  Compare("5/s fixed-window", 100, simd, 100'000);
  Compare("5/s fixed-window from first-hit", 100, simd, 100'000);
  Compare("5/s fixed-window from per-key", 100, simd, 50'000);
}

// Keys that the code for many at once has to leave to that for one, and some that it has not.
std::vector<std::string> KeysOfAllKinds() {
  std::vector<std::string> keys = {"", std::string(kMaxKeyBytes + 1, 'x'),
                                   std::string("a NUL is at its \0end", 20),
                                   std::string("\0and at its beginning", 22)};
  for (size_t size = 1; size <= 48; ++size) {
    keys.push_back(std::string(size, 'k'));
    keys.push_back(std::string(size - 1, '\xff') + "e");
  }
  for (int i = 0; i < 300; ++i) {
    keys.push_back("user:0123456789:" + std::to_string(i + 1000));
  }
  return keys;
}

enum class Asked { kInBatches, kOneByOne };

// The plain code asked one by one, the other in batches in which keys stand more than once or one
// by one too, under buckets of every size: all answers are alike, and so are the states.
void CompareBuckets(Simd simd, Asked asked) {
  const std::vector<std::string> keys = KeysOfAllKinds();
  const size_t usual = keys.size() - 300;
  uint64_t random = 11;
  uint64_t denied = 0;
  uint64_t overdrawn = 0;
  uint64_t decided = 0;
  uint64_t lost_races = 0;
  for (int round = 0; round < 400; ++round) {
    // Up to the longest debt that 8-byte slots hold.
    const uint64_t horizon_us = uint64_t{60'000'000} << Next(random) % 9;
    const uint64_t burst = 1 + Next(random) % (uint64_t{1} << Next(random) % 20);
    const uint64_t interval_us = 1 + Next(random) % std::max<uint64_t>(horizon_us / burst, 1);
    const Result<Quota> quota = Quota::TokenBucket(
        1, microseconds(static_cast<int64_t>(interval_us)), static_cast<int64_t>(burst));
    ASSERT_TRUE(quota) << quota.error().message;
    SCOPED_TRACE(quota->ToString());
    ManualClock clock(WallTime(std::chrono::hours(24 * 20'000)));
    Side plain(*quota, clock, 0, Simd::kScalar);
    Side wider(*quota, clock, 0, simd);
    std::vector<std::string_view> batch;
    std::vector<Decision> decisions(100);
    for (int turn = 0; turn < 60; ++turn) {
      const uint64_t bits = Next(random);
      clock.Advance(microseconds(static_cast<int64_t>(Next(random) % (2 * interval_us))));
      const bool odd = bits % 4 == 0;
      const size_t first = odd ? 0 : usual;
      const size_t range = odd ? keys.size() : 1 + (bits >> 8) % 300;
      batch.clear();
      for (size_t i = (bits >> 20) % 100; i > 0; --i) {
        batch.push_back(keys[first + Next(random) % range % (keys.size() - first)]);
      }
      const uint64_t cost =
          (bits >> 32) % 4 == 0 ? Next(random) % (burst + 2) : 1 + Next(random) % (burst / 8 + 1);
      if (asked == Asked::kInBatches) {
        wider.limiter.CheckMany(batch, decisions, cost);
      } else {
        const Timestamp now = wider.limiter.Now();
        for (size_t i = 0; i < batch.size(); ++i) {
          decisions[i] = i % 2 == 0 ? wider.limiter.Check(batch[i], now, cost)
                                    : wider.limiter.Check(batch[i], cost);
        }
      }
      for (size_t i = 0; i < batch.size(); ++i) {
        const Decision one = plain.limiter.Check(batch[i], cost);
        ASSERT_TRUE(Same(one, decisions[i])) << i << " of " << batch.size() << ", cost " << cost;
        denied += one.outcome == Outcome::kDenied ? 1 : 0;
      }
      if (bits >> 60 == 0) {
        const CheckOptions always{.cost = burst, .mode = ChargeMode::kCountAlways};
        ASSERT_TRUE(Same(plain.limiter.Check(keys[usual], always),
                         wider.limiter.Check(keys[usual], always)));
        ++overdrawn;
      }
    }
    ExpectSameStates(plain, wider, keys);
    const StoreStats one_by_one = plain.limiter.store()->Stats();
    const StoreStats many = wider.limiter.store()->Stats();
    ASSERT_EQ(one_by_one.decisions, many.decisions);
    ASSERT_EQ(one_by_one.denials, many.denials);
    ASSERT_EQ(one_by_one.refusals, many.refusals);
    decided += many.decisions;
    lost_races += many.lost_races;
  }
  EXPECT_GT(denied, 10'000U);
  EXPECT_GT(overdrawn, 100U);
  // A key that overtakes itself has not lost a race, or it would be taken for a hot one. Only where
  // another key of the batch takes its expired slot it looks like that.
  EXPECT_LT(lost_races, decided / 1000);
}

TEST(Simd, BucketsAreDecidedAsThePlainCodeDoes) {
  for (const Simd simd : {Simd::kScalar, Simd::kAvx2, Simd::kAvx512}) {
    for (const Asked asked : {Asked::kInBatches, Asked::kOneByOne}) {
      SCOPED_TRACE(static_cast<int>(simd));
      if (HasSimd(simd)) {
        CompareBuckets(simd, asked);
      }
    }
  }
}

// Decides the same few keys on several threads: each gets its burst, to the unit. Returns how often
// they got in one another's way.
uint64_t Races(Simd simd, Asked asked) {
  constexpr int kThreads = 4;
  constexpr size_t kKeys = 24;
  constexpr uint32_t kBurst = 20'000;
  const ManualClock clock(WallTime(std::chrono::hours(24 * 20'000)));
  Limiter limiter = *Limiter::Create(
      *Quota::TokenBucket(1, microseconds(1000), kBurst),
      {.budget_bytes = 64 << 10, .clock = &clock, .hot_keys = false, .simd = simd});
  std::vector<std::string> keys;
  for (size_t i = 0; i < kKeys; ++i) {
    keys.push_back("one of two dozen keys " + std::to_string(i));
  }
  std::atomic<uint64_t> charged{0};
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int self = 0; self < kThreads; ++self) {
    threads.emplace_back([&, self] {
      uint64_t random = static_cast<uint64_t>(self) + 1;
      std::vector<std::string_view> batch(64);
      std::vector<Decision> decisions(batch.size());
      uint64_t mine = 0;
      ready.fetch_add(1);
      while (ready.load() < kThreads) {
        std::this_thread::yield();
      }
      // Twice what there is to be had.
      for (size_t done = 0; done < 2 * kKeys * kBurst / kThreads; done += batch.size()) {
        for (std::string_view& key : batch) {
          key = keys[Next(random) % kKeys];
        }
        if (asked == Asked::kInBatches) {
          limiter.CheckMany(batch, decisions);
        } else {
          const Timestamp now = limiter.Now();
          std::transform(batch.begin(), batch.end(), decisions.begin(),
                         [&](std::string_view key) { return limiter.Check(key, now); });
        }
        for (const Decision& decision : decisions) {
          mine += decision.charged;
        }
      }
      charged += mine;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(charged.load(), kKeys * kBurst);
  return limiter.store()->Stats().lost_races;
}

// On a busy machine threads may run one after the other, so they get more than one chance to meet.
TEST(Simd, SeveralThreadsGetTheBurstExactly) {
  for (const Simd simd : {Simd::kScalar, Simd::kAvx2, Simd::kAvx512}) {
    for (const Asked asked : {Asked::kInBatches, Asked::kOneByOne}) {
      SCOPED_TRACE(static_cast<int>(simd));
      if (HasSimd(simd)) {
        uint64_t races = 0;
        for (int round = 0; round < 500 && races == 0; ++round) {
          races = Races(simd, asked);
        }
        EXPECT_GT(races, 0U);
      }
    }
  }
}

TEST(Simd, Avx2DecidesAsThePlainCodeDoes) {
  CompareAll(Simd::kAvx2, "AVX2");
}

TEST(Simd, Avx512DecidesAsThePlainCodeDoes) {
  CompareAll(Simd::kAvx512, "AVX-512");
}

}  // namespace
}  // namespace weir::store
