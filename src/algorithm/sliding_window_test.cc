#include "algorithm/sliding_window.h"

#include <gtest/gtest.h>

namespace weir::algorithm {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kMinuteNs = 60 * kSecondNs;

Plan PlanOf(std::string_view text) {
  return *Compile(*Quota::Parse(text), SlotKind::kWide);
}

SlidingWindow::Now At(const Plan& plan, uint64_t seconds) {
  return SlidingWindow::At(plan, {.ns = seconds * kSecondNs});
}

TEST(SlidingWindow, WeighsTheWindowBeforeByWhatIsLeftOfThisOne) {
  const Plan plan = PlanOf("100/min");
  const auto now = At(plan, 6015);  // a quarter in
  const uint64_t payload = SlidingWindow::Save(plan, {now.id, 80, 30, 0, 0}, now);
  auto state = SlidingWindow::Load(plan, payload, now);
  EXPECT_EQ(state.weighted, 60U);
  EXPECT_EQ(SlidingWindow::Available(plan, state, now), 10U);
  EXPECT_FALSE(SlidingWindow::Take(plan, state, 11));
  EXPECT_TRUE(SlidingWindow::Take(plan, state, 10));
}

TEST(SlidingWindow, TheCurrentWindowBecomesTheOneBefore) {
  const Plan plan = PlanOf("100/min");
  const auto then = At(plan, 6015);
  const uint64_t payload = SlidingWindow::Save(plan, {then.id, 80, 30, 0, 0}, then);
  const auto next = At(plan, 6060);
  const auto state = SlidingWindow::Load(plan, payload, next);
  EXPECT_EQ(state.previous, 30U);
  EXPECT_EQ(state.current, 0U);
  EXPECT_FALSE(SlidingWindow::Expired(plan, payload, next));
  const auto after = At(plan, 6120);
  EXPECT_EQ(SlidingWindow::Available(plan, SlidingWindow::Load(plan, payload, after), after), 100U);
  EXPECT_TRUE(SlidingWindow::Expired(plan, payload, after));
}

TEST(SlidingWindow, TheWaitMayEndInThisWindowOrTheNext) {
  const Plan plan = PlanOf("100/min");
  const auto now = At(plan, 6000);
  // 100 before: one unit is free as soon as less than 100 of them weigh in.
  auto state =
      SlidingWindow::Load(plan, SlidingWindow::Save(plan, {now.id, 100, 0, 0, 0}, now), now);
  EXPECT_EQ(SlidingWindow::RetryNs(plan, state, now, 1), 1U);
  // 50 of them, with 50 now: half a minute, and a nanosecond for the floor.
  state = SlidingWindow::Load(plan, SlidingWindow::Save(plan, {now.id, 100, 50, 0, 0}, now), now);
  EXPECT_EQ(SlidingWindow::RetryNs(plan, state, now, 1), kMinuteNs / 2 + 1);
  // This window is full by itself: the next one, once it weighs less than 100.
  state = SlidingWindow::Load(plan, SlidingWindow::Save(plan, {now.id, 0, 100, 0, 0}, now), now);
  EXPECT_EQ(SlidingWindow::RetryNs(plan, state, now, 1), kMinuteNs + 1);
}

TEST(SlidingWindow, AStampFromBeforeTheStoredWindowIsItsFirstInstant) {
  const Plan plan = PlanOf("100/min");
  const auto now = At(plan, 6000);
  const uint64_t payload = SlidingWindow::Save(plan, {now.id, 60, 40, 0, 0}, now);
  const auto earlier = SlidingWindow::At(plan, {.ns = 6000 * kSecondNs - 1});
  auto state = SlidingWindow::Load(plan, payload, earlier);
  EXPECT_FALSE(SlidingWindow::Take(plan, state, 1));
}

TEST(SlidingWindow, GivesBackToTheCurrentWindowOnly) {
  const Plan plan = PlanOf("100/min");
  const auto now = At(plan, 6000);
  auto state =
      SlidingWindow::Load(plan, SlidingWindow::Save(plan, {now.id, 60, 40, 0, 0}, now), now);
  EXPECT_EQ(SlidingWindow::GiveBack(plan, state, now, now.id - 1, 10, 0).units, 0U);
  EXPECT_EQ(SlidingWindow::GiveBack(plan, state, now, now.id, 10, 0).units, 10U);
  EXPECT_EQ(state.current, 30U);
  EXPECT_EQ(state.previous, 60U);
}

}  // namespace
}  // namespace weir::algorithm
