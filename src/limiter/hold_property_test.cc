// Random lives of a few concurrency keys against the exact oracle: admit iff both ways, remaining
// and retry_after, releases and renewals exactly once, fences that only grow, quotas that change.
#include <rapidcheck.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "weir/limiter.h"

#include "testing/hold_oracle.h"
#include "testing/random.h"
#include "testing/twin.h"

namespace weir {
namespace {

using testing::HoldOracle;
using testing::Random;

// One key and all that was ever held of it.
struct Key {
  struct Issued {
    Hold hold;
    size_t handle;
  };

  std::string name;
  HoldOracle oracle;
  std::vector<Issued> issued;
  uint64_t last_fence = 0;
};

class Life {
 public:
  explicit Life(uint64_t seed) : random_(seed) {
    limit_ = random_.OneIn(3) ? random_.Between(1, 3) : random_.Scaled(1, 60);
    lease_ = static_cast<int64_t>(random_.Scaled(1000, 5'000'000'000));
    small_ = limit_ <= 4;
    MemoryOptions options = testing::SmallStore(clock_);
    options.budget_bytes = MemoryStore::kMinBudgetBytes;
    limiter_.emplace(*Limiter::Create(CurrentQuota(), options));
    for (const char* name : {"a", "b", "c"}) {
      keys_.push_back({.name = name, .oracle = {}, .issued = {}});
    }
  }

  // Empty: all of it agreed.
  std::string Run(int steps) {
    for (int i = 0; i < steps && fault_.empty(); ++i) {
      Step(keys_[random_.Below(keys_.size())]);
      if (!fault_.empty()) {
        fault_ = "step " + std::to_string(i) + ", " + CurrentQuota().ToString() + ": " + fault_;
      }
    }
    return fault_;
  }

 private:
  [[nodiscard]] Quota CurrentQuota() const {
    return *Quota::Concurrency(static_cast<int64_t>(limit_), Duration(lease_));
  }

  [[nodiscard]] int64_t Now() const { return clock_.Now().time_since_epoch().count(); }

  void Expect(bool holds, const std::string& what) {
    if (!holds && fault_.empty()) {
      fault_ = what;
    }
  }

  template <class T, class U>
  void ExpectEqual(const T& found, const U& expected, const std::string& what) {
    Expect(found == expected,
           what + ": " + std::to_string(found) + ", not " + std::to_string(expected));
  }

  void Step(Key& key) {
    switch (random_.Below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return Acquire(key);
      case 5:
      case 6:
        return Release(key);
      case 7:
        return Renew(key);
      case 8:
        return Plain(key);
      case 9:
      case 10:
        return Wait(key);
      default:
        return random_.OneIn(3) ? Forget() : Change();
    }
  }

  // What every answer about a key must say, after `now_used` of it.
  void Judge(const Key& key, const Decision& decision, uint64_t cost, bool fits,
             const HoldOracle& before) {
    // There is always room: whatever others have left, their holds are over.
    Expect(decision.basis == Basis::kStore, "no room");
    ExpectEqual(decision.limit, limit_, "limit");
    ExpectEqual(decision.remaining, key.oracle.Remaining(Now(), limit_), "remaining");
    const int64_t last_end = key.oracle.LastEnd(Now()) - Now();
    if (decision.problem == Problem::kNone) {
      Expect(decision.reset_after.count() >= last_end, "reset_after is too short");
      if (small_) {
        ExpectEqual(decision.reset_after.count(), last_end, "reset_after");
      }
    }
    if (fits) {
      Expect(decision.allowed(), "denied what fits");
      ExpectEqual(decision.retry_after.count(), 0, "retry_after of what is allowed");
    } else if (cost <= limit_) {
      Expect(decision.outcome == Outcome::kDenied, "admitted what does not fit");
      ExpectEqual(decision.retry_after.count(), before.FirstFit(Now(), cost, limit_) - Now(),
                  "retry_after");
    } else {
      Expect(decision.problem == Problem::kCostAboveBurst, "admitted more than the limit");
    }
  }

  void Acquire(Key& key) {
    const uint64_t cost = random_.OneIn(3) ? random_.Below(limit_ + 2) : 1;
    AcquireOptions options{.cost = cost};
    int64_t lease = lease_;
    if (random_.OneIn(3)) {
      lease = static_cast<int64_t>(random_.Scaled(1000, 3'000'000'000));
      options.lease = Duration(lease);
    }
    const HoldOracle before = key.oracle;
    const bool fits = before.Fits(Now(), cost, limit_) && cost <= limit_;
    const Acquired got = limiter_->Acquire(key.name, options);
    if (fits && cost != 0) {
      Expect(got.hold.fence() > key.last_fence, "the fence did not grow");
      ExpectEqual(got.hold.units(), cost, "units held");
      key.last_fence = got.hold.fence();
      key.issued.push_back({got.hold, key.oracle.Take(Now(), cost, lease)});
    } else {
      ExpectEqual(got.hold.fence(), 0U, "fence of nothing");
    }
    Judge(key, got.decision, cost, fits || cost == 0, before);
  }

  void Release(Key& key) {
    if (key.issued.empty()) {
      return;
    }
    const Key::Issued& one = key.issued[random_.Below(key.issued.size())];
    ExpectEqual(limiter_->Release(one.hold), key.oracle.Release(one.handle, Now()), "released");
    ExpectEqual(limiter_->Release(one.hold), false, "released again");
    Look(key);
  }

  void Renew(Key& key) {
    if (key.issued.empty()) {
      return;
    }
    const Key::Issued& one = key.issued[random_.Below(key.issued.size())];
    RenewOptions options;
    int64_t lease = lease_;
    if (random_.OneIn(2)) {
      lease = static_cast<int64_t>(random_.Scaled(1000, 3'000'000'000));
      options.lease = Duration(lease);
    }
    ExpectEqual(limiter_->Renew(one.hold, options), key.oracle.Renew(one.handle, Now(), lease),
                "renewed");
    Look(key);
  }

  // The calls of all quotas: holds that end by their lease, or by receipt.
  void Plain(Key& key) {
    const HoldOracle before = key.oracle;
    const uint64_t remaining = before.Remaining(Now(), limit_);
    if (random_.OneIn(3)) {
      const uint64_t most = random_.Between(1, limit_ + 1);
      const uint64_t fits = std::min(most, remaining);
      const Decision decision = limiter_->TakeUpTo(key.name, most);
      ExpectEqual(decision.charged, fits, "taken of " + std::to_string(most));
      if (fits != 0) {
        key.oracle.Take(Now(), fits, lease_);
      }
      return Judge(key, decision, 1, fits != 0, before);
    }
    const bool always = random_.OneIn(4);
    const uint64_t cost = random_.Between(1, limit_);
    const bool fits = cost <= remaining;
    Receipt receipt;
    const Decision decision =
        limiter_->Check(key.name, {.cost = cost,
                                   .mode = always ? ChargeMode::kCountAlways : ChargeMode::kAdmit,
                                   .receipt = &receipt});
    if (fits || always) {
      key.issued.push_back({Hold{receipt}, key.oracle.Take(Now(), cost, lease_)});
      Expect(receipt.mark > key.last_fence, "the receipt's number did not grow");
      key.last_fence = receipt.mark;
      small_ = small_ && !always;
    }
    ExpectEqual(decision.remaining, key.oracle.Remaining(Now(), limit_), "remaining");
    Judge(key, decision, cost, fits, always ? key.oracle : before);
  }

  void Look(Key& key) { Judge(key, limiter_->Check(key.name, 0), 0, true, key.oracle); }

  // To the end of a lease and just before it, or by any length.
  void Wait(Key& key) {
    const int64_t last = key.oracle.LastEnd(Now());
    int64_t by = static_cast<int64_t>(random_.Scaled(1, 2'000'000'000));
    if (last > Now() && random_.OneIn(2)) {
      by = key.oracle.FirstFit(Now(), limit_ - key.oracle.Remaining(Now(), limit_), limit_) - Now();
      by = random_.OneIn(2) ? last - Now() - 1 : by;
    }
    clock_.Advance(Duration(std::max<int64_t>(by, 0)));
    Look(key);
  }

  // Many other keys, so that records of keys that hold nothing are taken back for them.
  void Forget() {
    clock_.Advance(std::chrono::seconds(3));
    for (int i = 0; i < 1500; ++i) {
      const std::string name = "other " + std::to_string(others_++);
      const Acquired got = limiter_->Acquire(name, {.lease = std::chrono::microseconds(1)});
      limiter_->Release(got.hold);
    }
    clock_.Advance(std::chrono::seconds(3));
  }

  void Change() {
    limit_ = random_.Scaled(1, 60);
    lease_ = static_cast<int64_t>(random_.Scaled(1000, 5'000'000'000));
    Expect(limiter_->Update(CurrentQuota()).ok(), "the quota could not be changed");
    small_ = false;
    for (Key& key : keys_) {
      Look(key);
    }
  }

  Random random_;
  ManualClock clock_{testing::Noon()};
  uint64_t limit_ = 1;
  int64_t lease_ = 0;
  bool small_ = true;  // no key has had more than four places
  std::optional<Limiter> limiter_;
  std::vector<Key> keys_;
  uint64_t others_ = 0;
  std::string fault_;
};

TEST(HoldsAdmitIff, HoldsForRandomLives) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    ASSERT_EQ(Life(seed).Run(60), "") << "seed " << seed;
  }
}

// Many holds of any length and size: when enough of them have
// ended is told to the tick.
TEST(HoldsAdmitIff, RetryAfterIsExactForManyHolds) {
  Random random(1);
  for (const uint64_t limit : {100U, 1000U, 3000U}) {
    ManualClock clock(testing::Noon());
    MemoryOptions options = testing::SmallStore(clock);
    options.budget_bytes = size_t{4} << 20;
    Limiter limiter = *Limiter::Create(
        *Quota::Concurrency(static_cast<int64_t>(limit), std::chrono::hours(1)), options);
    const int64_t now = clock.Now().time_since_epoch().count();
    HoldOracle oracle;
    const uint64_t longest = random.Scaled(1'000'000, 3'600'000'000'000);
    for (uint64_t left = limit; left != 0;) {
      const uint64_t units = std::min(left, random.OneIn(9) ? random.Between(1, 5) : 1);
      const auto lease = static_cast<int64_t>(random.Scaled(1000, longest));
      ASSERT_TRUE(
          limiter.Acquire("key", {.cost = units, .lease = Duration(lease)}).decision.allowed());
      oracle.Take(now, units, lease);
      left -= units;
    }
    for (int i = 0; i < 20; ++i) {
      const uint64_t cost = i < 2 ? (i == 0 ? 1 : limit) : random.Scaled(1, limit);
      const Decision denied = limiter.Check("key", CheckOptions{.cost = cost});
      ASSERT_EQ(denied.outcome, Outcome::kDenied);
      ASSERT_EQ(denied.retry_after.count(), oracle.FirstFit(now, cost, limit) - now)
          << cost << " of " << limit;
    }
  }
}

RC_GTEST_PROP(HoldsAdmitIffProperty, HoldsForAnyLife, ()) {
  RC_ASSERT(Life(*rc::gen::arbitrary<uint64_t>()).Run(200) == "");
}

}  // namespace
}  // namespace weir
