// Threads with delays before every atomic step, few keys on few lines, stale stamps, reclaims,
// give-backs and sweeps. What was admitted is then counted again, key by key in the order of the
// stamps: a bucket must have admitted all of it. The same with faults planted, which must show.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "store/memory/bucket_audit.h"
#include "store/memory/stress_hooks.h"
#include "store/memory/table_probe.h"

namespace weir::store {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kRounds = 6;
#else
constexpr uint64_t kRounds = 25;
#endif

constexpr int kThreads = 4;
constexpr int kOps = 12'000;
constexpr Duration kEmission = std::chrono::microseconds(100);
constexpr Duration kMaxSkew = std::chrono::milliseconds(1);

uint64_t Next(uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  const uint64_t mixed = (state ^ (state >> 29)) * 0xbf58476d1ce4e5b9U;
  return mixed ^ (mixed >> 32);
}

struct Paid {
  size_t key;
  int64_t stamp;  // in emission intervals
  int64_t cost;
};

struct Held {
  Receipt receipt;
  size_t paid;
};

struct Tally {
  uint64_t admitted = 0;
  uint64_t beyond = 0;
  uint64_t given_back = 0;
  uint64_t reclaims = 0;
  uint64_t lost_races = 0;
};

std::shared_ptr<MemoryStore> TinyStore(const Clock& clock, int wide_percent) {
  return *MemoryStore::Create({.budget_bytes = 64 << 10,
                               .max_skew = kMaxSkew,
                               .clock = &clock,
                               .wide_percent = wide_percent});
}

// Good for all stores of this shape: the secret is the process's.
std::vector<std::string> CandidateKeys(int wide_percent) {
  const ManualClock clock;
  const auto store = TinyStore(clock, wide_percent);
  const auto limiter = Limiter::Create(*Quota::TokenBucket(1, kEmission, 1), store);
  const TableProbe probe(*store);
  const std::vector<std::string> here = probe.KeysAt(100, 150);
  const std::vector<std::string> there = probe.KeysAt(101, 150);
  std::vector<std::string> keys;
  for (size_t i = 0; i < here.size(); ++i) {
    keys.push_back(here[i]);
    keys.push_back(there[i]);
  }
  return keys;
}

class Round {
 public:
  Round(int wide_percent, uint64_t seed)
      : seed_(seed),
        burst_(static_cast<int64_t>(1 + Next(seed_) % 4)),
        store_(TinyStore(clock_, wide_percent)),
        limiter_(*Limiter::Create(*Quota::TokenBucket(1, kEmission, burst_), store_)) {
    // Two homes side by side: their keys want the same lines and lock different stripes. Most of
    // them come once in a while, so that their slots change hands.
    static const std::vector<std::string> kKeys[] = {CandidateKeys(0), CandidateKeys(100)};
    const std::vector<std::string>& candidates = kKeys[wide_percent == 0 ? 0 : 1];
    const size_t count = 4 + Next(seed_) % (candidates.size() - 4);
    keys_.assign(candidates.begin(), candidates.begin() + static_cast<int64_t>(count));
    hot_ = 1 + Next(seed_) % 3;
  }

  void Run(Tally& tally) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([this, i] { Work(static_cast<size_t>(i)); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    std::map<size_t, std::vector<Paid>> by_key;
    for (const std::vector<Paid>& log : logs_) {
      for (const Paid& paid : log) {
        by_key[paid.key].push_back(paid);
        ++tally.admitted;
      }
    }
    for (auto& [key, paid] : by_key) {
      tally.beyond += BeyondBucket(paid, burst_);
    }
    const StoreStats stats = store_->Stats();
    tally.reclaims += stats.reclaims;
    tally.lost_races += stats.lost_races;
    for (const uint64_t count : given_back_) {
      tally.given_back += count;
    }
  }

 private:
  [[nodiscard]] int64_t Units(Timestamp now) const { return now.time_since_epoch() / kEmission; }

  // By its own state: what overflowing keys share is no bucket of any of them.
  static bool Admitted(const Decision& decision) {
    return decision.allowed() && decision.basis == Basis::kStore;
  }

  void Work(size_t self) {
    uint64_t random = seed_ + self * 7919;
    DelayThisThread(Next(random));
    std::vector<Paid>& log = logs_[self];
    std::vector<Held> held;
    started_.fetch_add(1);
    while (started_.load() < kThreads) {
      std::this_thread::yield();
    }
    for (int i = 0; i < kOps; ++i) {
      const uint64_t bits = Next(random);
      if (bits % 8 == 0) {
        clock_.Advance(kEmission);
      }
      if (bits / 8 % 64 == 0) {
        store_->Maintain();
      }
      if (!held.empty() && bits / 512 % 8 == 0) {
        GiveBack(held, bits >> 40, self);
        continue;
      }
      Timestamp now = limiter_.Now();
      if (bits / 4096 % 4 == 0) {
        now -= kEmission * static_cast<int64_t>(Next(random) % 11);
      }
      const size_t key = bits >> 16 & 1U ? (bits >> 20) % hot_ : (bits >> 20) % keys_.size();
      const auto cost = static_cast<int64_t>(1 + (bits >> 50) % 2);
      if (bits >> 17 & 1U) {
        if (Admitted(limiter_.Check(keys_[key], now, cost))) {
          log.push_back({key, Units(now), cost});
        }
        continue;
      }
      Held fresh{};
      if (Admitted(limiter_.Check(
              keys_[key], CheckOptions{.cost = cost, .now = now, .receipt = &fresh.receipt}))) {
        fresh.paid = log.size();
        log.push_back({key, Units(now), cost});
        held.push_back(fresh);
      }
    }
  }

  void GiveBack(std::vector<Held>& held, uint64_t bits, size_t self) {
    const size_t which = bits % held.size();
    Paid& paid = logs_[self][held[which].paid];
    const auto back = static_cast<int64_t>(limiter_.GiveBack(held[which].receipt));
    // A part of a unit is given back too, but not told.
    paid.cost = std::max<int64_t>(0, paid.cost - back - 1);
    given_back_[self] += static_cast<uint64_t>(back);
    held[which] = held.back();
    held.pop_back();
  }

  uint64_t seed_;
  int64_t burst_;
  ManualClock clock_;
  std::shared_ptr<MemoryStore> store_;
  Limiter limiter_;
  std::vector<std::string> keys_;
  size_t hot_ = 1;
  std::atomic<int> started_{0};
  std::vector<Paid> logs_[kThreads];
  uint64_t given_back_[kThreads] = {};
};

class Stress : public ::testing::TestWithParam<int> {};

TEST_P(Stress, NothingIsAdmittedBeyondTheBucket) {
  Tally tally;
  for (uint64_t seed = 1; seed <= kRounds; ++seed) {
    Round(GetParam(), seed).Run(tally);
    ASSERT_EQ(tally.beyond, 0U) << "seed " << seed;
  }
  // It was worth the trouble only if threads met.
  EXPECT_GT(tally.lost_races, 0U);
  EXPECT_GT(tally.reclaims, 1000U);
  EXPECT_GT(tally.given_back, 100U);
  EXPECT_GT(tally.admitted, 10'000U);
  std::printf("admitted %llu, given back %llu, reclaims %llu, lost races %llu\n",
              static_cast<unsigned long long>(tally.admitted),
              static_cast<unsigned long long>(tally.given_back),
              static_cast<unsigned long long>(tally.reclaims),
              static_cast<unsigned long long>(tally.lost_races));
}

[[maybe_unused]] void ExpectCaught(Mutant mutant, int wide_percent, uint64_t rounds) {
  const Planted fault(mutant);
  Tally tally;
  for (uint64_t seed = 1; seed <= rounds; ++seed) {
    Round(wide_percent, seed).Run(tally);
    if (tally.beyond > 0) {
      std::printf("caught in round %llu\n", static_cast<unsigned long long>(seed));
      return;
    }
  }
  ADD_FAILURE() << "not caught in " << rounds << " rounds";
}

#if !defined(__SANITIZE_THREAD__)
TEST_P(Stress, CatchesInstallsWithoutTheLock) {
  ExpectCaught(Mutant::kNoInsertLock, GetParam(), 400);
}

TEST_P(Stress, CatchesTheCallersClock) {
  ExpectCaught(Mutant::kCallersClock, GetParam(), 400);
}

TEST_P(Stress, CatchesGiveBacksAsOfOldStamps) {
  ExpectCaught(Mutant::kRefundToNow, GetParam(), 1000);
}
#endif

INSTANTIATE_TEST_SUITE_P(Layouts, Stress, ::testing::Values(0, 100),
                         [](const auto& param) { return param.param == 0 ? "Compact" : "Wide"; });

}  // namespace
}  // namespace weir::store
