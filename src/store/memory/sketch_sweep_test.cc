// The sketch by itself, without a table's clock: what a sweep may forget, to the tick, and that a
// part that is cut loses nothing.
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/quota.h"

#include "algorithm/plan.h"
#include "algorithm/sketch_plan.h"
#include "store/memory/sketch.h"
#include "testing/random.h"

namespace weir::store {
namespace {

using algorithm::SketchPlan;
using std::chrono::hours;
using std::chrono::seconds;

constexpr uint64_t kSkewNs = 1'000'000'000;
constexpr uint64_t kStartNs = 2'000'000'000'000;

SketchPlan PlanOf(const Quota& quota) {
  const auto plan = algorithm::Compile(quota, algorithm::SlotKind::kWide);
  return algorithm::PlanSketch(*plan, kSkewNs);
}

// How long the clock of the plan's words runs before it repeats.
uint64_t WrapNs(const SketchPlan& plan) {
  const bool is_short = plan.lane_bits == algorithm::ShortLanes::kBits;
  return uint64_t{1} << ((is_short ? algorithm::ShortLanes::kWrapBits
                                   : algorithm::LongLanes::kWrapBits) +
                         plan.shift);
}

std::vector<SketchPlan> Plans() {
  return {PlanOf(*Quota::TokenBucket(1000, seconds(1), 10)),
          PlanOf(*Quota::TokenBucket(1, seconds(1), 2000)),
          PlanOf(*Quota::SlidingWindow(100, hours(1)))};
}

int64_t PastOf(const SketchPlan& plan) {
  return plan.lane_bits == algorithm::ShortLanes::kBits ? algorithm::ShortLanes::kPast
                                                        : algorithm::LongLanes::kPast;
}

// A charge counts until it has left two windows.
TEST(SketchSweep, ForgetsWhatDrainedLongBeforeTheFloorAndNothingElse) {
  for (const SketchPlan& plan : Plans()) {
    for (const int64_t beyond : {-100, -1, 0, 1, 30, 100}) {
      Sketch sketch(Sketch::kMinBytes, base::MappedMemory::Pages::kDefault);
      sketch.AddGroup(plan, kStartNs);
      // A whole wrap later a sweep looks at every word.
      const uint64_t now_ns = kStartNs + WrapNs(plan);
      const int64_t floor = plan.TickOf(now_ns - kSkewNs) - PastOf(plan);
      const uint64_t charged_ns = now_ns - 1 - (static_cast<uint64_t>(PastOf(plan)) << plan.shift);
      sketch.Sweep(charged_ns, charged_ns - kSkewNs);
      const uint64_t hash = Sketch::HashOf(77, 0);
      const int64_t until = floor + beyond;
      sketch.Charge(plan, hash, floor - 200, [&](int64_t) { return until; });
      sketch.Sweep(now_ns + WrapNs(plan) / 4, now_ns - kSkewNs);
      const int64_t seen = sketch.Look(plan, hash, floor);
      EXPECT_EQ(seen, beyond >= 0 ? until : algorithm::ShortLanes::kNever) << beyond;
    }
  }
}

TEST(SketchSweep, KeepsWhatAnyQuotaMayAskFor) {
  testing::Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto limit = static_cast<uint32_t>(random.Scaled(1, ~uint32_t{0}));
    const Duration window(
        static_cast<int64_t>(random.Scaled(1'000'000, uint64_t{3600} * 24 * 366 * 1'000'000'000)));
    for (const auto& quota :
         {Quota::SlidingWindow(limit, window), Quota::FixedWindow(limit, window),
          Quota::TokenBucket(limit, window, limit)}) {
      if (!quota.ok() || !algorithm::Compile(*quota, algorithm::SlotKind::kWide).ok()) {
        continue;
      }
      const SketchPlan plan = PlanOf(*quota);
      const uint64_t longest_ns = plan.keep_ns + plan.span_ns;
      EXPECT_LE(longest_ns >> plan.shift, static_cast<uint64_t>(PastOf(plan))) << quota->ToString();
    }
  }
}

TEST(SketchCut, KeepsEveryKeysDebtAndGivesTheNewGroupFreshWords) {
  std::vector<SketchPlan> plans = Plans();
  Sketch sketch(Sketch::kMinBytes, base::MappedMemory::Pages::kDefault);
  sketch.AddGroup(plans[0], kStartNs);
  testing::Random random(3);
  std::vector<std::pair<uint64_t, int64_t>> owed;
  const int64_t now = plans[0].TickOf(kStartNs);
  for (int i = 0; i < 300; ++i) {
    const uint64_t hash = Sketch::HashOf(random.Next(), 0);
    const int64_t until = now + static_cast<int64_t>(random.Below(plans[0].tolerance) + 1);
    sketch.Charge(plans[0], hash, now, [&](int64_t) { return until; });
    owed.emplace_back(hash, until);
  }
  for (size_t i = 1; i < plans.size(); ++i) {
    sketch.AddGroup(plans[i], kStartNs);
    for (const auto& [hash, until] : owed) {
      EXPECT_GE(sketch.Look(plans[0], hash, now), until);
      EXPECT_LE(sketch.Look(plans[i], hash, plans[i].TickOf(kStartNs)), plans[i].TickOf(kStartNs));
    }
  }
}

}  // namespace
}  // namespace weir::store
