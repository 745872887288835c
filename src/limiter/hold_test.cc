// Holds by example, and under threads: never more than the limit at once, a dead holder's slot
// comes back, a lock's numbers never go back.
#include "weir/hold.h"

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "testing/random.h"
#include "testing/twin.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Fixture {
  explicit Fixture(const char* text, MemoryOptions options = {})
      : limiter(*Limiter::Create(*Quota::Parse(text), With(options))) {}

  MemoryOptions With(MemoryOptions options) const {
    options.clock = &clock;
    options.huge_pages = false;
    options.budget_bytes = std::min<size_t>(options.budget_bytes, size_t{1} << 20);
    return options;
  }

  ManualClock clock{testing::Noon()};
  Limiter limiter;
};

TEST(Hold, IsLiveUntilReleased) {
  Fixture at("concurrency 2 lease 30s");
  const Acquired first = at.limiter.Acquire("key");
  const Acquired second = at.limiter.Acquire("key");
  ASSERT_TRUE(first.allowed() && second.allowed());
  EXPECT_EQ(second.decision.remaining, 0U);
  EXPECT_LT(first.hold.fence(), second.hold.fence());
  const Acquired denied = at.limiter.Acquire("key");
  EXPECT_EQ(denied.decision.outcome, Outcome::kDenied);
  EXPECT_EQ(denied.decision.retry_after, seconds(30));
  EXPECT_EQ(denied.hold.fence(), 0U);
  EXPECT_TRUE(at.limiter.Acquire("another").allowed());
  EXPECT_TRUE(at.limiter.Release(first.hold));
  EXPECT_TRUE(at.limiter.Acquire("key").allowed());
}

TEST(Hold, ReleasesOnceWhoeverHasACopy) {
  Fixture at("concurrency 1 lease 30s");
  const Hold hold = at.limiter.Acquire("key").hold;
  const Hold copy = hold;
  EXPECT_TRUE(at.limiter.Release(hold));
  EXPECT_FALSE(at.limiter.Release(copy));
  const Hold next = at.limiter.Acquire("key").hold;
  EXPECT_FALSE(at.limiter.Release(copy)) << "it is somebody else's now";
  EXPECT_FALSE(at.limiter.Acquire("key").allowed());
  EXPECT_TRUE(at.limiter.Release(next));
  EXPECT_FALSE(at.limiter.Release(Hold{}));
}

TEST(Hold, EndsWithItsLeaseAndNotBefore) {
  Fixture at("concurrency 1 lease 30s");
  const Hold dead = at.limiter.Acquire("key").hold;
  at.clock.Advance(seconds(30) - Duration(1));
  EXPECT_FALSE(at.limiter.Acquire("key").allowed());
  EXPECT_EQ(at.limiter.Acquire("key").decision.retry_after, Duration(1));
  at.clock.Advance(Duration(1));
  EXPECT_FALSE(at.limiter.Release(dead));
  const Acquired next = at.limiter.Acquire("key");
  EXPECT_TRUE(next.allowed());
  EXPECT_GT(next.hold.fence(), dead.fence());
  EXPECT_FALSE(at.limiter.Renew(dead));
}

TEST(Hold, IsKeptByRenewing) {
  Fixture at("concurrency 1 lease 30s");
  const Hold hold = at.limiter.Acquire("key").hold;
  for (int i = 0; i < 10; ++i) {
    at.clock.Advance(seconds(29));
    EXPECT_TRUE(at.limiter.Renew(hold));
    EXPECT_FALSE(at.limiter.Acquire("key").allowed());
  }
  EXPECT_TRUE(at.limiter.Renew(hold, {.lease = seconds(1)})) << "never shorter";
  at.clock.Advance(seconds(30) - Duration(1));
  EXPECT_FALSE(at.limiter.Acquire("key").allowed());
  at.clock.Advance(Duration(1));
  EXPECT_FALSE(at.limiter.Renew(hold));
  EXPECT_TRUE(at.limiter.Acquire("key").allowed());
}

TEST(Hold, LeasesEndAtWholeMicroseconds) {
  Fixture at("concurrency 1 lease 1us");
  at.clock.Advance(Duration(1));
  EXPECT_TRUE(at.limiter.Acquire("key", {.lease = Duration(1500)}).allowed());
  EXPECT_EQ(at.limiter.Acquire("key").decision.retry_after, Duration(1999));
}

TEST(Hold, OfSeveralUnitsIsTakenWholeOrNotAtAll) {
  Fixture at("concurrency 10 lease 30s");
  const Acquired six = at.limiter.Acquire("key", {.cost = 6, .lease = seconds(5)});
  EXPECT_EQ(six.hold.units(), 6U);
  EXPECT_TRUE(at.limiter.Acquire("key", {.cost = 3, .lease = seconds(9)}).allowed());
  const Acquired denied = at.limiter.Acquire("key", {.cost = 8});
  EXPECT_FALSE(denied.allowed());
  EXPECT_EQ(denied.decision.remaining, 1U);
  EXPECT_EQ(denied.decision.retry_after, seconds(9)) << "six ending at 5 s are not enough";
  EXPECT_EQ(at.limiter.Acquire("key", {.cost = 7}).decision.retry_after, seconds(5));
  EXPECT_EQ(at.limiter.Acquire("key", {.cost = 11}).decision.problem, Problem::kCostAboveBurst);
  EXPECT_TRUE(at.limiter.Release(six.hold));
  EXPECT_TRUE(at.limiter.Acquire("key", {.cost = 7}).allowed());
}

TEST(Hold, RefusesBadInputAndChangesNothing) {
  Fixture at("concurrency 1 lease 30s");
  const auto problem = [&](const AcquireOptions& options) {
    const Acquired got = at.limiter.Acquire("key", options);
    EXPECT_EQ(got.hold.fence(), 0U);
    return got.decision.problem;
  };
  EXPECT_EQ(problem({.lease = Duration(999)}), Problem::kLeaseOutOfRange);
  EXPECT_EQ(problem({.lease = Quota::kMaxLease + Duration(1)}), Problem::kLeaseOutOfRange);
  EXPECT_EQ(problem({.lease = Duration(-1)}), Problem::kLeaseOutOfRange);
  EXPECT_EQ(problem({.now = at.limiter.Now() + hours(1)}), Problem::kNowTooFar);
  EXPECT_EQ(problem({.cost = -1}), Problem::kCostTooLarge);
  EXPECT_EQ(at.limiter.Acquire("").decision.problem, Problem::kKeyEmpty);
  EXPECT_EQ(at.limiter.store()->Stats().records, 0U);
  EXPECT_EQ(at.limiter.store()->Stats().refusals, 6U);
  const Hold hold = at.limiter.Acquire("key", {.lease = Quota::kMaxLease}).hold;
  EXPECT_FALSE(at.limiter.Renew(hold, {.lease = Duration(0)}));
  EXPECT_FALSE(at.limiter.Renew(hold, {.now = at.limiter.Now() - hours(1)}));

  Limiter rate = *Limiter::Create(*Quota::Parse("5/s"), MemoryOptions{.budget_bytes = 1 << 20});
  EXPECT_EQ(rate.Acquire("key").decision.problem, Problem::kWrongQuota);
  EXPECT_FALSE(rate.Release(hold));
  EXPECT_FALSE(rate.Renew(hold));
}

TEST(Hold, OfAnotherLimiterIsNotReleasedHere) {
  ManualClock clock{testing::Noon()};
  auto store =
      *MemoryStore::Create({.budget_bytes = 1 << 20, .clock = &clock, .record_percent = 50});
  Limiter mine = *Limiter::Create(*Quota::Parse("concurrency 1 lease 30s"), store);
  Limiter other = *Limiter::Create(*Quota::Parse("concurrency 1 lease 30s"), store);
  const Hold hold = mine.Acquire("key").hold;
  ASSERT_TRUE(other.Acquire("key").allowed());
  EXPECT_FALSE(other.Release(hold));
  EXPECT_FALSE(other.Acquire("key").allowed());
  EXPECT_TRUE(mine.Release(hold));
}

TEST(Hold, AChangeOfQuotaKeepsWhatIsHeld) {
  Fixture at("concurrency 3 lease 30s");
  std::vector<Hold> holds;
  for (int i = 0; i < 3; ++i) {
    holds.push_back(at.limiter.Acquire("key").hold);
  }
  ASSERT_TRUE(at.limiter.Update(*Quota::Parse("concurrency 1 lease 10s")).ok());
  EXPECT_EQ(at.limiter.Acquire("key").decision.retry_after, seconds(30)) << "they keep their lease";
  EXPECT_TRUE(at.limiter.Release(holds[0]));
  EXPECT_TRUE(at.limiter.Release(holds[1]));
  EXPECT_FALSE(at.limiter.Acquire("key").allowed());
  ASSERT_TRUE(at.limiter.Update(*Quota::Parse("concurrency 500 lease 10s")).ok());
  for (int i = 0; i < 499; ++i) {
    ASSERT_TRUE(at.limiter.Acquire("key").allowed()) << i;
  }
  EXPECT_FALSE(at.limiter.Acquire("key").allowed());
  EXPECT_TRUE(at.limiter.Release(holds[2]));
  EXPECT_TRUE(at.limiter.Acquire("key").allowed());
  const auto error = at.limiter.Update(*Quota::Parse("5/s"));
  ASSERT_FALSE(error.ok());
  EXPECT_NE(error.error().message.find("make another limiter"), std::string::npos);
  EXPECT_EQ(at.limiter.quota().limit(), 500U);
}

TEST(Hold, TheLargestLimitIsHeldAndEveryOneReleased) {
  Fixture at("concurrency 65535 lease 1h", {.budget_bytes = size_t{8} << 20});
  Limiter limiter = *Limiter::Create(
      *Quota::Parse("concurrency 65535 lease 1h"),
      MemoryOptions{.budget_bytes = size_t{8} << 20, .clock = &at.clock, .huge_pages = false});
  std::vector<Hold> holds;
  for (int i = 0; i < 65535; ++i) {
    const Acquired got = limiter.Acquire("key");
    ASSERT_TRUE(got.allowed()) << i;
    holds.push_back(got.hold);
  }
  EXPECT_FALSE(limiter.Acquire("key").allowed());
  const Decision over = limiter.Check("key", {.mode = ChargeMode::kCountAlways});
  EXPECT_EQ(over.basis, Basis::kClosed) << "there is no place for it";
  for (const Hold& hold : holds) {
    ASSERT_TRUE(limiter.Release(hold));
  }
  EXPECT_EQ(limiter.Check("key", 0).remaining, 65535U);
}

TEST(Hold, IsTakenWithOthersAllOrNothing) {
  ManualClock clock{testing::Noon()};
  auto store =
      *MemoryStore::Create({.budget_bytes = 1 << 20, .clock = &clock, .record_percent = 50});
  Limiter at_once = *Limiter::Create(*Quota::Parse("concurrency 2 lease 30s"), store);
  Limiter rate = *Limiter::Create(*Quota::Parse("3/min fixed-window"), store);
  const std::array<Charge, 2> charges = {Charge{&at_once, "key"}, Charge{&rate, "key"}};
  std::array<Decision, 2> decisions;
  std::array<Receipt, 2> receipts;
  std::vector<Hold> holds;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(CheckAll(charges, decisions, std::nullopt, receipts).allowed());
    holds.push_back(Hold{receipts[0]});
  }
  EXPECT_LT(holds[0].fence(), holds[1].fence());
  const Verdict denied = CheckAll(charges, decisions, std::nullopt, receipts);
  EXPECT_FALSE(denied.allowed());
  EXPECT_EQ(denied.deciding, 0U);
  EXPECT_EQ(rate.Check("key", 0).remaining, 1U) << "nothing was charged";
  EXPECT_TRUE(at_once.Release(holds[0]));
  EXPECT_TRUE(CheckAll(charges, decisions, std::nullopt, receipts).allowed());
  EXPECT_TRUE(at_once.Release(holds[1]));
  EXPECT_FALSE(CheckAll(charges, decisions).allowed()) << "the rate is used up";
  EXPECT_EQ(at_once.Check("key", 0).remaining, 1U) << "and no hold was left behind";
}

TEST(Hold, IsNeverSharedWhenTheStoreIsFull) {
  for (const OverflowPolicy policy :
       {OverflowPolicy::kSketch, OverflowPolicy::kDeny, OverflowPolicy::kAllow}) {
    Fixture at("concurrency 1 lease 30s", {.budget_bytes = 64 << 10, .overflow = policy});
    std::vector<Hold> holds;
    int without = 0;
    for (int i = 0; i < 5000; ++i) {
      const Acquired got = at.limiter.Acquire("key " + std::to_string(i));
      if (got.hold.fence() != 0) {
        holds.push_back(got.hold);
        continue;
      }
      ++without;
      const bool open = policy == OverflowPolicy::kAllow;
      ASSERT_EQ(got.allowed(), open);
      ASSERT_EQ(got.decision.basis, open ? Basis::kOpen : Basis::kClosed);
    }
    EXPECT_GT(without, 3000);
    at.clock.Advance(seconds(20));
    for (const Hold& hold : holds) {
      ASSERT_TRUE(at.limiter.Release(hold)) << "a live hold was lost";
    }
    at.clock.Advance(seconds(3));
    EXPECT_TRUE(at.limiter.Acquire("a new key").allowed()) << "released records are taken back";
  }
}

TEST(Hold, SurvivesAClockThatIsSetBack) {
  Fixture at("concurrency 1 lease 30s");
  const Hold hold = at.limiter.Acquire("key").hold;
  at.clock.Advance(seconds(10));
  EXPECT_FALSE(at.limiter.Acquire("key").allowed());
  at.clock.SetNow(Timestamp(-hours(5)));
  EXPECT_FALSE(at.limiter.Acquire("key").allowed());
  EXPECT_TRUE(at.limiter.Renew(hold));
  EXPECT_TRUE(at.limiter.Release(hold));
  const Hold next = at.limiter.Acquire("key").hold;
  EXPECT_GT(next.fence(), hold.fence());
  at.clock.Advance(seconds(30));
  EXPECT_TRUE(at.limiter.Acquire("key").allowed());
}

TEST(Hold, AStampBehindTheOthersGetsALargerFenceAllTheSame) {
  Fixture at("concurrency 1 lease 1us", {.budget_bytes = 64 << 10});
  at.clock.Advance(hours(1));
  const Timestamp now = at.limiter.Now();
  const Hold ahead = at.limiter.Acquire("key", {.now = now + milliseconds(900)}).hold;
  EXPECT_TRUE(at.limiter.Release(ahead, now + milliseconds(900)));
  // The store is filled with others, so that the record would be taken back if it could be.
  for (int i = 0; i < 3000; ++i) {
    at.limiter.Release(at.limiter.Acquire("other " + std::to_string(i)).hold);
  }
  const Hold behind = at.limiter.Acquire("key", {.now = now - milliseconds(900)}).hold;
  EXPECT_GT(behind.fence(), ahead.fence());
}

TEST(Hold, WithoutAReleaseIsAMatterOfItsLease) {
  Fixture at("concurrency 2 lease 30s");
  EXPECT_TRUE(at.limiter.Check("key").allowed());
  EXPECT_TRUE(at.limiter.Check("key").allowed());
  EXPECT_FALSE(at.limiter.Check("key").allowed());
  at.clock.Advance(seconds(30));
  EXPECT_EQ(at.limiter.Check("key", 0).remaining, 2U);
}

TEST(Hold, OfManyKeysIsThatOfEachInTurn) {
  Fixture at("concurrency 2 lease 30s");
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) {
    names.push_back(i % 10 == 3 ? "" : "key " + std::to_string(i % 40));
  }
  const std::vector<std::string_view> keys(names.begin(), names.end());
  std::vector<Acquired> acquired(keys.size());
  at.limiter.AcquireMany(keys, acquired, {.lease = seconds(5)});
  std::map<std::string_view, int> held;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].empty()) {
      EXPECT_EQ(acquired[i].decision.problem, Problem::kKeyEmpty);
      EXPECT_EQ(acquired[i].hold.fence(), 0U);
    } else {
      EXPECT_EQ(acquired[i].allowed(), ++held[keys[i]] <= 2) << i;
      EXPECT_EQ(at.limiter.Release(acquired[i].hold), acquired[i].allowed());
    }
  }
  EXPECT_EQ(at.limiter.store()->Stats().refusals, 10U);
  at.limiter.AcquireMany(keys, acquired, {.lease = seconds(5)});
  EXPECT_EQ(at.limiter.Acquire("key 1").decision.retry_after, seconds(5));
  at.limiter.AcquireMany(keys, acquired, {.lease = Duration(1)});
  for (const Acquired& one : acquired) {
    EXPECT_EQ(one.decision.problem, Problem::kLeaseOutOfRange);
    EXPECT_EQ(one.hold.fence(), 0U);
  }
}

// The figures of docs/reference/algorithms.md: the whole budget over the keys that found room.
TEST(Hold, TakesTheBytesThatAreDocumented) {
  const auto bytes_with = [](int holds) {
    Fixture at("concurrency 100 lease 1h");
    for (uint64_t keys = 0;; ++keys) {
      for (int i = 0; i < holds; ++i) {
        if (!at.limiter.Acquire("key " + std::to_string(keys)).allowed()) {
          return static_cast<double>(at.limiter.store()->Stats().budget_bytes) /
                 static_cast<double>(keys);
        }
      }
    }
  };
  EXPECT_NEAR(bytes_with(1), 69, 1);
  EXPECT_NEAR(bytes_with(100), 1803, 60);
}

TEST(ScopedHold, ReleasesAtTheEndOfItsScope) {
  Fixture at("concurrency 1 lease 30s");
  {
    ScopedHold hold(at.limiter, at.limiter.Acquire("key"));
    ASSERT_TRUE(hold);
    EXPECT_NE(hold.fence(), 0U);
    const ScopedHold none(at.limiter, at.limiter.Acquire("key"));
    EXPECT_FALSE(none);
    EXPECT_EQ(none.decision().retry_after, seconds(30));
    ScopedHold moved(std::move(hold));
    EXPECT_TRUE(moved.Renew());
    hold = std::move(moved);
    EXPECT_FALSE(at.limiter.Acquire("key").allowed());
  }
  ScopedHold again(at.limiter, at.limiter.Acquire("key"));
  EXPECT_TRUE(again);
  EXPECT_TRUE(again.Release());
  EXPECT_FALSE(again.Release());
  ScopedHold last(at.limiter, at.limiter.Acquire("key"));
  const Acquired detached = last.Detach();
  last = ScopedHold(at.limiter, Acquired{});
  EXPECT_TRUE(at.limiter.Release(detached.hold));
}

// Threads take, keep and release a few keys as fast as they can. A gauge outside of weir counts who
// is inside: raised after a hold was taken and lowered before it is released.
TEST(HoldsUnderThreads, NeverMoreThanTheLimitAtOnce) {
  constexpr uint32_t kLimit = 3;
  constexpr int kThreads = 6;
  constexpr int kKeys = 3;
  Limiter limiter = *Limiter::Create(*Quota::Concurrency(kLimit, hours(1)),
                                     MemoryOptions{.budget_bytes = 1 << 20, .huge_pages = false});
  std::array<std::atomic<uint32_t>, kKeys> inside{};
  std::atomic<uint32_t> most{0};
  std::atomic<uint64_t> admitted{0};
  std::atomic<uint64_t> denied{0};
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      testing::Random random(static_cast<uint64_t>(t) + 1);
      ready.fetch_add(1);
      while (ready.load() < kThreads) {
      }
      for (int i = 0; i < 4000; ++i) {
        const auto k = static_cast<size_t>(random.Below(kKeys));
        const Acquired got = limiter.Acquire("key " + std::to_string(k));
        if (!got.allowed()) {
          denied.fetch_add(1);
          continue;
        }
        admitted.fetch_add(1);
        const uint32_t now_inside = inside[k].fetch_add(1) + 1;
        ASSERT_LE(now_inside, kLimit);
        uint32_t seen = most.load();
        while (seen < now_inside && !most.compare_exchange_weak(seen, now_inside)) {
        }
        if (random.OneIn(8)) {
          std::this_thread::yield();
        }
        ASSERT_TRUE(limiter.Renew(got.hold));
        inside[k].fetch_sub(1);
        ASSERT_TRUE(limiter.Release(got.hold));
        ASSERT_FALSE(limiter.Release(got.hold));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(most.load(), kLimit) << "the limit was never reached: nothing was tried";
  EXPECT_GT(denied.load(), 0U);
  EXPECT_GT(admitted.load(), uint64_t{kThreads} * 100);
  for (int k = 0; k < kKeys; ++k) {
    EXPECT_EQ(limiter.Check("key " + std::to_string(k), 0).remaining, kLimit);
  }
}

TEST(HoldsUnderThreads, OfTwoReleasesOneCounts) {
  Limiter limiter = *Limiter::Create(*Quota::Concurrency(1, hours(1)),
                                     MemoryOptions{.budget_bytes = 1 << 20, .huge_pages = false});
  for (int round = 0; round < 300; ++round) {
    const Hold hold = limiter.Acquire("key").hold;
    ASSERT_NE(hold.fence(), 0U);
    std::atomic<int> ready{0};
    std::atomic<int> released{0};
    const auto release = [&] {
      ready.fetch_add(1);
      while (ready.load() < 2) {
      }
      released.fetch_add(limiter.Release(hold) ? 1 : 0);
    };
    std::thread other(release);
    release();
    other.join();
    ASSERT_EQ(released.load(), 1);
  }
}

TEST(HoldsUnderThreads, WhatADeadThreadHeldComesBackAfterItsLease) {
  Fixture at("concurrency 1 lease 30s");
  Hold lost;
  std::thread([&] { lost = at.limiter.Acquire("key").hold; }).join();  // and never releases
  ASSERT_NE(lost.fence(), 0U);
  at.clock.Advance(seconds(30) - microseconds(1));
  EXPECT_FALSE(at.limiter.Acquire("key").allowed());
  at.clock.Advance(microseconds(1));
  EXPECT_TRUE(at.limiter.Acquire("key").allowed());
}

// A lock protects a resource that remembers the largest fence it has seen. Holders are paused for
// longer than their lease now and then, and write all the same.
TEST(HoldsUnderThreads, ALateHolderIsToldApartByItsFence) {
  Fixture at("concurrency 1 lease 1ms");
  std::atomic<uint64_t> largest{0};  // the resource
  std::atomic<uint64_t> writes{0};
  std::atomic<uint64_t> late{0};
  std::atomic<uint64_t> late_refused{0};
  std::atomic<uint64_t> wrong{0};
  // The last write that the resource took from a holder that was in time.
  std::vector<std::thread> threads;
  std::atomic<int> running{4};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      testing::Random random(static_cast<uint64_t>(t) + 7);
      for (int i = 0; i < 2000; ++i) {
        const Acquired got = at.limiter.Acquire("lock");
        if (!got.allowed()) {
          at.clock.Advance(microseconds(100));
          continue;
        }
        const bool pause = random.OneIn(4);
        if (pause) {
          // Until somebody else has had the lock and written.
          const uint64_t before = writes.load();
          at.clock.Advance(milliseconds(2));
          while (writes.load() == before && running.load() > 1 && late.load() < 4000) {
            late.fetch_add(1);
            std::this_thread::yield();
            at.clock.Advance(microseconds(100));
          }
        }
        uint64_t seen = largest.load();
        bool taken = false;
        while (seen < got.hold.fence() &&
               !(taken = largest.compare_exchange_weak(seen, got.hold.fence()))) {
        }
        if (taken) {
          writes.fetch_add(1);
        } else if (pause) {
          late_refused.fetch_add(1);
        } else if (at.limiter.Renew(got.hold)) {
          wrong.fetch_add(1);  // still the holder, and yet its number was not the largest
        }
        at.limiter.Release(got.hold);
      }
      running.fetch_sub(1);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_GT(writes.load(), 100U);
  EXPECT_GT(late_refused.load(), 0U) << "no late holder was seen: nothing was tried";
  EXPECT_EQ(wrong.load(), 0U);
}

}  // namespace
}  // namespace weir
