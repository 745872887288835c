// What happens to keys while a part of the sketch is cut. Single schedules, played with the fault
// planted, where it must do harm, and without, where it must not; nobody waits in any of them, or
// they would not end.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/quota.h"

#include "algorithm/plan.h"
#include "store/memory/sketch.h"
#include "store/memory/stress_hooks.h"

namespace weir::store {
namespace {

constexpr uint64_t kNowNs = 2'000'000'000'000;

algorithm::SketchPlan PlanOf(const char* quota) {
  const auto plan = algorithm::Compile(*Quota::Parse(quota), algorithm::SlotKind::kWide);
  return algorithm::PlanSketch(*plan, 1'000'000'000);
}

// A sketch of one group, and keys all over it, each in a word of its own.
struct Bench {
  Bench() : sketch(Sketch::kMinBytes, base::MappedMemory::Pages::kDefault) {
    sketch.AddGroup(plan, kNowNs);
    for (uint64_t i = 0; i < sketch.word_count(); i += 7) {
      keys.push_back(i);  // the low bits choose the word
    }
  }

  [[nodiscard]] int64_t Debt(uint64_t key) const { return sketch.Look(plan, key, now) - now; }

  // Adds a unit, however much is owed.
  void Charge(uint64_t key) {
    sketch.Charge(plan, key, now, [&](int64_t estimate) {
      return std::max(estimate, now) + static_cast<int64_t>(plan.emission);
    });
  }

  void Cut() { sketch.AddGroup(PlanOf("1/day"), kNowNs); }

  // Keys that owe fewer than `units`, or more than twice as many.
  [[nodiscard]] int Wrong(int64_t units) const {
    const auto emission = static_cast<int64_t>(plan.emission);
    int wrong = 0;
    for (const uint64_t key : keys) {
      const int64_t debt = Debt(key);
      wrong += debt < units * emission || debt > 2 * units * emission ? 1 : 0;
    }
    return wrong;
  }

  algorithm::SketchPlan plan = PlanOf("1/s burst 20");
  int64_t now = plan.TickOf(kNowNs);
  Sketch sketch;
  std::vector<uint64_t> keys;
};

// Every key is looked at and charged in the midst of a cut. Returns how many were seen wrongly.
int WrongInTheMidst(TestPoint point) {
  Bench bench;
  for (const uint64_t key : bench.keys) {
    bench.Charge(key);
  }
  int wrong = 0;
  InterruptAt(point, [&] {
    wrong += bench.Wrong(1);
    for (const uint64_t key : bench.keys) {
      bench.Charge(key);
    }
    wrong += bench.Wrong(2);
  });
  bench.Cut();
  EXPECT_TRUE(Interrupted());
  return wrong + bench.Wrong(2);
}

TEST(SketchCut, IsMetByReadingBothHalves) {
  for (const TestPoint point : {TestPoint::kSketchCut, TestPoint::kSketchFolded}) {
    EXPECT_EQ(WrongInTheMidst(point), 0);
  }
  const Planted fault(Mutant::kHalfOfACut);
  EXPECT_GT(WrongInTheMidst(TestPoint::kSketchCut), 0);
}

// A part is cut, all of it, between two steps of a charge. Returns how many charges were lost.
int LostOver(TestPoint point) {
  int lost = 0;
  for (const uint64_t key : Bench().keys) {
    Bench bench;
    InterruptAt(point, [&] { bench.Cut(); });
    bench.Charge(key);
    EXPECT_TRUE(Interrupted());
    lost += bench.Debt(key) < static_cast<int64_t>(bench.plan.emission) ? 1 : 0;
  }
  return lost;
}

// A thread has decided before the cut, and swaps its word when that has been folded already.
int LostByLateCharges() {
  int lost = 0;
  for (const uint64_t key : Bench().keys) {
    Bench bench;
    std::atomic<bool> decided{false};
    std::atomic<bool> folded{false};
    std::thread late([&] {
      InterruptAt(TestPoint::kSketchDecided, [&] {
        decided = true;
        while (!folded) {
          std::this_thread::yield();
        }
      });
      bench.Charge(key);
    });
    while (!decided) {
      std::this_thread::yield();
    }
    InterruptAt(TestPoint::kSketchFolded, [&] {
      folded = true;
      late.join();
    });
    bench.Cut();
    lost += bench.Debt(key) < static_cast<int64_t>(bench.plan.emission) ? 1 : 0;
  }
  return lost;
}

TEST(SketchCut, InTheMidstOfAChargeLosesNothing) {
  EXPECT_EQ(LostOver(TestPoint::kSketchDecided), 0);
  EXPECT_EQ(LostOver(TestPoint::kSketchCharged), 0);
  EXPECT_EQ(LostByLateCharges(), 0);
  const Planted fault(Mutant::kChargedInACut);
  EXPECT_GT(LostByLateCharges(), 0);
}

// A charge begins while the part is being cut, and ends when it is cut again.
TEST(SketchCut, TwiceInTheMidstOfAChargeLosesNothing) {
  for (const uint64_t key : Bench().keys) {
    Bench bench;
    InterruptAt(TestPoint::kSketchCut, [&] {
      bench.Charge(key);
      ASSERT_EQ(bench.Debt(key), static_cast<int64_t>(bench.plan.emission));
    });
    bench.Cut();
    InterruptAt(TestPoint::kSketchDecided,
                [&] { bench.sketch.AddGroup(PlanOf("1000000/s"), kNowNs); });
    bench.Charge(key);
    EXPECT_GE(bench.Debt(key), 2 * static_cast<int64_t>(bench.plan.emission));
  }
}

}  // namespace
}  // namespace weir::store
