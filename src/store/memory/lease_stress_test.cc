// Threads that take, spend and lose leases while others deny, give back, come with old stamps and
// end, with delays before every atomic step. What was admitted is counted again in the order of the
// stamps: a bucket must have admitted all of it. The same with faults planted, which must show.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "store/memory/bucket_audit.h"
#include "store/memory/lease_probe.h"
#include "store/memory/stress_hooks.h"

namespace weir::store {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kRounds = 4;
#else
constexpr uint64_t kRounds = 60;
#endif

constexpr int kThreads = 4;
constexpr int kLives = 3;  // threads that come one after the other
constexpr int kOps = 4000;
constexpr Duration kEmission = std::chrono::microseconds(1);
constexpr size_t kKeys = 2;
constexpr const char* kKey[kKeys] = {"one hot key of twenty", "another one of twenty"};

uint64_t Next(uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  const uint64_t mixed = (state ^ (state >> 29)) * 0xbf58476d1ce4e5b9U;
  return mixed ^ (mixed >> 32);
}

struct Paid {
  int64_t stamp;  // in emission intervals
  int64_t cost;
};

struct Tally {
  uint64_t admitted = 0;
  uint64_t from_leases = 0;
  uint64_t beyond = 0;
  uint64_t leases = 0;
  uint64_t returned = 0;
  uint64_t lost_races = 0;
};

class LeaseRound {
 public:
  LeaseRound(int wide_percent, uint64_t seed)
      : seed_(seed),
        burst_(static_cast<int64_t>(300 + Next(seed_) % 1500)),
        store_(*MemoryStore::Create(
            {.budget_bytes = 64 << 10, .clock = &clock_, .wide_percent = wide_percent})),
        limiter_(*Limiter::Create(*Quota::TokenBucket(1, kEmission, burst_), store_)) {}

  void Run(Tally& tally) {
    for (uint64_t life = 0; life < kLives; ++life) {
      std::vector<std::thread> threads;
      started_.store(0);
      for (size_t i = 0; i < kThreads; ++i) {
        threads.emplace_back([this, i, life] { Work(i, life); });
      }
      for (std::thread& thread : threads) {
        thread.join();
      }
    }
    for (size_t key = 0; key < kKeys; ++key) {
      std::vector<Paid> all;
      for (const auto& log : logs_) {
        all.insert(all.end(), log[key].begin(), log[key].end());
      }
      tally.admitted += all.size();
      tally.beyond += BeyondBucket(all, burst_);
    }
    const StoreStats stats = store_->Stats();
    tally.from_leases += from_leases_.load();
    tally.leases += stats.leases;
    tally.returned += stats.leases_returned;
    tally.lost_races += stats.lost_races;
  }

 private:
  struct Held {
    Receipt receipt;
    size_t key;
    size_t paid;
  };

  void Work(size_t self, uint64_t life) {
    uint64_t random = seed_ + self * 7919 + life * 104'729;
    DelayThisThread(Next(random));
    auto& log = logs_[self];
    std::vector<Held> held;
    started_.fetch_add(1);
    while (started_.load() < kThreads) {
      std::this_thread::yield();
    }
    for (int i = 0; i < kOps; ++i) {
      const uint64_t bits = Next(random);
      if (bits % 64 == 0) {
        clock_.Advance(kEmission * static_cast<int64_t>(1 + (bits >> 40) % 200));
      }
      Timestamp now = limiter_.Now();
      if (bits / 64 % 8 == 0) {
        now -= kEmission * static_cast<int64_t>((bits >> 40) % 300);
      }
      const size_t key = bits / 512 % 8 == 0 ? 1 : 0;
      const auto stamp = now.time_since_epoch() / kEmission;
      const auto cost = static_cast<int64_t>(1 + bits / 4096 % 2);
      const uint64_t action = bits / 8192 % 64;
      if (action == 0) {
        // All that the state has, so that no lease is asked back.
        if (const uint32_t there = limiter_.Check(kKey[key], 0).remaining; there != 0) {
          Note(log[key], limiter_.Check(kKey[key], now, there), stamp);
        }
      } else if (action == 1) {
        uint64_t charged = 0;
        CheckAsHot(limiter_, kKey[key], now, static_cast<uint64_t>(cost), &charged);
        if (charged != 0) {
          log[key].push_back({stamp, static_cast<int64_t>(charged)});
        }
      } else if (action == 2) {
        Held fresh{.receipt = {}, .key = key, .paid = log[key].size()};
        if (limiter_
                .Check(kKey[key],
                       CheckOptions{.cost = 40 * cost, .now = now, .receipt = &fresh.receipt})
                .allowed()) {
          log[key].push_back({stamp, 40 * cost});
          held.push_back(fresh);
        }
      } else if (action == 3 && !held.empty()) {
        Held& back = held[bits / 131'072 % held.size()];
        Paid& paid = log[back.key][back.paid];
        const int64_t units = limiter_.GiveBack(back.receipt);
        // A part of a unit is given back too, but not told.
        paid.cost = std::max<int64_t>(0, paid.cost - units - 1);
        back = held.back();
        held.pop_back();
      } else if (action == 4) {
        store_->Maintain();
      } else {
        Note(log[key], limiter_.Check(kKey[key], now, cost), stamp);
      }
    }
  }

  void Note(std::vector<Paid>& log, const Decision& decision, int64_t stamp) {
    if (decision.allowed()) {
      log.push_back({stamp, decision.charged});
      from_leases_.fetch_add(static_cast<uint64_t>(decision.basis == Basis::kLease),
                             std::memory_order_relaxed);
    }
  }

  uint64_t seed_;
  int64_t burst_;
  ManualClock clock_;
  std::shared_ptr<MemoryStore> store_;
  Limiter limiter_;
  std::atomic<int> started_{0};
  std::atomic<uint64_t> from_leases_{0};
  std::vector<Paid> logs_[kThreads][kKeys];
};

class LeaseStress : public ::testing::TestWithParam<int> {};

TEST_P(LeaseStress, NothingIsAdmittedBeyondTheBucket) {
  Tally tally;
  for (uint64_t seed = 1; seed <= kRounds; ++seed) {
    LeaseRound(GetParam(), seed).Run(tally);
    ASSERT_EQ(tally.beyond, 0U) << "seed " << seed;
  }
  EXPECT_GT(tally.lost_races, 0U);
  EXPECT_GT(tally.leases, 100U);
  EXPECT_GT(tally.returned, 50U);
  EXPECT_GT(tally.from_leases, 1000U);
  std::printf("admitted %llu, from %llu leases %llu, returned %llu, lost races %llu\n",
              static_cast<unsigned long long>(tally.admitted),
              static_cast<unsigned long long>(tally.leases),
              static_cast<unsigned long long>(tally.from_leases),
              static_cast<unsigned long long>(tally.returned),
              static_cast<unsigned long long>(tally.lost_races));
}

#if !defined(__SANITIZE_THREAD__)
void ExpectCaught(Mutant mutant, int wide_percent) {
  constexpr uint64_t kRoundsMax = 300;
  const Planted fault(mutant);
  Tally tally;
  for (uint64_t seed = 1; seed <= kRoundsMax; ++seed) {
    LeaseRound(wide_percent, seed).Run(tally);
    if (tally.beyond > 0) {
      std::printf("caught in round %llu\n", static_cast<unsigned long long>(seed));
      return;
    }
  }
  ADD_FAILURE() << "not caught in " << kRoundsMax << " rounds";
}

TEST_P(LeaseStress, CatchesLeasesThatNeverFade) {
  ExpectCaught(Mutant::kLeaseNeverFades, GetParam());
}

TEST_P(LeaseStress, CatchesOwnersThatDoNotAskWhetherALeaseWasClosed) {
  ExpectCaught(Mutant::kLeaseUnasked, GetParam());
}

TEST_P(LeaseStress, CatchesLeasesThatDoNotLearnOfGiveBacks) {
  ExpectCaught(Mutant::kLeaseUncounted, GetParam());
}
#endif

INSTANTIATE_TEST_SUITE_P(Layouts, LeaseStress, ::testing::Values(0, 100),
                         [](const auto& param) { return param.param == 0 ? "Compact" : "Wide"; });

}  // namespace
}  // namespace weir::store
