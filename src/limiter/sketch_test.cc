// The sketch: what it admits stays within every quota's own law, it forgets nothing, it is not much
// stricter than it must be, and it hands keys over to the table without a gift.
#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "weir/limiter.h"

#include "limiter/limiter_state.h"
#include "store/memory/sketch_engine.h"
#include "testing/oracle.h"
#include "testing/random.h"
#include "testing/twin.h"

namespace weir::store {
namespace {

using algorithm::SketchPlan;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Random;

Random Seeded() {
  return Random(*rc::gen::arbitrary<uint64_t>());
}

Quota RandomQuota(Random& random) {
  switch (random.Below(6)) {
    case 0:
      return testing::RandomBucket(random);
    case 1:
      return testing::RandomOddBucket(random);
    case 2:
      return testing::RandomWindow(random);
    case 3:
      return testing::RandomGap(random);
    case 4:
      return testing::RandomCalendar(random);
    default:
      return testing::RandomRecord(random);
  }
}

// A limiter whose keys can be sent to the sketch by hand.
struct Bench {
  explicit Bench(const Quota& quota,
                 MemoryOptions options = {.budget_bytes = 128 << 10, .record_percent = 20})
      : store([&] {
          options.clock = &clock;
          return *MemoryStore::Create(options);
        }()),
        limiter(*Limiter::Create(quota, store)) {}

  Decision InSketch(std::string_view key, uint64_t cost = 1, ChargeMode mode = ChargeMode::kAdmit,
                    Duration behind = Duration::zero()) {
    SharedState& shared = store->state();
    Decision decision;
    DecideInSketch(limiter.state().current(), {base::HashKey(key, shared.secret)},
                   shared.ReadClock() - static_cast<uint64_t>(behind.count()),
                   Request{.cost = cost, .mode = mode}, decision);
    return decision;
  }

  [[nodiscard]] const SketchPlan& plan() { return limiter.state().current().plan().sketch; }
  [[nodiscard]] int64_t Wall() const { return clock.WallNow().time_since_epoch().count(); }

  ManualClock clock{testing::Noon()};
  std::shared_ptr<MemoryStore> store;
  Limiter limiter;
};

Duration RandomWait(Random& random, const Quota& quota) {
  const auto window =
      static_cast<uint64_t>(std::max<int64_t>(quota.window().count(), int64_t{1'000'000'000}));
  return Duration(static_cast<int64_t>(
      random.OneIn(3) ? 0 : random.Scaled(1, random.OneIn(8) ? 3 * window : window / 4)));
}

RC_GTEST_PROP(SketchLaw, AdmitsNothingThatTheQuotaItselfWouldRefuse, ()) {
  Random random = Seeded();
  const Quota quota = RandomQuota(random);
  Bench at(quota);
  const std::string keys[] = {"a", "b", "c"};
  std::unique_ptr<testing::Oracle> oracles[3];
  for (auto& oracle : oracles) {
    oracle = testing::MakeOracle(quota);
  }
  uint64_t admitted = 0;
  for (int step = 0; step < 400; ++step) {
    at.clock.Advance(RandomWait(random, quota));
    const uint64_t key = random.Below(3);
    const uint64_t cost = random.Scaled(1, std::max<uint64_t>(quota.burst() / 3, 1));
    const Decision decision = at.InSketch(keys[key], cost);
    RC_ASSERT(decision.basis == Basis::kSketch);
    if (decision.allowed()) {
      ++admitted;
      RC_ASSERT(oracles[key]->Fits(at.Wall(), cost));
      oracles[key]->Charge(at.Wall(), cost);
    } else {
      RC_ASSERT(decision.retry_after > Duration::zero());
    }
  }
  RC_ASSERT(admitted != 0U);
}

// The law of one key that is alone, in plain arithmetic: admit iff max(owed, t) + c T <= t + B T in
// ticks. Both ways, and the waits that are answered are right.
RC_GTEST_PROP(SketchLaw, IsThatOfAPlainBucketForAKeyThatIsAlone, ()) {
  Random random = Seeded();
  const Quota quota = RandomQuota(random);
  Bench at(quota);
  const SketchPlan& plan = at.plan();
  const auto emission = static_cast<int64_t>(plan.emission);
  int64_t owed = 0;
  for (int step = 0; step < 200; ++step) {
    at.clock.Advance(RandomWait(random, quota));
    int64_t now = plan.TickOf(at.store->state().ReadClock());
    const uint64_t cost = random.Scaled(1, plan.burst);
    const int64_t units = quota.algorithm() == Algorithm::kMinGap ? 1 : static_cast<int64_t>(cost);
    const auto fits = [&] {
      return std::max(owed, now) + units * emission <= now + static_cast<int64_t>(plan.tolerance);
    };
    Decision decision = at.InSketch("alone", cost, ChargeMode::kDryRun);
    RC_ASSERT(decision.allowed() == fits());
    if (!fits()) {
      at.clock.Advance(decision.retry_after - Duration(1));
      RC_ASSERT(!at.InSketch("alone", cost, ChargeMode::kDryRun).allowed());
      at.clock.Advance(Duration(1));
      now = plan.TickOf(at.store->state().ReadClock());
      RC_ASSERT(fits());
    }
    decision = at.InSketch("alone", cost);
    RC_ASSERT(decision.allowed());
    owed = std::max(owed, now) + units * emission;
    RC_ASSERT(static_cast<int64_t>(decision.remaining) ==
              (now + static_cast<int64_t>(plan.tolerance) - owed) / emission);
  }
}

TEST(SketchLaw, IsCloseToTheQuotaFromSmallLimitsToLargeOnes) {
  for (const uint32_t limit : {1U, 2U, 5U, 10U, 31U, 100U, 129U, 1000U, 10'000U, 100'000U}) {
    for (const Duration window :
         {Duration(seconds(1)), Duration(minutes(1)), Duration(hours(24))}) {
      Bench at(*Quota::FixedWindow(limit, window));
      const SketchPlan& plan = at.plan();
      const double ideal = static_cast<double>(window.count()) / (limit - (limit + 3) / 4 + 1);
      const double real = static_cast<double>(plan.emission << plan.shift);
      EXPECT_EQ(plan.burst, (limit + 3) / 4);
      EXPECT_GT(real, ideal);
      EXPECT_LT(real, 1.05 * ideal) << limit << " in " << window.count() << " ns";
    }
  }
}

// From the sketch into the table: first as an overflowing key, then with a slot of its own.
RC_GTEST_PROP(SketchPromotion, ASlotIsNoGift, ()) {
  Random random = Seeded();
  Quota quota = RandomQuota(random);
  while (quota.start() == WindowStart::kPerKey) {  // the oracle does not know a key's phase
    quota = RandomQuota(random);
  }
  Bench at(quota);
  const auto oracle = testing::MakeOracle(quota);
  // In whole ticks of the table, which is exact to those only.
  const auto wait = [&] {
    const Duration tick = testing::TickOf(quota);
    return RandomWait(random, quota) / tick * tick;
  };
  const auto cost = [&] { return random.Scaled(1, std::max<uint64_t>(quota.burst() / 4, 1)); };
  for (int step = 0; step < 60; ++step) {
    at.clock.Advance(wait());
    const uint64_t units = cost();
    if (at.InSketch("moves", units).allowed()) {
      RC_ASSERT(oracle->Fits(at.Wall(), units));
      oracle->Charge(at.Wall(), units);
    }
  }
  for (int step = 0; step < 100; ++step) {
    at.clock.Advance(wait());
    const uint64_t units = cost();
    if (at.limiter.Check("moves", units).allowed()) {
      RC_ASSERT(oracle->Fits(at.Wall(), units));
      oracle->Charge(at.Wall(), units);
    }
  }
}

TEST(SketchPromotion, HappensAtOnceWhereTheStateCanBeMadeAndElseWhenNothingCountsAnyMore) {
  for (const char* text :
       {"100/min burst 10", "100/min", "100/min fixed-window", "gap 2s", "100/day calendar"}) {
    Bench at(*Quota::Parse(text));
    ASSERT_TRUE(at.InSketch("key").allowed());
    EXPECT_EQ(at.limiter.Check("key").basis, Basis::kStore) << text;
  }
  for (const char* text : {"100/min fixed-window from first-hit", "100/min sliding-log",
                           "100/min sliced-window slices 6"}) {
    Bench at(*Quota::Parse(text));
    ASSERT_TRUE(at.InSketch("key").allowed());
    EXPECT_EQ(at.limiter.Check("key").basis, Basis::kSketch) << text;
    at.clock.Advance(seconds(75));
    EXPECT_EQ(at.limiter.Check("key").basis, Basis::kStore) << text;
  }
}

TEST(SketchPromotion, CostsAKeyAtHalfItsLimitNothing) {
  for (const char* text : {"100/min burst 10", "100/min", "100/min fixed-window"}) {
    Bench at(*Quota::Parse(text));
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE((i < 70 ? at.InSketch("key") : at.limiter.Check("key")).allowed()) << text << i;
      at.clock.Advance(milliseconds(1200));
    }
    EXPECT_EQ(at.limiter.Check("key").basis, Basis::kStore);
  }
}

TEST(SketchGroups, KeepTheirChargesWhenOthersNeedRoom) {
  Bench at(*Quota::Parse("1/h burst 3"));
  std::vector<std::string> keys;
  for (int i = 0; i < 50; ++i) {
    keys.push_back("key " + std::to_string(i));
    while (at.InSketch(keys.back()).allowed()) {
    }
  }
  std::vector<Limiter> others;
  for (int i = 0; i < 12; ++i) {
    others.push_back(*Limiter::Create(*Quota::TokenBucket(1, milliseconds(1 << i), 3), at.store));
    ASSERT_NE(others.back().state().current().plan().sketch.group, at.plan().group);
    for (const std::string& key : keys) {
      ASSERT_FALSE(at.InSketch(key).allowed()) << i << key;
    }
  }
  // A group of its own: what is full here is empty there.
  SharedState& shared = at.store->state();
  for (Limiter& other : others) {
    Decision decision;
    DecideInSketch(other.state().current(), {base::HashKey("key 1", shared.secret)},
                   shared.ReadClock(), Request{}, decision);
    EXPECT_TRUE(decision.allowed());
  }
  at.clock.Advance(hours(3) + seconds(30));
  int drained = 0;
  for (const std::string& key : keys) {
    drained += static_cast<int>(at.InSketch(key).allowed());
  }
  EXPECT_GE(drained, 45) << "but for keys that share all of their lanes with others, by chance";
}

TEST(SketchGroups, LoseNoChargeWhileTheyAreCut) {
  constexpr int kKeys = 64;
  constexpr uint32_t kBurst = 2000;
  Bench at(*Quota::TokenBucket(1, hours(1), kBurst),
           {.budget_bytes = 256 << 10, .sketch_percent = 50});
  Binding& binding = at.limiter.state().current();
  SharedState& shared = at.store->state();
  std::vector<uint64_t> allowed[2] = {std::vector<uint64_t>(kKeys), std::vector<uint64_t>(kKeys)};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (auto& mine : allowed) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
        Decision decision;
        const uint64_t key = i % kKeys;
        DecideInSketch(binding, {base::HashKey("key " + std::to_string(key), shared.secret)},
                       shared.ReadClock(), Request{}, decision);
        mine[key] += static_cast<uint64_t>(decision.allowed());
      }
    });
  }
  std::vector<Limiter> others;
  for (int i = 0; i < 20; ++i) {
    others.push_back(
        *Limiter::Create(*Quota::TokenBucket(1, Duration(int64_t{1'000'000} << i), 3), at.store));
  }
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (uint64_t key = 0; key < kKeys; ++key) {
    uint64_t more = 0;
    while (at.InSketch("key " + std::to_string(key)).allowed()) {
      ++more;
    }
    ASSERT_LE(allowed[0][key] + allowed[1][key] + more, kBurst) << key;
  }
}

// A word that nobody touched while its clock went round.
RC_GTEST_PROP(SketchSweep, APauseOfAnyLengthNeitherForgetsNorInventsADebt, ()) {
  Random random = Seeded();
  const Quota quota = testing::RandomBucket(random);
  Bench at(quota);
  while (at.InSketch("key", at.plan().burst).allowed()) {
  }
  const Duration reset = at.InSketch("key", 0).reset_after;
  RC_ASSERT(reset > Duration::zero());
  at.clock.Advance(reset - Duration(1));
  RC_ASSERT(at.InSketch("key", 0).reset_after > Duration::zero());
  at.clock.Advance(Duration(static_cast<int64_t>(random.Scaled(1, uint64_t{1} << 57))));
  const Decision decision = at.InSketch("key", at.plan().burst);
  RC_ASSERT(decision.allowed());
  RC_ASSERT(!at.InSketch("key").allowed());
}

TEST(SketchSweep, LongQuietLifeUnderTrafficLeavesOtherWordsClean) {
  // A quota with the finest ticks, whose words wrap within about a minute.
  Bench at(*Quota::TokenBucket(1000, milliseconds(10), 10));
  for (int i = 0; i < 500; ++i) {
    at.InSketch("key " + std::to_string(i));
  }
  for (int step = 0; step < 40'000; ++step) {
    at.clock.Advance(milliseconds(100));
    ASSERT_TRUE(at.InSketch("busy").allowed());
    if (step % 100 == 0) {
      const Decision decision = at.InSketch("key " + std::to_string(step / 100), 0);
      // Some of these share their lanes with the busy key and its one unit.
      ASSERT_LE(decision.reset_after, milliseconds(1)) << step;
    }
  }
}

TEST(SketchLaw, OfAQueueAdmitsWhatStartsAtOnce) {
  for (const uint32_t at_once : {1U, 3U, 40U}) {
    Bench at(*Quota::Queue(10, hours(1), 60, at_once));
    uint32_t allowed = 0;
    for (Decision decision = at.InSketch("key"); decision.allowed();
         decision = at.InSketch("key")) {
      ASSERT_EQ(decision.start_after(), Duration::zero());
      ++allowed;
    }
    EXPECT_EQ(allowed, at_once);
  }
}

TEST(SketchSkew, AStampFarBehindOthersFindsWhatTheyCharged) {
  // Quotas with fine ticks, on short lanes and on long ones: their clocks would wrap in a minute.
  for (const uint32_t burst : {10U, 100U}) {
    Bench at(*Quota::TokenBucket(1, minutes(10), burst),
             {.budget_bytes = 128 << 10, .max_skew = minutes(10)});
    Bench fast(*Quota::TokenBucket(1000, milliseconds(10), burst),
               {.budget_bytes = 128 << 10, .max_skew = minutes(10)});
    for (Bench* bench : {&at, &fast}) {
      while (bench->InSketch("key").allowed()) {
      }
      for (const Duration behind : {seconds(1), seconds(20), seconds(35), seconds(70), seconds(140),
                                    seconds(280), seconds(599)}) {
        EXPECT_FALSE(bench->InSketch("key", 1, ChargeMode::kAdmit, behind).allowed())
            << burst << " " << behind.count();
      }
    }
  }
}

TEST(SketchUpdate, CarriesWhatAWindowHoldsForAsLongAsItDoes) {
  Bench at(*Quota::Parse("100/min fixed-window"));
  while (at.InSketch("key").allowed()) {
  }
  const Duration drained = at.InSketch("key", 0).reset_after;
  ASSERT_TRUE(at.limiter.Update(*Quota::Parse("100/h fixed-window")).ok());
  // Drained under the old law, and yet within its window.
  at.clock.Advance(drained + seconds(5));
  ASSERT_LT(drained + seconds(5), minutes(1));
  EXPECT_FALSE(at.InSketch("key").allowed());
}

TEST(SketchUpdate, CarriesWhatIsOwed) {
  for (const char* next :
       {"2/h burst 20", "2/h burst 60 leaky-bucket", "30/h fixed-window", "1/min burst 20"}) {
    Bench at(*Quota::Parse("1/h burst 10"));
    while (at.InSketch("key").allowed()) {
    }
    ASSERT_TRUE(at.limiter.Update(*Quota::Parse(next)).ok());
    const uint32_t burst = at.plan().burst;
    uint32_t allowed = 0;
    while (at.InSketch("key").allowed()) {
      ++allowed;
    }
    EXPECT_EQ(allowed, burst - std::min(burst, 10U)) << next;
    // Another key owes nothing, unless it happens to have the same lanes.
    uint32_t remaining = 0;
    for (const char* key : {"a", "b", "c"}) {
      remaining = std::max(remaining, at.limiter.Check(key).remaining);
    }
    EXPECT_EQ(remaining + 1, at.limiter.quota().burst());
  }
}

TEST(SketchModes, CountAlwaysTakeUpToAndPeek) {
  Bench at(*Quota::Parse("1/h burst 10"));
  EXPECT_EQ(at.InSketch("key", 0).remaining, 10U);
  EXPECT_EQ(at.InSketch("key", 4).remaining, 6U);
  const Decision some = at.InSketch("key", 9, ChargeMode::kUpTo);
  EXPECT_TRUE(some.allowed());
  EXPECT_EQ(some.charged, 6U);
  EXPECT_EQ(some.remaining, 0U);
  const Decision none = at.InSketch("key", 9, ChargeMode::kUpTo);
  EXPECT_FALSE(none.allowed());
  EXPECT_EQ(none.charged, 0U);
  const Decision over = at.InSketch("key", 3, ChargeMode::kCountAlways);
  EXPECT_FALSE(over.allowed());
  EXPECT_EQ(over.charged, 3U);
  at.clock.Advance(hours(3));
  EXPECT_EQ(at.InSketch("key", 0).remaining, 0U) << "three hours pay for what went over";
  const Decision absurd = at.InSketch("other", 50, ChargeMode::kCountAlways);
  EXPECT_EQ(absurd.problem, Problem::kCostAboveBurst);
  EXPECT_FALSE(at.InSketch("other").allowed());
}

TEST(SketchOptions, AreChecked) {
  for (const int percent : {-2, 0, 51}) {
    const auto store = MemoryStore::Create({.sketch_percent = percent});
    ASSERT_FALSE(store.ok());
    EXPECT_NE(store.error().message.find("sketch_percent: "), std::string::npos);
  }
  EXPECT_TRUE(MemoryStore::Create({.overflow = OverflowPolicy::kDeny, .sketch_percent = 0}).ok());
}

}  // namespace
}  // namespace weir::store
