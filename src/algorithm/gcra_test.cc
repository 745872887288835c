#include "algorithm/gcra.h"

#include <chrono>

#include <gtest/gtest.h>

namespace weir::algorithm {
namespace {

using Bucket = Gcra<CompactTicks>;
using WideBucket = Gcra<WideTicks>;
using std::chrono::seconds;

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr Moment kStart{.ns = 5'000 * kSecondNs};

Plan PlanOf(std::string_view text, SlotKind slot = SlotKind::kCompact) {
  return *Compile(*Quota::Parse(text), slot);
}

TEST(Gcra, TakesUpToTheBurstAndThenOneAnInterval) {
  const Plan plan = PlanOf("10/s burst 3");
  const auto now = Bucket::At(plan, kStart);
  Bucket::State state{0};
  EXPECT_EQ(Bucket::Available(plan, state, now), 3U);
  EXPECT_TRUE(Bucket::Take(plan, state, 2));
  EXPECT_EQ(Bucket::Available(plan, state, now), 1U);
  EXPECT_FALSE(Bucket::Take(plan, state, 2));
  EXPECT_EQ(Bucket::RetryNs(plan, state, now, 2), kSecondNs / 10);
  EXPECT_EQ(Bucket::ResetNs(plan, state, now), kSecondNs / 5);
  EXPECT_TRUE(Bucket::Take(plan, state, 1));
  EXPECT_EQ(Bucket::Available(plan, state, now), 0U);
}

TEST(Gcra, ReadsBackWhatItSavedAcrossTheWrapOfItsClock) {
  const Plan plan = PlanOf("10/s burst 3");
  const uint64_t wrap_ns = CompactTicks::kTickNs << CompactTicks::kPayloadBits;
  for (const uint64_t before_ns : {uint64_t{0}, uint64_t{100'000'000}, uint64_t{200'000'000}}) {
    const auto now = Bucket::At(plan, {.ns = wrap_ns - before_ns});
    const uint64_t payload = Bucket::Save(plan, {150'000}, now);
    EXPECT_LT(payload, uint64_t{1} << CompactTicks::kPayloadBits);
    EXPECT_EQ(Bucket::Load(plan, payload, now).debt, 150'000U);
    const auto later = Bucket::At(plan, {.ns = wrap_ns - before_ns + kSecondNs});
    EXPECT_EQ(Bucket::Load(plan, payload, later).debt, 0U);
    EXPECT_TRUE(Bucket::Expired(plan, payload, later));
    EXPECT_FALSE(Bucket::Expired(plan, payload, now));
  }
}

TEST(Gcra, AFreshKeyStartsAtTheTablesClockIfThatIsAhead) {
  const Plan plan = PlanOf("10/s burst 3");
  const auto now = Bucket::At(plan, kStart);
  const auto ahead = Bucket::At(plan, {.ns = kStart.ns + kSecondNs});
  EXPECT_EQ(Bucket::Fresh(plan, now, ahead).debt, 1'000'000U);
  EXPECT_EQ(Bucket::Fresh(plan, ahead, now).debt, 0U);
}

TEST(Gcra, OverdraftIsRememberedUpToTwiceTheBurst) {
  const Plan plan = PlanOf("10/s burst 3");
  Bucket::State state{0};
  Bucket::Count(plan, state, 4);
  EXPECT_EQ(state.debt, 400'000U);
  Bucket::Count(plan, state, ~uint64_t{0});
  EXPECT_EQ(state.debt, 600'000U);
  Bucket::Count(plan, state, 1);
  EXPECT_EQ(state.debt, 600'000U);
}

TEST(Gcra, GivesBackWhatIsOwedAndNotWhatHasRefilled) {
  const Plan plan = PlanOf("10/s burst 3");
  const auto now = Bucket::At(plan, kStart);
  Bucket::State state{0};
  ASSERT_TRUE(Bucket::Take(plan, state, 2));
  const uint64_t mark = Bucket::Mark(plan, state, now);
  const uint64_t payload = Bucket::Save(plan, state, now);
  const auto later = Bucket::At(plan, {.ns = kStart.ns + 150'000'000});
  Bucket::State owing = Bucket::Load(plan, payload, later);
  const Refund refund = Bucket::GiveBack(plan, owing, later, mark, 2, 0);
  EXPECT_EQ(refund.moved_ns, 50'000'000U);
  EXPECT_EQ(refund.units, 0U) << "half a unit";
  EXPECT_TRUE(refund.changed);
  EXPECT_EQ(owing.debt, 0U);
}

TEST(Gcra, AnEarlierGiveBackIsTakenOffALaterOne) {
  const Plan plan = PlanOf("10/s burst 3");
  const auto now = Bucket::At(plan, kStart);
  Bucket::State state{0};
  ASSERT_TRUE(Bucket::Take(plan, state, 3));
  const uint64_t mark = Bucket::Mark(plan, state, now);
  const Refund refund = Bucket::GiveBack(plan, state, now, mark, 3, 200'000'000);
  EXPECT_EQ(refund.units, 1U);
  EXPECT_EQ(state.debt, 200'000U);
}

TEST(Gcra, ChangingTheRateKeepsTheUnitsOwed) {
  const Plan from = PlanOf("10/s burst 10");
  Plan to = PlanOf("20/s burst 10");
  to.changed_at_ns = kStart.ns;
  const uint64_t payload = Bucket::Save(from, {500'000}, Bucket::At(from, kStart));  // five units
  EXPECT_EQ(Bucket::Convert(from, to, payload, kStart).debt, 250'000U);
  const Moment later{.ns = kStart.ns + kSecondNs / 10};
  EXPECT_EQ(Bucket::Convert(from, to, payload, later).debt, 150'000U) << "drained at the new rate";
}

TEST(Gcra, AWideBucketOfAnOddRateNeverAdmitsTooMuch) {
  const Plan plan = PlanOf("7/s burst 1", SlotKind::kWide);
  WideBucket::State state{0};
  const auto now = WideBucket::At(plan, kStart);
  ASSERT_TRUE(WideBucket::Take(plan, state, 1));
  const uint64_t retry = WideBucket::RetryNs(plan, state, now, 1);
  EXPECT_GE(retry * 7, kSecondNs);
  EXPECT_LE(retry * 7, kSecondNs + 7);
}

TEST(Gcra, UsedAndSeedCarryUnitsAndTheirFractions) {
  const Plan plan = PlanOf("10/s burst 10");
  const auto now = Bucket::At(plan, kStart);
  constexpr uint64_t kUnit = uint64_t{1} << kUsedFractionBits;
  EXPECT_EQ(Bucket::Used(plan, {300'000}, now), 3 * kUnit);
  EXPECT_EQ(Bucket::Used(plan, {250'000}, now), 5 * kUnit / 2);
  EXPECT_EQ(Bucket::Seed(plan, now, Carried{.used = 3 * kUnit}).debt, 300'000U);
  EXPECT_EQ(Bucket::Seed(plan, now, Carried{.used = ~uint64_t{0}}).debt, plan.debt_max);
}

}  // namespace
}  // namespace weir::algorithm
