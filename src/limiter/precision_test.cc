// Precision::kSketch: keys begin in the sketch and get a slot when they come near their limit.
#include <rapidcheck.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "weir/limiter.h"

#include "testing/oracle.h"
#include "testing/random.h"
#include "testing/twin.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Random;

constexpr LimiterOptions kSketchFirst{.precision = Precision::kSketch};

Limiter Sketched(const Quota& quota, const Clock& clock, size_t budget_bytes = size_t{1} << 20) {
  return *Limiter::Create(
      quota, {.budget_bytes = budget_bytes, .clock = &clock, .wide_percent = 50}, kSketchFirst);
}

TEST(Precision, ALongTailTakesNoSlot) {
  ManualClock clock(testing::Noon());
  Limiter limiter = Sketched(*Quota::Parse("100/min"), clock);
  uint64_t allowed = 0;
  for (int i = 0; i < 60'000; ++i) {
    const Decision decision = limiter.Check("tail " + std::to_string(i % 20'000));
    EXPECT_EQ(decision.basis, Basis::kSketch);
    allowed += static_cast<uint64_t>(decision.allowed());
    clock.Advance(milliseconds(1));
  }
  EXPECT_EQ(allowed, 60'000U);
  const StoreStats stats = limiter.store()->Stats();
  EXPECT_EQ(stats.live_slots, 0U);
  EXPECT_EQ(stats.promotions, 0U);
  EXPECT_EQ(stats.overflow, 0U);
  EXPECT_EQ(stats.decisions, 60'000U);
}

TEST(Precision, AKeyThatComesNearItsLimitIsDecidedExactlyFromThenOn) {
  for (const char* text : {"100/h burst 40", "100/min", "100/min fixed-window", "gap 1h",
                           "100/day calendar", "100/min fixed-window from per-key"}) {
    ManualClock clock(testing::Noon());
    Limiter limiter = Sketched(*Quota::Parse(text), clock);
    EXPECT_EQ(limiter.Check("hot").basis, Basis::kSketch) << text;
    uint64_t allowed = 1;
    Decision decision;
    do {
      decision = limiter.Check("hot");
      allowed += static_cast<uint64_t>(decision.allowed());
    } while (decision.allowed());
    EXPECT_EQ(decision.basis, Basis::kStore) << text;
    EXPECT_LE(allowed, limiter.quota().burst()) << text;
    EXPECT_EQ(limiter.store()->Stats().promotions, 1U) << text;
    EXPECT_EQ(limiter.Check("cold").basis, Basis::kSketch) << text;
  }
  // A bucket's law is the same there and here, so a burst on a fresh key loses at most the rounding
  // of a unit.
  ManualClock clock(testing::Noon());
  Limiter limiter = Sketched(*Quota::Parse("100/h burst 40"), clock);
  uint64_t allowed = 0;
  while (limiter.Check("hot").allowed()) {
    ++allowed;
  }
  EXPECT_GE(allowed, 39U);
}

TEST(Precision, AKeyGetsASlotPastHalfOfWhatFitsInTheSketch) {
  const auto in_sketch = [](const Quota& quota) {
    ManualClock clock(testing::Noon());
    Limiter limiter = Sketched(quota, clock);
    int count = 0;
    while (limiter.Check("key").basis == Basis::kSketch) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(in_sketch(*Quota::Parse("1/h burst 40")), 20);
  EXPECT_EQ(in_sketch(*Quota::Parse("1/h burst 1")), 1) << "the first always";
  EXPECT_EQ(in_sketch(*Quota::Parse("gap 1h")), 1);
  EXPECT_EQ(in_sketch(*Quota::Parse("80/h fixed-window")), 10) << "a quarter fits there at once";
}

// What a fresh key asks for at once it gets, whatever the sketch can hold of it: a slot decides.
// Shortly after creation, and after pauses of all lengths, in which the sketch is swept.
TEST(Precision, AFreshKeyGetsAllThatItsQuotaAllowsAtOnce) {
  for (const char* text :
       {"100/h burst 40", "1000/min burst 1000", "7/day burst 700", "gap 1h", "100/min", "1000/s",
        "3/h", "100000/h", "100/min fixed-window", "5/h fixed-window",
        "100/min fixed-window from per-key", "100/day calendar", "2000/month calendar"}) {
    const Quota quota = *Quota::Parse(text);
    const Duration window = std::max<Duration>(quota.window(), seconds(1));
    const Duration pauses[] = {window / 7, window, seconds(2),
                               std::min<Duration>(3000 * window, hours(24 * 3650))};
    for (const uint64_t part : {1, 2, 3, 100}) {
      ManualClock clock(testing::Noon());
      // Large, so that no two keys share their lanes.
      Limiter limiter = Sketched(quota, clock, size_t{4} << 20);
      const uint64_t cost = std::max<uint64_t>(quota.burst() / part, 1);
      for (size_t i = 0; i < 40; ++i) {
        const Decision decision = limiter.Check("fresh " + std::to_string(i), cost);
        ASSERT_TRUE(decision.allowed())
            << text << ", cost " << cost << ", key " << i << ", remaining " << decision.remaining;
        clock.Advance(pauses[i % std::size(pauses)]);
        ASSERT_EQ(limiter.Check("another", 0).remaining, quota.burst()) << text << ", key " << i;
      }
    }
  }
}

// A key keeps its own lanes though others are charged in the same words, as far as it has any.
TEST(Precision, AFreshKeyIsNotTakenForThoseBesideIt) {
  ManualClock clock(testing::Noon());
  Limiter limiter = Sketched(*Quota::Parse("100/min"), clock, size_t{4} << 20);
  constexpr int kKeys = 8000;  // in 16,384 words of four lanes
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_EQ(limiter.Check("tail " + std::to_string(i)).basis, Basis::kSketch);
  }
  clock.Advance(milliseconds(100));
  int admitted = 0;
  for (int i = 0; i < 1000; ++i) {
    admitted += static_cast<int>(limiter.Check("fresh " + std::to_string(i), 100).allowed());
  }
  EXPECT_GT(admitted, 900);
}

// A random history; false at the first charge that the quota itself would have refused.
bool FitsTheQuota(uint64_t seed) {
  Random random(seed);
  const auto draw = [&] {
    switch (random.Below(5)) {
      case 0:
        return testing::RandomBucket(random);
      case 1:
        return testing::RandomOddBucket(random);
      case 2:
        return testing::RandomGap(random);
      case 3:
        return testing::RandomCalendar(random);
      default:
        return testing::RandomWindow(random);
    }
  };
  Quota quota = draw();
  while (quota.start() != WindowStart::kEpoch) {
    quota = draw();
  }
  ManualClock clock(testing::Noon());
  Limiter limiter = Sketched(quota, clock, 64 << 10);
  const std::string keys[] = {"one", "two", "three"};
  std::unique_ptr<testing::Oracle> oracles[3];
  for (auto& oracle : oracles) {
    oracle = testing::MakeOracle(quota);
  }
  const Duration tick = testing::TickOf(quota);
  const auto window = static_cast<uint64_t>(std::max<int64_t>(quota.window().count(), 1'000'000));
  for (int step = 0; step < 300; ++step) {
    const uint64_t wait =
        random.OneIn(3) ? 0 : random.Scaled(1, window / (random.OneIn(9) ? 1 : 9));
    clock.Advance(Duration(static_cast<int64_t>(wait)) / tick * tick);
    const uint64_t key = random.Below(3);
    const uint64_t cost = random.Scaled(1, std::max<uint64_t>(quota.burst() / 3, 1));
    const auto mode = random.OneIn(10) ? ChargeMode::kUpTo : ChargeMode::kAdmit;
    const Decision decision = limiter.Check(keys[key], CheckOptions{.cost = cost, .mode = mode});
    const int64_t at = clock.WallNow().time_since_epoch().count();
    if (decision.charged != 0) {
      if (!oracles[key]->Fits(at, decision.charged)) {
        return false;
      }
      oracles[key]->Charge(at, decision.charged);
    }
  }
  return true;
}

RC_GTEST_PROP(Precision, NeverAdmitsWhatTheQuotaWouldRefuse, ()) {
  RC_ASSERT(FitsTheQuota(*rc::gen::arbitrary<uint64_t>()));
}

// A part of a unit was carried into the slot a tick too small.
TEST(Precision, APartOfAUnitIsCarriedInFull) {
  EXPECT_TRUE(FitsTheQuota(12560));
}

TEST(Precision, NoChargeIsLostWhileThreadsPromoteTheSameKeys) {
  constexpr uint32_t kBurst = 40;
  constexpr int kKeys = 4000;
  ManualClock clock(testing::Noon());
  Limiter limiter = Sketched(*Quota::TokenBucket(1, hours(1), kBurst), clock, size_t{4} << 20);
  std::vector<std::atomic<uint32_t>> allowed(kKeys);
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&] {
      ++ready;
      while (ready.load() < 2) {
      }
      // Both at the same key at about the same time, until long after it is exhausted.
      for (int key = 0; key < kKeys; ++key) {
        const std::string text = "contended key " + std::to_string(key);
        for (uint32_t i = 0; i < kBurst; ++i) {
          if (limiter.Check(text).allowed()) {
            allowed[static_cast<size_t>(key)].fetch_add(1, std::memory_order_relaxed);
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  uint64_t total = 0;
  for (const std::atomic<uint32_t>& count : allowed) {
    ASSERT_LE(count.load(), kBurst);
    total += count.load();
  }
  EXPECT_GT(total, uint64_t{kKeys} * kBurst / 2);
  EXPECT_GE(limiter.store()->Stats().promotions, uint64_t{kKeys});
}

TEST(Precision, IsKeptByUpdateAndCarriesWhatIsOwed) {
  ManualClock clock(testing::Noon());
  Limiter limiter = Sketched(*Quota::Parse("10/h burst 40"), clock);
  for (int i = 0; i < 15; ++i) {
    ASSERT_EQ(limiter.Check("key").basis, Basis::kSketch);
  }
  ASSERT_TRUE(limiter.Update(*Quota::Parse("20/h burst 60")).ok());
  EXPECT_EQ(limiter.Check("key").remaining, 60U - 16U);
  ASSERT_TRUE(limiter.Update(*Quota::Parse("1000/h fixed-window")).ok());
  EXPECT_EQ(limiter.Check("another key").basis, Basis::kSketch);
  EXPECT_EQ(limiter.store()->Stats().promotions, 0U);
  EXPECT_FALSE(limiter.Update(*Quota::Parse("1000/h fixed-window from first-hit")).ok());
}

TEST(Precision, WhoWantsAReceiptGetsASlot) {
  ManualClock clock(testing::Noon());
  Limiter limiter = Sketched(*Quota::Parse("10/h burst 40"), clock);
  ASSERT_EQ(limiter.Check("key", 5).basis, Basis::kSketch);
  Receipt receipt;
  const Decision decision = limiter.Check("key", CheckOptions{.cost = 3, .receipt = &receipt});
  EXPECT_EQ(decision.basis, Basis::kStore);
  EXPECT_LE(decision.remaining, 40U - 8U);
  EXPECT_EQ(limiter.GiveBack(receipt), 3U);
  Charge charges[] = {{&limiter, "other"}};
  Decision parts[1];
  EXPECT_TRUE(CheckAll(charges, parts).allowed());
  EXPECT_EQ(parts[0].basis, Basis::kStore);
}

TEST(Precision, BatchesAndSingleChecksAgree) {
  ManualClock clock(testing::Noon());
  // Large, so that no two keys share their lanes.
  Limiter one = Sketched(*Quota::Parse("100/min"), clock, size_t{64} << 20);
  Limiter many = Sketched(*Quota::Parse("100/min"), clock, size_t{64} << 20);
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> keys;
    for (int i = 0; i < 40; ++i) {
      keys.push_back("key number " + std::to_string(random.Scaled(1, 10)));
    }
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    std::vector<Decision> decisions(keys.size());
    many.CheckMany(views, decisions);
    for (size_t i = 0; i < keys.size(); ++i) {
      const Decision decision = one.Check(keys[i]);
      ASSERT_EQ(decision.basis == Basis::kStore, decisions[i].basis == Basis::kStore) << round;
      ASSERT_EQ(decision.allowed(), decisions[i].allowed()) << round;
    }
    clock.Advance(milliseconds(700));
  }
}

TEST(Precision, IsRefusedWhereItCannotBe) {
  const auto message = [](const char* quota, MemoryOptions options) {
    const auto limiter = Limiter::Create(*Quota::Parse(quota), options, kSketchFirst);
    return limiter.ok() ? std::string() : limiter.error().message;
  };
  EXPECT_NE(message("10/min sliding-log", {}).find("precision: 10/min sliding-log cannot"),
            std::string::npos);
  EXPECT_NE(message("10/min fixed-window from first-hit", {}).find("precision: "),
            std::string::npos);
  EXPECT_NE(message("10/min", {.overflow = OverflowPolicy::kDeny, .sketch_percent = 0})
                .find("precision: the store has no sketch"),
            std::string::npos);
  EXPECT_EQ(message("10/min", {.overflow = OverflowPolicy::kDeny}), "");
}

}  // namespace
}  // namespace weir
