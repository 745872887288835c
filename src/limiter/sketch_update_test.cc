// A quota that changes its kind while the table is full: each of its keys needs a second slot and
// finds none. What it had in its first one counts in the sketch all the same.
#include <rapidcheck.h>

#include <algorithm>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "weir/limiter.h"

#include "limiter/limiter_state.h"
#include "testing/random.h"
#include "testing/twin.h"

namespace weir {
namespace {

using testing::Random;

std::shared_ptr<MemoryStore> MakeStore(const Clock& clock, size_t bytes) {
  return *MemoryStore::Create({.budget_bytes = bytes,
                               .fleet_secret = 7,
                               .clock = &clock,
                               .wide_percent = 50,
                               .record_percent = 20});
}

// Leaves hardly a slot and no record for anybody else, for hours.
void Fill(const std::shared_ptr<MemoryStore>& store) {
  for (const char* text : {"1/h burst 9", "7/day burst 700", "90/day sliding-log"}) {
    Limiter filler = *Limiter::Create(*Quota::Parse(text), store);
    const uint32_t most = filler.quota().burst();
    int without = 0;
    for (int i = 0; without < 100; ++i) {
      const Decision decision = filler.Check("filler " + std::to_string(i), most);
      without = decision.allowed() && decision.basis == Basis::kStore ? 0 : without + 1;
    }
  }
}

// Each of these has spent all it had, and after the change it has not become more.
TEST(SketchUpdate, AFullTableGivesNobodyAFreshBucketWhenTheKindChanges) {
  struct Case {
    const char* from;
    const char* to;
  };
  for (const Case& c :
       {Case{"100/min burst 100", "100/min fixed-window"}, Case{"100/min fixed-window", "100/min"},
        Case{"100/min", "100/min burst 100"}, Case{"100/min sliding-log", "100/min"},
        Case{"100/min", "100/min sliding-log"}, Case{"100/min burst 20", "70/min burst 20"},
        Case{"100/min fixed-window from per-key", "100/min fixed-window"},
        Case{"gap 30s", "2/min burst 1"}}) {
    for (const Precision precision : {Precision::kExact, Precision::kSketch}) {
      SCOPED_TRACE(std::string(c.from) + " -> " + c.to);
      ManualClock clock(testing::Noon());
      const auto store = MakeStore(clock, 128 << 10);
      const Quota from = *Quota::Parse(c.from);
      const Quota to = *Quota::Parse(c.to);
      const bool to_record = to.algorithm() == Algorithm::kSlidingLog;
      if (precision == Precision::kSketch &&
          (to_record || from.algorithm() == Algorithm::kSlidingLog)) {
        continue;  // not offered
      }
      Limiter limiter = *Limiter::Create(from, store, {.precision = precision});
      constexpr int kKeys = 40;
      for (int i = 0; i < kKeys; ++i) {
        while (limiter.Check("key " + std::to_string(i)).allowed()) {
        }
      }
      Fill(store);
      ASSERT_TRUE(limiter.Update(to).ok());
      int in_sketch = 0;
      for (int i = 0; i < kKeys; ++i) {
        const Decision decision = limiter.Check("key " + std::to_string(i));
        EXPECT_FALSE(decision.allowed()) << i;
        in_sketch += static_cast<int>(decision.basis == Basis::kSketch);
      }
      // A log that is full as it begins denies before it needs room.
      EXPECT_TRUE(to_record || in_sketch > kKeys / 2) << in_sketch;
    }
  }
}

Quota RandomQuota(Random& random) {
  switch (random.Below(6)) {
    case 0:
      return testing::RandomBucket(random);
    case 1:
      return testing::RandomOddBucket(random);
    case 2:
    case 3:
      return testing::RandomWindow(random);
    case 4:
      return testing::RandomGap(random);
    default:
      return testing::RandomRecord(random);
  }
}

// Where the key was never asked between two changes, only the quota before both knows it.
TEST(SketchUpdate, CarriesWhatIsOwedOverSeveralChanges) {
  for (const bool full : {false, true}) {
    SCOPED_TRACE(full);
    ManualClock clock(testing::Noon());
    const auto store = MakeStore(clock, 128 << 10);
    Limiter limiter = *Limiter::Create(*Quota::Parse("1/h burst 10"), store);
    if (full) {
      Fill(store);
    }
    while (limiter.Check("key").allowed()) {
    }
    if (!full) {
      Fill(store);
    }
    struct Change {
      const char* to;
      uint32_t more;  // what it has above the quota before it
    };
    for (const auto& [to, more] :
         {Change{"2/h burst 10", 0}, Change{"2/h burst 9", 0}, Change{"70/h burst 8", 0},
          Change{"10/h fixed-window", 0}, Change{"12/h fixed-window", 2}, Change{"10/h", 0}}) {
      ASSERT_TRUE(limiter.Update(*Quota::Parse(to)).ok()) << to;
      EXPECT_LE(limiter.TakeUpTo("key", 8).charged, more) << to;
    }
  }
}

// A store that is full and one with room, given the same charges: what the first admits, the
// second would have admitted too.
RC_GTEST_PROP(SketchUpdateProperty, AFullTableAdmitsNothingThatOneWithRoomWouldRefuse, ()) {
  Random random(*rc::gen::arbitrary<uint64_t>());
  ManualClock clock(testing::Noon());
  const Quota first = RandomQuota(random);
  const auto full = MakeStore(clock, 64 << 10);
  Limiter tight = *Limiter::Create(first, full);
  Limiter roomy = *Limiter::Create(first, MakeStore(clock, 1 << 20));
  Quota quota = first;
  uint64_t longest = static_cast<uint64_t>(first.window().count());
  for (int step = 0; step < 120; ++step) {
    if (!random.OneIn(3)) {
      const uint64_t wait = random.Scaled(1, random.OneIn(8) ? longest : longest / 16 + 1);
      clock.Advance(Duration(static_cast<int64_t>(wait / 1000 * 1000)));
    }
    if (step == 40) {
      Fill(full);
      const Quota next = RandomQuota(random);
      RC_PRE(tight.Update(next).ok() && roomy.Update(next).ok());
      quota = next;
      longest = std::max(longest, static_cast<uint64_t>(next.window().count()));
    }
    const uint64_t cost = random.Scaled(1, std::max<uint64_t>(quota.burst() / 3, 1));
    if (tight.Check("key", cost).allowed()) {
      const Decision decision = roomy.Check("key", cost);
      if (!decision.allowed()) {
        RC_FAIL(first.ToString() + " ... " + quota.ToString() + " at step " + std::to_string(step) +
                ", cost " + std::to_string(cost) + ", retry after " +
                std::to_string(decision.retry_after.count()));
      }
    }
  }
}

}  // namespace
}  // namespace weir
