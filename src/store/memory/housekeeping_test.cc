// What time does to a table: clocks inside states wrap, overflow bits go away again, and no live
// key is lost over it.
#include "store/memory/housekeeping.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "store/memory/table_probe.h"

namespace weir::store {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

MemoryOptions Small(const Clock& clock, int wide_percent) {
  return {.budget_bytes = 64 << 10, .clock = &clock, .wide_percent = wide_percent};
}

WallTime SomeDay() {
  return WallTime(hours(24 * 20'000) + hours(7));
}

// A key as an exact bucket, in nanoseconds.
class Bucket {
 public:
  Bucket(Duration emission, int64_t burst) : emission_(emission), burst_(burst) {}

  bool Take(Timestamp now, int64_t cost) {
    const Timestamp after = std::max(tat_, now) + emission_ * cost;
    if (after > now + emission_ * burst_) {
      return false;
    }
    tat_ = after;
    return true;
  }

  [[nodiscard]] int64_t Remaining(Timestamp now) const {
    return (now + emission_ * burst_ - std::max(tat_, now)) / emission_;
  }

 private:
  Duration emission_;
  int64_t burst_;
  Timestamp tat_{};
};

struct WrapCase {
  const char* quota;
  Duration step;
  Duration total;
};

void PrintTo(const WrapCase& c, std::ostream* out) {
  *out << c.quota;
}

class Wraps : public ::testing::TestWithParam<WrapCase> {};

TEST_P(Wraps, AnIdleKeyIsFreshAfterAnyTime) {
  const WrapCase& param = GetParam();
  ManualClock clock(SomeDay());
  const Quota quota = *Quota::Parse(param.quota);
  Limiter limiter = *Limiter::Create(quota, {.budget_bytes = 64 << 10, .clock = &clock});
  // Keys charged at many phases of the wrap, each then left alone for ever.
  struct Idle {
    std::string key;
    Timestamp fresh_at;
  };
  std::vector<Idle> keys;
  const auto steps = param.total / param.step;
  const auto every = std::max<int64_t>(1, steps / 60);
  for (int64_t i = 0; i < steps; ++i) {
    clock.Advance(param.step);
    if (i % every == 0) {
      const std::string key = "idle" + std::to_string(i);
      const Decision charged = limiter.Check(key, quota.burst());
      ASSERT_TRUE(charged.allowed()) << "a key never seen, after step " << i;
      keys.push_back({key, limiter.Now() + charged.reset_after});
      for (const Idle& idle : keys) {
        if (limiter.Now() >= idle.fresh_at) {
          const Decision peek = limiter.Check(idle.key, 0);
          ASSERT_EQ(peek.remaining, quota.burst()) << idle.key << " after step " << i;
          ASSERT_EQ(peek.reset_after, Duration::zero());
        }
      }
    }
    ASSERT_EQ(limiter.Check("ticker", 0).problem, Problem::kNone);
  }
  clock.Advance(param.step + seconds(200));
  for (const Idle& idle : keys) {
    if (limiter.Now() >= idle.fresh_at) {
      ASSERT_TRUE(limiter.Check(idle.key, quota.burst()).allowed()) << idle.key;
    }
  }
}

// 8-byte states wrap after 76 hours, 4294967291/s after four and a half minutes.
INSTANTIATE_TEST_SUITE_P(
    Steps, Wraps,
    ::testing::Values(WrapCase{"10/s burst 20", minutes(1), hours(240)},
                      WrapCase{"10/s burst 20", minutes(61), hours(400)},
                      WrapCase{"10/s burst 20", hours(39), hours(2000)},
                      WrapCase{"10/s burst 20", hours(77), hours(4000)},
                      WrapCase{"10/s burst 20", hours(200), hours(4000)},
                      WrapCase{"1/h burst 9", hours(200), hours(4000)},
                      WrapCase{"gap 2s", hours(50), hours(1000)},
                      WrapCase{"4294967291/s burst 1000", seconds(1), minutes(20)},
                      WrapCase{"4294967291/s burst 1000", seconds(100), hours(3)},
                      WrapCase{"4294967291/s burst 1000", seconds(150), hours(3)},
                      WrapCase{"4294967291/s burst 1000", hours(200), hours(4000)},
                      WrapCase{"100/min", hours(200), hours(4000)},
                      WrapCase{"100/min fixed-window", hours(200), hours(4000)},
                      WrapCase{"4000000000/s fixed-window", seconds(100), hours(3)},
                      WrapCase{"100/min fixed-window from first-hit", minutes(61), hours(400)},
                      WrapCase{"1000000/s fixed-window from first-hit", minutes(7), hours(40)},
                      WrapCase{"1000000/s fixed-window from first-hit", hours(200), hours(4000)},
                      WrapCase{"100/min fixed-window from per-key", hours(200), hours(4000)},
                      WrapCase{"100/day calendar", hours(200), hours(4000)}));

TEST(Wrap, ALiveKeyKeepsItsDebtThroughThreeOfThem) {
  for (const Duration step : {Duration(minutes(7)), Duration(minutes(61)), Duration(hours(4))}) {
    ManualClock clock(SomeDay());
    // Owes up to nine hours, the longest that an 8-byte state holds.
    Limiter limiter = *Limiter::Create(*Quota::Parse("1/h burst 9"), Small(clock, 0));
    ASSERT_TRUE(TableProbe(*limiter.store()).compact());
    Bucket bucket(hours(1), 9);
    uint64_t random = 1;
    for (Duration passed{}; passed < hours(3 * 77); passed += step) {
      clock.Advance(step);
      const Timestamp now = limiter.Now();
      ASSERT_EQ(limiter.Check("live", 0).remaining, bucket.Remaining(now));
      random = random * 6364136223846793005U + 1442695040888963407U;
      const auto cost = static_cast<int64_t>(1 + (random >> 33) % 9);
      ASSERT_EQ(limiter.Check("live", cost).allowed(), bucket.Take(now, cost));
    }
  }
}

TEST(Wrap, ALiveKeyOfAFastQuotaKeepsItsDebt) {
  ManualClock clock(SomeDay());
  // A debt of up to 30 s on a clock that repeats after 275 s.
  Limiter limiter = *Limiter::Create(*Quota::TokenBucket(143'000'003, seconds(1), 4'290'000'090),
                                     Small(clock, 100));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(limiter.Check("live", 4'290'000'090).allowed()) << i;
    clock.Advance(seconds(15));
    const Decision decision = limiter.Check("live", 0);
    ASSERT_NEAR(decision.remaining, 2'145'000'045.0, 5000.0) << i;
    clock.Advance(seconds(16));
  }
}

class OverFilled : public ::testing::TestWithParam<int> {};

TEST_P(OverFilled, LosesNoLiveKeyAndFindsItsWayBackToShortSearches) {
  ManualClock clock(SomeDay());
  const Duration emission = seconds(1);
  constexpr int64_t kBurst = 30;
  auto store = *MemoryStore::Create(Small(clock, GetParam()));
  Limiter limiter = *Limiter::Create(*Quota::TokenBucket(1, emission, kBurst), store);
  const TableProbe probe(*store);
  const uint64_t slots = probe.table().slot_count();

  std::map<std::string, Bucket> oracle;
  const auto check = [&](const std::string& key, int64_t cost) {
    Bucket& bucket = oracle.try_emplace(key, emission, kBurst).first->second;
    const Decision decision = limiter.Check(key, cost);
    ASSERT_EQ(decision.basis, Basis::kStore) << key;
    ASSERT_EQ(decision.allowed(), cost == 0 || bucket.Take(limiter.Now(), cost)) << key;
    ASSERT_EQ(decision.remaining, bucket.Remaining(limiter.Now())) << key;
  };

  // As many as fit and more; some find no slot and are not of interest here.
  std::vector<std::string> displaced;
  for (uint64_t i = 0; i < slots + slots / 8; ++i) {
    const std::string key = "fill" + std::to_string(i);
    if (limiter.Check(key, kBurst).basis == Basis::kStore) {
      oracle.try_emplace(key, emission, kBurst).first->second.Take(limiter.Now(), kBurst);
      if (probe.DistanceOf(key) > 0) {
        displaced.push_back(key);
      }
    }
  }
  ASSERT_GT(store->Stats().overflow, 0U);
  ASSERT_GT(displaced.size(), 300U);
  EXPECT_GT(probe.OverflowedLines(), probe.table().line_count() / 2);

  // Of the keys beyond their homes: some are charged, some only denied, some peeked at, and some
  // come back just before, or long after, they would be as new.
  displaced.resize(300);
  for (int second = 1; second <= 400; ++second) {
    clock.Advance(seconds(1));
    ASSERT_EQ(limiter.Check("ticker", 0).problem, Problem::kNone);
    for (size_t i = 0; i < displaced.size(); ++i) {
      const std::string& key = displaced[i];
      const auto step = static_cast<size_t>(second) + i;
      switch (i % 6) {
        case 0:
          ASSERT_NO_FATAL_FAILURE(check(key, 1));
          break;
        case 1:
          ASSERT_NO_FATAL_FAILURE(check(key, step % 29 == 0 ? 29 : 30));
          break;
        case 2:
          if (step % 29 == 0) {
            ASSERT_NO_FATAL_FAILURE(check(key, 29));
          }
          break;
        case 3:
          if (step % 7 == 0) {
            ASSERT_NO_FATAL_FAILURE(check(key, 0));
          }
          break;
        case 4:
          if (step % 59 == 0 || step % 59 == 28) {
            ASSERT_NO_FATAL_FAILURE(check(key, 30));
          }
          break;
        default:
          if (step % 131 == 0) {
            ASSERT_NO_FATAL_FAILURE(check(key, 30));
          }
          break;
      }
    }
  }
  // The bits that are left lead to keys that are still in use.
  EXPECT_LT(probe.OverflowedLines(), probe.table().line_count() * 3 / 4);
  for (int second = 0; second < 400; ++second) {
    clock.Advance(seconds(1));
    ASSERT_EQ(limiter.Check("ticker", 0).problem, Problem::kNone);
  }
  EXPECT_EQ(probe.OverflowedLines(), 0U);
  for (uint64_t home = 0; home + Table::kProbe < probe.table().line_count(); ++home) {
    ASSERT_EQ(probe.SearchLength(home), 1U);
  }
  // All of them expired; each must be as new, wherever its old slot is.
  for (const std::string& key : displaced) {
    ASSERT_NO_FATAL_FAILURE(check(key, 0));
    ASSERT_NO_FATAL_FAILURE(check(key, kBurst));
    ASSERT_NO_FATAL_FAILURE(check(key, 1));
  }
}

TEST_P(OverFilled, KeepsALiveKeyBeyondItsHomeWhenTimeJumps) {
  for (const int jump : {5, 20, 29, 31, 45, 59, 61, 70, 200}) {
    ManualClock clock(SomeDay());
    auto store = *MemoryStore::Create(Small(clock, GetParam()));
    Limiter limiter = *Limiter::Create(*Quota::TokenBucket(1, seconds(1), 30), store);
    const TableProbe probe(*store);
    const std::vector<std::string> keys = probe.KeysAt(100, 40);
    Bucket bucket(seconds(1), 30);
    for (int round = 0; round < 12; ++round) {
      for (const std::string& key : keys) {
        ASSERT_EQ(limiter.Check(key, 30).allowed(), bucket.Remaining(limiter.Now()) == 30)
            << key << " jump " << jump << " round " << round;
      }
      bucket.Take(limiter.Now(), 30);
      clock.Advance(seconds(jump));
      ASSERT_EQ(limiter.Check(keys[39], 0).remaining, bucket.Remaining(limiter.Now()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, OverFilled, ::testing::Values(0, 100),
                         [](const auto& param) { return param.param == 0 ? "Compact" : "Wide"; });

TEST(Sweep, LeavesNoStateOfAGenerationThatIsUsedAgain) {
  ManualClock clock(SomeDay());
  // Too large to be swept by itself in so short a time.
  auto store =
      *MemoryStore::Create({.budget_bytes = 4 << 20, .clock = &clock, .wide_percent = 100});
  Limiter limiter = *Limiter::Create(*Quota::Parse("100000/s fixed-window"), store);
  std::vector<std::string> keys;
  for (int i = 0; i < 200; ++i) {
    keys.push_back("key" + std::to_string(i));
    ASSERT_TRUE(limiter.Check(keys.back(), 99'999).allowed());
  }
  for (const char* text : {"7/s fixed-window", "9000/s fixed-window", "8/s fixed-window",
                           "10/s fixed-window", "100/s fixed-window"}) {
    clock.Advance(seconds(5));
    ASSERT_TRUE(limiter.Update(*Quota::Parse(text)).ok());
    for (const std::string& key : keys) {
      ASSERT_EQ(limiter.Check(key, 0).remaining, limiter.quota().burst()) << key << " " << text;
    }
  }
}

TEST(CountLive, CountsWhatIsNotYetFresh) {
  for (const int wide_percent : {0, 100}) {
    ManualClock clock(SomeDay());
    Limiter limiter = *Limiter::Create(*Quota::Parse("1/s burst 10"), Small(clock, wide_percent));
    for (int i = 0; i < 500; ++i) {
      limiter.Check("short" + std::to_string(i), 1);
      limiter.Check("long" + std::to_string(i), 10);
    }
    EXPECT_EQ(limiter.store()->Stats().live_slots, 1000U);
    clock.Advance(seconds(5));
    limiter.store()->Maintain();
    EXPECT_EQ(limiter.store()->Stats().live_slots, 500U);
    clock.Advance(seconds(10));
    limiter.store()->Maintain();
    EXPECT_EQ(limiter.store()->Stats().live_slots, 0U);
  }
}

}  // namespace
}  // namespace weir::store
