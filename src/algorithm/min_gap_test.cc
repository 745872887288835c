#include "algorithm/min_gap.h"

#include <gtest/gtest.h>

namespace weir::algorithm {
namespace {

using Gap = MinGap<CompactTicks>;

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr Moment kStart{.ns = 5'000 * kSecondNs};

Plan PlanOf(std::string_view text) {
  return *Compile(*Quota::Parse(text), SlotKind::kCompact);
}

TEST(MinGap, TakesOneAndThenNoneUntilTheGapHasPassed) {
  const Plan plan = PlanOf("gap 2s");
  const auto now = Gap::At(plan, kStart);
  Gap::State state{0};
  EXPECT_EQ(Gap::Available(plan, state, now), 1U);
  EXPECT_TRUE(Gap::Take(plan, state, 1000));
  EXPECT_EQ(Gap::Available(plan, state, now), 0U);
  EXPECT_FALSE(Gap::Take(plan, state, 1));
  EXPECT_EQ(Gap::RetryNs(plan, state, now, 1), 2 * kSecondNs);
  const uint64_t payload = Gap::Save(plan, state, now);
  const auto before = Gap::At(plan, {.ns = kStart.ns + 2 * kSecondNs - 1000});
  const auto after = Gap::At(plan, {.ns = kStart.ns + 2 * kSecondNs});
  EXPECT_EQ(Gap::Available(plan, Gap::Load(plan, payload, before), before), 0U);
  EXPECT_EQ(Gap::Available(plan, Gap::Load(plan, payload, after), after), 1U);
}

TEST(MinGap, ACountedRequestMovesTheLastOne) {
  const Plan plan = PlanOf("gap 2s");
  Gap::State state{500'000};
  Gap::Count(plan, state, 1);
  EXPECT_EQ(state.debt, 2'000'000U);
}

TEST(MinGap, GivesBackOnlyTheLastRequest) {
  const Plan plan = PlanOf("gap 2s");
  const auto now = Gap::At(plan, kStart);
  Gap::State state{0};
  ASSERT_TRUE(Gap::Take(plan, state, 1));
  const uint64_t mark = Gap::Mark(plan, state, now);
  const auto next = Gap::At(plan, {.ns = kStart.ns + 2 * kSecondNs});
  Gap::State later{0};
  ASSERT_TRUE(Gap::Take(plan, later, 1));
  EXPECT_FALSE(Gap::GiveBack(plan, later, next, mark, 1, 0).changed);
  EXPECT_TRUE(Gap::GiveBack(plan, state, now, mark, 1, 0).changed);
  EXPECT_EQ(state.debt, 0U);
}

TEST(MinGap, AnotherGapCountsFromTheSameRequest) {
  const Plan two = PlanOf("gap 2s");
  const Plan five = PlanOf("gap 5s");
  const Plan half = PlanOf("gap 500ms");
  const uint64_t payload = Gap::Save(two, {two.emission}, Gap::At(two, kStart));
  const Moment later{.ns = kStart.ns + kSecondNs};
  EXPECT_EQ(Gap::Convert(two, five, payload, later).debt, 4'000'000U);
  EXPECT_EQ(Gap::Convert(two, half, payload, later).debt, 0U);
}

}  // namespace
}  // namespace weir::algorithm
