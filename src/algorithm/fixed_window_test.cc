#include "algorithm/fixed_window.h"

#include <gtest/gtest.h>

namespace weir::algorithm {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kMinuteNs = 60 * kSecondNs;

Plan PlanOf(std::string_view text) {
  Plan plan = *Compile(*Quota::Parse(text), SlotKind::kWide);
  plan.epoch_offset_ns = 0;
  return plan;
}

TEST(FixedWindow, CountsInWindowsOfTheEpoch) {
  const Plan plan = PlanOf("10/min fixed-window");
  const auto now = FixedWindow::At(plan, {.ns = 100 * kMinuteNs + 20 * kSecondNs});
  EXPECT_EQ(now.id, 100U);
  EXPECT_EQ(now.left_ns, 40 * kSecondNs);
  auto state = FixedWindow::Fresh(plan, now, now);
  EXPECT_TRUE(FixedWindow::Take(plan, state, 10));
  EXPECT_FALSE(FixedWindow::Take(plan, state, 1));
  EXPECT_EQ(FixedWindow::RetryNs(plan, state, now, 1), 40 * kSecondNs);
  const uint64_t payload = FixedWindow::Save(plan, state, now);
  const auto next = FixedWindow::At(plan, {.ns = 101 * kMinuteNs});
  EXPECT_EQ(FixedWindow::Available(plan, FixedWindow::Load(plan, payload, next), next), 10U);
  EXPECT_TRUE(FixedWindow::Expired(plan, payload, next));
}

TEST(FixedWindow, AStampFromTheWindowBeforeCountsInTheStoredOne) {
  const Plan plan = PlanOf("10/min fixed-window");
  const auto now = FixedWindow::At(plan, {.ns = 100 * kMinuteNs});
  auto state = FixedWindow::Fresh(plan, now, now);
  ASSERT_TRUE(FixedWindow::Take(plan, state, 10));
  const uint64_t payload = FixedWindow::Save(plan, state, now);
  const auto earlier = FixedWindow::At(plan, {.ns = 100 * kMinuteNs - 1});
  auto seen = FixedWindow::Load(plan, payload, earlier);
  EXPECT_FALSE(FixedWindow::Take(plan, seen, 1));
  EXPECT_EQ(FixedWindow::RetryNs(plan, seen, earlier, 1), kMinuteNs + 1);
}

TEST(FixedWindow, AKeysPhaseMovesItsWindowsAndNotTheirLength) {
  const Plan plan = PlanOf("10/min fixed-window from per-key");
  const auto now =
      FixedWindow::At(plan, {.ns = 100 * kMinuteNs, .phase = 7 * kMinuteNs + 15 * kSecondNs});
  EXPECT_EQ(now.left_ns, 45 * kSecondNs);
}

TEST(FixedWindow, GivesBackToTheSameWindowOnly) {
  const Plan plan = PlanOf("10/min fixed-window");
  const auto now = FixedWindow::At(plan, {.ns = 100 * kMinuteNs});
  auto state = FixedWindow::Fresh(plan, now, now);
  ASSERT_TRUE(FixedWindow::Take(plan, state, 7));
  EXPECT_EQ(FixedWindow::GiveBack(plan, state, now, now.id - 1, 7, 0).units, 0U);
  EXPECT_EQ(FixedWindow::GiveBack(plan, state, now, now.id, 3, 0).units, 3U);
  EXPECT_EQ(FixedWindow::GiveBack(plan, state, now, now.id, 9, 0).units, 4U)
      << "no more than there is";
  EXPECT_EQ(state.count, 0U);
}

TEST(FixedWindow, ANewLimitKeepsTheCountAndAnotherWindowTheShare) {
  const Plan from = PlanOf("10/min fixed-window");
  const Moment moment{.ns = 100 * kMinuteNs + kSecondNs};
  const auto now = FixedWindow::At(from, moment);
  const uint64_t payload = FixedWindow::Save(from, {now.id, 8, 0}, now);
  EXPECT_EQ(FixedWindow::Convert(from, PlanOf("100/min fixed-window"), payload, moment).count, 8U);
  Plan hourly = PlanOf("100/h fixed-window");
  hourly.changed_at_ns = moment.ns;
  EXPECT_EQ(FixedWindow::Convert(from, hourly, payload, moment).count, 80U);
}

TEST(FixedWindow, WhatWasUsedBeforeAChangeCountsInOneWindowAfterIt) {
  const Plan from = PlanOf("10/h fixed-window");
  const Moment change{.ns = 120 * kMinuteNs + 50 * kSecondNs};
  const auto now = FixedWindow::At(from, change);
  const uint64_t payload = FixedWindow::Save(from, {now.id, 8, 0}, now);
  Plan to = PlanOf("100/min fixed-window");
  to.changed_at_ns = change.ns;
  const auto count_after = [&](uint64_t ns) {
    return FixedWindow::Convert(from, to, payload, {.ns = change.ns + ns}).count;
  };
  EXPECT_EQ(count_after(10 * kSecondNs - 1), 80U);
  EXPECT_EQ(count_after(10 * kSecondNs), 0U) << "the hour is open, the minute is over";
}

TEST(FirstHitWindow, OpensAtTheFirstHitAndEndsAWindowLater) {
  const Plan plan = PlanOf("10/min fixed-window from first-hit");
  const Moment start{.ns = 100 * kMinuteNs + 17 * kSecondNs};
  const auto now = FirstHitWindow::At(plan, start);
  auto state = FirstHitWindow::Fresh(plan, now, now);
  ASSERT_TRUE(FirstHitWindow::Take(plan, state, 10));
  const uint64_t payload = FirstHitWindow::Save(plan, state, now);
  const auto later = FirstHitWindow::At(plan, {.ns = start.ns + kMinuteNs - 1});
  auto full = FirstHitWindow::Load(plan, payload, later);
  EXPECT_FALSE(FirstHitWindow::Take(plan, full, 1));
  EXPECT_EQ(FirstHitWindow::RetryNs(plan, full, later, 1), 1U);
  const auto next = FirstHitWindow::At(plan, {.ns = start.ns + kMinuteNs});
  EXPECT_EQ(FirstHitWindow::Available(plan, FirstHitWindow::Load(plan, payload, next), next), 10U);
  EXPECT_TRUE(FirstHitWindow::Expired(plan, payload, next));
}

TEST(FirstHitWindow, AnotherLimitKeepsTheWindowOpen) {
  const Plan from = PlanOf("10/min fixed-window from first-hit");
  const Plan to = PlanOf("5000000/min fixed-window from first-hit");
  const Moment start{.ns = 100 * kMinuteNs};
  const auto opened = FirstHitWindow::At(from, start);
  const uint64_t payload = FirstHitWindow::Save(from, {opened.tick, 8, 0}, opened);
  const Moment later{.ns = start.ns + 20 * kSecondNs};
  const auto state = FirstHitWindow::Convert(from, to, payload, later);
  EXPECT_EQ(state.count, 8U);
  EXPECT_NEAR(static_cast<double>(WideTicks::ToNs(to, state.left)), 40e9, 100.0);
}

}  // namespace
}  // namespace weir::algorithm
