// Leases on real threads: found by themselves, given back by whatever can end one, and never a unit
// more or less than the quota has.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "store/memory/lease_probe.h"

namespace weir::store {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr uint32_t kUnits = 1000;
constexpr const char* kKey = "one hot key of twenty";

// A thread that takes a lease and holds it until told to go on.
class Holder {
 public:
  explicit Holder(
      Limiter& limiter, std::function<void()> then = [] {}, uint32_t quota = 1)
      : thread_([this, &limiter, then = std::move(then), quota] {
          last_ = CheckAsHot(limiter, kKey, limiter.Now(), 1, &admitted_, quota);
          holds_.count_down();
          go_on_.wait();
          then();
        }) {
    holds_.wait();
    EXPECT_EQ(last_.basis, Basis::kLease);
  }
  ~Holder() { End(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  void End() {
    if (thread_.joinable()) {
      go_on_.count_down();
      thread_.join();
    }
  }

  [[nodiscard]] uint64_t admitted() const { return admitted_; }

 private:
  uint64_t admitted_ = 0;
  Decision last_;
  std::latch holds_{1};
  std::latch go_on_{1};
  std::thread thread_;
};

uint64_t SpendAll(Limiter& limiter) {
  uint64_t spent = 0;
  while (limiter.Check(kKey, limiter.Now()).allowed()) {
    ++spent;
  }
  return spent;
}

class Lease : public ::testing::TestWithParam<const char*> {
 protected:
  static std::shared_ptr<MemoryStore> MakeStore(const Clock& clock, bool hot_keys = true) {
    return *MemoryStore::Create({.budget_bytes = 256 << 10, .clock = &clock, .hot_keys = hot_keys});
  }

  ManualClock clock_{WallTime(hours(24 * 20'000))};
  std::shared_ptr<MemoryStore> store_ = MakeStore(clock_);
  Limiter limiter_ = *Limiter::Create(*Quota::Parse(GetParam()), store_);
  // The key has a state, so that races for it can be lost.
  uint64_t first_ = limiter_.Check(kKey).charged;
};

TEST_P(Lease, IsSpentWithoutTouchingTheStateAndAnswersAsItWould) {
  CheckAsHot(limiter_, kKey, limiter_.Now());
  const Decision before = limiter_.Check(kKey, limiter_.Now());
  const Decision after = limiter_.Check(kKey, limiter_.Now());
  EXPECT_EQ(after.basis, Basis::kLease);
  EXPECT_EQ(ToString(after.basis), "lease");
  EXPECT_EQ(after.remaining, before.remaining - 1);
  EXPECT_EQ(after.limit, kUnits);
  EXPECT_EQ(after.charged, 1U);
  EXPECT_EQ(after.reset_after, before.reset_after);
  EXPECT_GT(after.reset_after.count(), 0);
  EXPECT_EQ(store_->Stats().leases, 1U);
  // What a peek says is left counts no lease.
  EXPECT_LT(limiter_.Check(kKey, 0).remaining, after.remaining);
  LeaseOffice::Drop(tls_desk->CellOf(TableProbe(*store_).HashOf(kKey)));
  LeaseOffice::Tidy();
  EXPECT_FALSE(HoldsLeases());
}

TEST_P(Lease, OfAThreadThatEndsComesBack) {
  Holder holder(limiter_);
  const uint64_t admitted = first_ + holder.admitted();
  EXPECT_LT(limiter_.Check(kKey, 0).remaining, kUnits - admitted);
  holder.End();
  EXPECT_EQ(limiter_.Check(kKey, 0).remaining, kUnits - admitted);
  EXPECT_EQ(store_->Stats().leases_returned, 1U);
}

TEST_P(Lease, OfAThreadThatExitsInTheMidstComesBack) {
  struct Shared {
    Limiter& limiter;
    uint64_t admitted = 0;
  } shared{limiter_};
  pthread_t thread{};
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* argument) -> void* {
                  auto& mine = *static_cast<Shared*>(argument);
                  CheckAsHot(mine.limiter, kKey, mine.limiter.Now(), 1, &mine.admitted);
                  pthread_exit(nullptr);
                },
                &shared),
            0);
  pthread_join(thread, nullptr);
  EXPECT_EQ(store_->Stats().leases, 1U);
  EXPECT_EQ(limiter_.Check(kKey, 0).remaining, kUnits - first_ - shared.admitted);
}

TEST_P(Lease, OfADetachedThreadComesBack) {
  std::latch ended(1);
  uint64_t admitted = 0;
  // Made before the lease, so destroyed after it.
  struct Tell {
    std::latch* latch = nullptr;
    ~Tell() {
      if (latch != nullptr) {
        latch->count_down();
      }
    }
  };
  std::thread([&] {
    thread_local Tell tell;
    tell.latch = &ended;
    CheckAsHot(limiter_, kKey, limiter_.Now(), 1, &admitted);
  }).detach();
  ended.wait();
  EXPECT_EQ(limiter_.Check(kKey, 0).remaining, kUnits - first_ - admitted);
}

// The bound on what is wasted: a thread withholds a lease less the unit it took it for, and only
// until somebody is denied.
TEST_P(Lease, WithholdsNoMoreThanItsSizeAndNothingFromWhoIsDenied) {
  constexpr size_t kHolders = 4;
  constexpr uint32_t kLargest = 32;  // the first one that a thread takes
  std::vector<std::unique_ptr<Holder>> holders;
  uint64_t admitted = first_;
  for (size_t i = 0; i < kHolders; ++i) {
    holders.push_back(std::make_unique<Holder>(limiter_));
    admitted += holders.back()->admitted();
  }
  const uint64_t left = kUnits - admitted;
  const uint64_t seen = limiter_.Check(kKey, 0).remaining;
  EXPECT_LT(seen, left);
  EXPECT_GE(seen, left - kHolders * (kLargest - 1));
  // Asks for all of it, in one request.
  EXPECT_EQ(limiter_.Check(kKey, limiter_.Now(), left).charged, left);
  EXPECT_FALSE(limiter_.Check(kKey, limiter_.Now()).allowed());
  EXPECT_EQ(store_->Stats().leases_returned, kHolders);
}

// For a thread that is blocked, or does other things, the store's refreshes look.
TEST_P(Lease, OfAThreadThatDoesNotComeBackToItIsReturnedByTheStoresClock) {
  Holder holder(limiter_);
  const uint64_t left = kUnits - first_ - holder.admitted();
  EXPECT_LT(limiter_.Check(kKey, 0).remaining, left);
  // Any key, any quota of the store; twice, since the first may be a moment after the lease.
  for (int refresh = 0; refresh < 2; ++refresh) {
    clock_.Advance(milliseconds(300));
    limiter_.Check("another key of twenty");
  }
  EXPECT_EQ(store_->Stats().leases_returned, 1U);
  EXPECT_GE(limiter_.Check(kKey, 0).remaining, left);
}

TEST_P(Lease, ThatIsSpentFromIsLeftAlone) {
  uint64_t admitted = 0;
  CheckAsHot(limiter_, kKey, limiter_.Now(), 1, &admitted);
  PlayedThread other(1);
  for (int refresh = 0; refresh < 5; ++refresh) {
    EXPECT_EQ(limiter_.Check(kKey, limiter_.Now()).basis, Basis::kLease) << refresh;
    clock_.Advance(milliseconds(2));
    const PlayedThread::As as(other);
    store_->Maintain();
  }
  LeaseOffice::Drop(tls_desk->CellOf(TableProbe(*store_).HashOf(kKey)));
  LeaseOffice::Tidy();
}

TEST_P(Lease, ComesBackToWhoeverWouldBeDenied) {
  uint64_t later = 0;
  Holder holder(limiter_, [&] { later = SpendAll(limiter_); });
  const uint64_t admitted = first_ + holder.admitted() + SpendAll(limiter_);
  EXPECT_EQ(admitted, kUnits);
  holder.End();
  EXPECT_EQ(later, 0U);
}

TEST_P(Lease, ComesBackToOtherWaysOfCharging) {
  {
    const Holder holder(limiter_);
    const uint64_t left = kUnits - first_ - holder.admitted();
    EXPECT_EQ(limiter_.TakeUpTo(kKey, kUnits).charged, left);
  }
  Limiter second = *Limiter::Create(*Quota::Parse(GetParam()), store_);
  second.Check(kKey);
  const Holder holder(second, [] {}, 2);
  const uint64_t left = kUnits - 1 - holder.admitted();
  Charge charges[] = {{&second, kKey, left}};
  Decision parts[1];
  EXPECT_TRUE(CheckAll(charges, parts).allowed());
}

TEST_P(Lease, IsTakenAndSpentInBatches) {
  const std::vector<std::string_view> keys(kUnits, kKey);
  std::vector<Decision> decisions(kUnits);
  uint64_t admitted = first_;
  CheckAsHot(limiter_, kKey, limiter_.Now(), 1, &admitted);
  limiter_.CheckMany(keys, decisions);
  uint64_t from_leases = 0;
  for (const Decision& decision : decisions) {
    admitted += decision.charged;
    from_leases += static_cast<uint64_t>(decision.basis == Basis::kLease);
  }
  EXPECT_EQ(admitted, kUnits);
  EXPECT_GT(from_leases, kUnits / 2);
  EXPECT_EQ(store_->Stats().decisions, kUnits + 1 + 3);
}

TEST_P(Lease, EndsWithAChangeOfQuotaWhichCarriesOverOnlyWhatWasSpent) {
  uint64_t later = 0;
  Holder holder(limiter_, [&] { later = SpendAll(limiter_); });
  const uint64_t admitted = first_ + holder.admitted();
  QuotaSpec spec;
  const Quota old = limiter_.quota();
  spec.algorithm = old.algorithm();
  spec.limit = old.algorithm() == Algorithm::kTokenBucket ? old.limit() : kUnits + 500;
  spec.window = old.window();
  spec.burst = old.algorithm() == Algorithm::kTokenBucket ? kUnits + 500 : 0;
  spec.start = old.start();
  spec.period = old.period();
  spec.time_zone = old.time_zone();
  ASSERT_TRUE(limiter_.Update(*Quota::Create(spec)).ok());
  const uint64_t since = SpendAll(limiter_);
  EXPECT_EQ(admitted + since, kUnits + 500);
  holder.End();
  EXPECT_EQ(later, 0U);
}

TEST_P(Lease, EndsWithAChangeToAnotherKindOfQuota) {
  uint64_t later = 0;
  Holder holder(limiter_, [&] { later = SpendAll(limiter_); });
  const uint64_t admitted = first_ + holder.admitted();
  const bool bucket = limiter_.quota().algorithm() == Algorithm::kTokenBucket;
  const char* const next = bucket ? "2000/h fixed-window" : "7/h burst 2000";
  ASSERT_TRUE(limiter_.Update(*Quota::Parse(next)).ok());
  const uint64_t since = SpendAll(limiter_);
  holder.End();
  EXPECT_LE(admitted + since + later, 2000U);
  EXPECT_GE(admitted + since + later, 1999U);
}

TEST_P(Lease, NotUsedForAWhileComesBackWhenItsThreadAsksForOtherKeys) {
  uint64_t admitted = first_;
  CheckAsHot(limiter_, kKey, limiter_.Now(), 1, &admitted);
  for (int i = 0; i < 1000; ++i) {
    limiter_.Check("another key of twenty", limiter_.Now());
  }
  EXPECT_TRUE(HoldsLeases());
  clock_.Advance(milliseconds(20));
  for (int i = 0; i < 1000; ++i) {
    limiter_.Check("another key of twenty", limiter_.Now());
  }
  EXPECT_FALSE(HoldsLeases());
  EXPECT_GE(limiter_.Check(kKey, 0).remaining, kUnits - admitted);
}

// A child has a copy of the state, but not the thread that held units of it. It gets them all the
// same, and what it takes nobody else sees.
TEST_P(Lease, IsNotLostToAChildOfAFork) {
  uint64_t later = 0;
  Holder holder(limiter_, [&] { later = SpendAll(limiter_); });
  const uint64_t left = kUnits - first_ - holder.admitted();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    _exit(SpendAll(limiter_) == left ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  holder.End();
  EXPECT_EQ(later, left);
}

TEST_P(Lease, MayOutliveItsStore) {
  uint64_t in_another = 0;
  auto other = MakeStore(clock_);
  Limiter still_there = *Limiter::Create(*Quota::Parse(GetParam()), other);
  bool holds_in_the_end = true;
  {
    auto doomed = MakeStore(clock_);
    auto limiter = std::make_unique<Limiter>(*Limiter::Create(*Quota::Parse(GetParam()), doomed));
    limiter->Check(kKey);
    Holder holder(*limiter, [&] {
      in_another = SpendAll(still_there);
      LeaseOffice::Tidy();
      holds_in_the_end = HoldsLeases();
    });
    limiter.reset();
    doomed.reset();
  }
  EXPECT_EQ(in_another, kUnits);
  EXPECT_FALSE(holds_in_the_end);
}

// A store of the same shape in the same place gives the same key the same hash.
TEST_P(Lease, OfADeadStoreIsNotSpentInTheNext) {
  for (int i = 0; i < 10; ++i) {
    auto store = MakeStore(clock_);
    Limiter limiter = *Limiter::Create(*Quota::Parse(GetParam()), store);
    uint64_t admitted = limiter.Check(kKey, limiter.Now()).charged;
    EXPECT_EQ(CheckAsHot(limiter, kKey, limiter.Now(), 1, &admitted).basis, Basis::kLease);
    EXPECT_EQ(admitted, 4U) << "as the first time";
  }
  LeaseOffice::Tidy();
}

TEST_P(Lease, IsNotTakenIfSwitchedOff) {
  const auto store = MakeStore(clock_, false);
  Limiter limiter = *Limiter::Create(*Quota::Parse(GetParam()), store);
  limiter.Check(kKey);
  EXPECT_EQ(CheckAsHot(limiter, kKey, limiter.Now()).basis, Basis::kStore);
  EXPECT_EQ(store->Stats().leases, 0U);
  EXPECT_FALSE(HoldsLeases());
}

INSTANTIATE_TEST_SUITE_P(Quotas, Lease,
                         ::testing::Values("1000/s burst 1000", "7/h burst 1000", "1000/h",
                                           "1000/h fixed-window",
                                           "1000/h fixed-window from first-hit", "1000/month"));

// How much a lease may grow to while it is spent fast: `withheld` is what one thread keeps from the
// state, less the unit that it asked for last.
class GrownLease : public ::testing::TestWithParam<const char*> {
 protected:
  // The most that was withheld at any time while the key came down to `until` units.
  static uint64_t MostWithheld(Limiter& limiter, uint64_t until, uint64_t& at_most) {
    uint64_t most = 0;
    uint64_t left = limiter.Check(kKey, limiter.Now()).remaining;
    CheckAsHot(limiter, kKey, limiter.Now());
    while (left > until) {
      const Decision decision = limiter.Check(kKey, limiter.Now());
      EXPECT_TRUE(decision.allowed());
      const uint64_t seen = limiter.Check(kKey, 0).remaining;
      const uint64_t withheld = decision.remaining - seen;
      // A lease is taken when the one before is used up, from what there is then.
      if (withheld > most) {
        at_most = decision.remaining + 1;
      }
      most = std::max(most, withheld);
      left = decision.remaining;
    }
    return most;
  }
};

TEST_P(GrownLease, IsForAThousandRequestsAtTheMost) {
  const ManualClock clock(WallTime(hours(24 * 20'000)));
  const auto store = *MemoryStore::Create({.budget_bytes = 256 << 10, .clock = &clock});
  Limiter limiter = *Limiter::Create(*Quota::Parse(GetParam()), store);
  const uint32_t units = limiter.quota().burst();
  ASSERT_GE(units, 32'768U);
  uint64_t at_most = 0;
  EXPECT_EQ(MostWithheld(limiter, units - 8192, at_most), 1023U);
}

TEST_P(GrownLease, IsForASixteenthOfWhatThereIsAtTheMost) {
  const ManualClock clock(WallTime(hours(24 * 20'000)));
  const auto store = *MemoryStore::Create({.budget_bytes = 256 << 10, .clock = &clock});
  Limiter limiter = *Limiter::Create(*Quota::Parse(GetParam()), store);
  // So little is left that a sixteenth is less than a thousand.
  ASSERT_TRUE(limiter.Check(kKey, limiter.quota().burst() - 8000).allowed());
  uint64_t available = 0;
  const uint64_t most = MostWithheld(limiter, 4000, available);
  EXPECT_EQ(most, available / 16 - 1);
  EXPECT_GT(most, 400U);
}

INSTANTIATE_TEST_SUITE_P(Quotas, GrownLease,
                         ::testing::Values("7/h burst 40000", "40000/h", "40000/h fixed-window"));

// Nobody tells these threads that the key is hot. Returns how many leases they took.
uint64_t Contend(const Quota& quota) {
  constexpr int kThreads = 4;
  const ManualClock clock(WallTime(hours(24 * 20'000)));
  const auto store = *MemoryStore::Create({.budget_bytes = 256 << 10, .clock = &clock});
  Limiter limiter = *Limiter::Create(quota, store);
  const uint32_t units = limiter.quota().burst();
  std::atomic<uint64_t> admitted{0};
  std::atomic<int> started{0};
  const auto work = [&](bool batches) {
    started.fetch_add(1);
    while (started.load() < kThreads) {
      std::this_thread::yield();
    }
    const std::vector<std::string_view> keys(20, kKey);
    std::vector<Decision> decisions(20);
    uint64_t mine = 0;
    for (uint64_t before = ~uint64_t{0}; before != mine;) {
      before = mine;
      if (batches) {
        limiter.CheckMany(keys, decisions);
        for (const Decision& decision : decisions) {
          mine += decision.charged;
        }
      } else {
        mine += limiter.Check(kKey).charged;
      }
    }
    admitted += mine;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back(work, i % 2 == 1);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(admitted.load(), units);
  return store->Stats().leases;
}

class Contended : public ::testing::TestWithParam<const char*> {};

TEST_P(Contended, ThreadsGetExactlyWhatThereIs) {
  // On a busy machine one of them may have it all before the next has begun.
  constexpr int kRoundsMax = 400;
  uint64_t leases = 0;
  for (int round = 0; round < kRoundsMax && (round < 3 || leases == 0); ++round) {
    leases += Contend(*Quota::Parse(GetParam()));
  }
  EXPECT_GT(leases, 0U);
}

INSTANTIATE_TEST_SUITE_P(Quotas, Contended,
                         ::testing::Values("1000/s burst 1000000", "7/h burst 1000000",
                                           "1000000/h fixed-window"));

}  // namespace
}  // namespace weir::store
