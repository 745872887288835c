// Leases taken and spent at random instants by threads that are played, next to every other way to
// charge the same key, against the exact oracles: nothing is ever admitted that the quota's law
// does not admit, and where units do not fade nothing is denied that it does.
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "weir/limiter.h"

#include "store/memory/lease_probe.h"
#include "testing/oracle.h"

namespace weir::store {
namespace {

using std::chrono::hours;

constexpr std::string_view kKey = "one hot key of twenty";

enum class Kind {
  kHot,          // a thread that lost races asks, and gets a lease if there is plenty
  kChecks,       // a few requests, one by one
  kBatch,        // the same in one call
  kAllThereIs,   // one request for all that the state has, which asks no lease back
  kUpTo,         // what there is, wherever it is
  kCountAlways,  // a little over the limit, perhaps
  kReceipt,      // a charge that may be given back
  kGiveBack,
  kIdle,  // the thread looks after its leases
};

struct Step {
  Kind kind{};
  uint32_t thread = 0;
  int64_t wait_us = 0;
  uint32_t cost = 1;
  uint32_t count = 1;
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
  constexpr const char* kNames[] = {"hot",          "checks",  "batch",     "all there is", "up to",
                                    "count always", "receipt", "give back", "idle"};
  return out << kNames[static_cast<size_t>(step.kind)] << " by " << step.thread << " after "
             << step.wait_us << " us, cost " << step.cost << " x " << step.count;
}

struct Tally {
  uint64_t leases = 0;
  uint64_t from_leases = 0;
  uint64_t denied = 0;
};

class History {
 public:
  History(const Quota& quota, bool receipts, bool exact_denials)
      : quota_(quota),
        store_(*MemoryStore::Create({.budget_bytes = 128 << 10, .clock = &clock_})),
        limiter_(*Limiter::Create(quota, store_)),
        oracle_(testing::MakeOracle(quota)),
        receipts_(receipts),
        exact_denials_(exact_denials) {
    Note(limiter_.Check(kKey), 1);
  }

  // "" if all is well.
  std::string Play(const std::vector<Step>& steps, Tally& tally) {
    for (const Step& step : steps) {
      clock_.Advance(std::chrono::microseconds(step.wait_us));
      const PlayedThread::As self(threads_[step.thread]);
      Do(step);
      if (!wrong_.empty()) {
        break;
      }
    }
    tally.leases += store_->Stats().leases;
    tally.from_leases += from_leases_;
    tally.denied += denied_;
    return wrong_;
  }

 private:
  [[nodiscard]] int64_t UnixNow() const { return clock_.WallNow().time_since_epoch().count(); }

  // An answer to a request of this cost that either takes it or not.
  size_t Note(const Decision& decision, uint64_t cost) {
    const bool fits = oracle_->Fits(UnixNow(), cost);
    if (decision.allowed() && !fits) {
      wrong_ = "admitted " + std::to_string(cost) + " too many by " +
               std::string(ToString(decision.basis));
    }
    if (!decision.allowed() && fits && exact_denials_) {
      wrong_ = "denied " + std::to_string(cost) + " that fit";
    }
    from_leases_ += static_cast<uint64_t>(decision.basis == Basis::kLease);
    denied_ += static_cast<uint64_t>(!decision.allowed());
    return decision.allowed() ? oracle_->Charge(UnixNow(), cost) : 0;
  }

  void Do(const Step& step) {
    const Timestamp now = limiter_.Now();
    switch (step.kind) {
      case Kind::kHot:
        for (int i = 0; i < 3; ++i) {
          auto& binding = const_cast<Binding&>(*store_->state().BindingOf(1));
          tls_lost_race = true;
          Decision decision;
          binding.ops.check(binding, kKey, step.cost, store_->state().ReadClock(), decision);
          Note(decision, step.cost);
        }
        tls_lost_race = false;
        break;
      case Kind::kChecks:
        for (uint32_t i = 0; i < step.count; ++i) {
          Note(limiter_.Check(kKey, now, step.cost), step.cost);
        }
        break;
      case Kind::kBatch: {
        const std::vector<std::string_view> keys(step.count, kKey);
        std::vector<Decision> decisions(step.count);
        limiter_.CheckMany(keys, now, decisions, step.cost);
        for (const Decision& decision : decisions) {
          Note(decision, step.cost);
        }
        break;
      }
      case Kind::kAllThereIs:
        if (const uint32_t there = limiter_.Check(kKey, 0).remaining; there != 0) {
          Note(limiter_.Check(kKey, now, there), there);
        }
        break;
      case Kind::kUpTo:
        if (const Decision decision = limiter_.TakeUpTo(kKey, step.cost * step.count);
            decision.charged != 0) {
          Note(decision, decision.charged);
        }
        break;
      case Kind::kCountAlways:
        if (limiter_.Check(kKey, 0).remaining >= step.cost) {
          limiter_.Check(kKey,
                         CheckOptions{.cost = 2 * step.cost, .mode = ChargeMode::kCountAlways});
          oracle_->Charge(UnixNow(), 2 * step.cost);
        }
        break;
      case Kind::kReceipt:
        TakeReceipt(step.cost * 20);
        break;
      case Kind::kGiveBack:
        if (!held_.empty()) {
          Held& held = held_[step.count % held_.size()];
          // As if all of it had come back, which is never less than what did; a part of a unit may
          // have, and is not told.
          limiter_.GiveBack(held.receipt);
          oracle_->Remove(held.handle);
        }
        break;
      case Kind::kIdle:
        LeaseOffice::Tidy();
        break;
    }
  }

  void TakeReceipt(uint32_t cost) {
    if (!receipts_ || cost > quota_.burst()) {
      return;
    }
    Held held;
    const Decision decision =
        limiter_.Check(kKey, CheckOptions{.cost = cost, .receipt = &held.receipt});
    held.handle = Note(decision, cost);
    if (decision.allowed()) {
      held_.push_back(held);
    }
  }

  struct Held {
    Receipt receipt;
    size_t handle = 0;
  };

  Quota quota_;
  ManualClock clock_{WallTime(hours(24 * 20'000))};
  std::shared_ptr<MemoryStore> store_;
  Limiter limiter_;
  std::unique_ptr<testing::Oracle> oracle_;
  bool receipts_;
  bool exact_denials_;
  std::array<PlayedThread, 3> threads_{PlayedThread(0), PlayedThread(1), PlayedThread(2)};
  std::vector<Held> held_;
  std::string wrong_;
  uint64_t from_leases_ = 0;
  uint64_t denied_ = 0;
};

std::vector<Step> AnySteps(int64_t longest_wait_us) {
  return *rc::gen::scale(
      3.0, rc::gen::container<std::vector<Step>>(rc::gen::build<Step>(
               rc::gen::set(&Step::kind, rc::gen::weightedElement<Kind>({{4, Kind::kHot},
                                                                         {6, Kind::kChecks},
                                                                         {2, Kind::kBatch},
                                                                         {2, Kind::kAllThereIs},
                                                                         {1, Kind::kUpTo},
                                                                         {1, Kind::kCountAlways},
                                                                         {2, Kind::kReceipt},
                                                                         {2, Kind::kGiveBack},
                                                                         {1, Kind::kIdle}})),
               rc::gen::set(&Step::thread, rc::gen::inRange<uint32_t>(0, 3)),
               rc::gen::set(&Step::wait_us,
                            rc::gen::oneOf(rc::gen::just<int64_t>(0),
                                           rc::gen::inRange<int64_t>(0, longest_wait_us))),
               rc::gen::set(&Step::cost,
                            rc::gen::weightedElement<uint32_t>({{4, 1U}, {1, 2U}, {1, 3U}})),
               rc::gen::set(&Step::count, rc::gen::inRange<uint32_t>(1, 25)))));
}

// What all cases of a property came to: they are worth something only if leases were at work.
void Expect(const Tally& tally) {
  EXPECT_GT(tally.leases, 20U);
  EXPECT_GT(tally.from_leases, 200U);
  EXPECT_GT(tally.denied, 20U);
}

TEST(LeaseProperty, BucketsAdmitNothingBeyondTheirLaw) {
  Tally tally;
  EXPECT_TRUE(rc::check([&] {
    const auto burst = *rc::gen::inRange<int64_t>(260, 1500);
    const auto interval_us = *rc::gen::inRange<int64_t>(1, 50);
    const Quota quota =
        *Quota::TokenBucket(1, Duration(std::chrono::microseconds(interval_us)), burst);
    RC_ASSERT(History(quota, true, false).Play(AnySteps(interval_us * 100), tally) == "");
  }));
  Expect(tally);
}

TEST(LeaseProperty, WindowsAdmitExactlyTheirLaw) {
  Tally tally;
  EXPECT_TRUE(rc::check([&] {
    const auto limit = *rc::gen::inRange<int64_t>(260, 1500);
    const Duration window = std::chrono::milliseconds(1);
    const bool first_hit = *rc::gen::arbitrary<bool>();
    const Quota quota = first_hit ? *Quota::FixedWindow(limit, window, WindowStart::kFirstHit)
                                  : *Quota::FixedWindow(limit, window);
    // A first hit that never was would have opened no window.
    RC_ASSERT(History(quota, !first_hit, true).Play(AnySteps(100), tally) == "");
  }));
  Expect(tally);
}

TEST(LeaseProperty, SlidingWindowsAdmitNothingBeyondTheirLaw) {
  Tally tally;
  EXPECT_TRUE(rc::check([&] {
    const auto limit = *rc::gen::inRange<int64_t>(260, 1500);
    const Quota quota = *Quota::SlidingWindow(limit, std::chrono::milliseconds(1));
    RC_ASSERT(History(quota, true, false).Play(AnySteps(200), tally) == "");
  }));
  Expect(tally);
}

}  // namespace
}  // namespace weir::store
