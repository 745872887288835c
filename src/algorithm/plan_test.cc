#include "algorithm/plan.h"

#include <chrono>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "testing/random.h"

namespace weir::algorithm {
namespace {

using base::Uint128;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::seconds;
using testing::Random;

constexpr int64_t kMost = Quota::kMaxLimit;
constexpr Duration kCentury = Quota::kMaxHorizon;

Quota MustParse(std::string_view text) {
  return *Quota::Parse(text);
}

TEST(FitsCompact, WholeMicrosecondsAndAShortHorizon) {
  EXPECT_TRUE(FitsCompact(MustParse("100/min burst 20")));
  EXPECT_TRUE(FitsCompact(MustParse("1000000/s burst 20")));
  EXPECT_TRUE(FitsCompact(MustParse("gap 2s")));
  EXPECT_FALSE(FitsCompact(MustParse("70/min burst 20"))) << "857142.86 us";
  EXPECT_FALSE(FitsCompact(MustParse("gap 1500ns")));
  EXPECT_FALSE(FitsCompact(MustParse("1/day burst 30"))) << "a month of debt";
  EXPECT_FALSE(FitsCompact(MustParse("100/min")));
  EXPECT_FALSE(FitsCompact(MustParse("100/min fixed-window")));
  // Debt, overdraft included, up to 2^36 us.
  EXPECT_TRUE(FitsCompact(*Quota::TokenBucket(1, microseconds(1 << 20), 1 << 15)));
  EXPECT_FALSE(FitsCompact(*Quota::TokenBucket(1, microseconds(1 << 20), (1 << 15) + 1)));
}

TEST(Compile, PutsTheEmissionIntervalIntoTicks) {
  const Plan compact = *Compile(MustParse("100/min burst 20"), SlotKind::kCompact);
  EXPECT_EQ(compact.emission, 600'000U);
  EXPECT_EQ(compact.tolerance, 12'000'000U);
  EXPECT_EQ(compact.debt_max, 24'000'000U);
  EXPECT_EQ(compact.horizon_ns, 24'000'000'000U);
  const Plan wide = *Compile(MustParse("100/min burst 20"), SlotKind::kWide);
  EXPECT_EQ(wide.shift, 0);
  EXPECT_EQ(wide.emission, 600'000'000U);
}

TEST(Compile, RefusesACompactSlotForWhatDoesNotFitIt) {
  const auto plan = Compile(MustParse("7/s burst 2"), SlotKind::kCompact);
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().message.find("quota: 7/s burst 2"), std::string::npos);
}

// Every rate that was not refused is met to one part in a million, and never exceeded.
void ExpectFaithful(const Quota& quota, const Plan& plan) {
  const Uint128 window = static_cast<uint64_t>(quota.window().count());
  const auto to_ticks = [&](Uint128 ns) {
    return plan.slot == SlotKind::kCompact ? ns : plan.shift >= 0 ? ns << plan.shift : ns;
  };
  const Uint128 tick_ns = plan.slot == SlotKind::kCompact ? 1000
                          : plan.shift < 0                ? Uint128{1} << -plan.shift
                                                          : 1;
  if (plan.emission != 0) {
    // emission * L * tick against W, both in the finer of tick and nanosecond.
    const Uint128 asked = to_ticks(window);
    const Uint128 got = Uint128{plan.emission} * quota.limit() * tick_ns;
    ASSERT_GE(got, asked) << quota.ToString();
    ASSERT_LE((got - asked) * 1'000'000, asked) << quota.ToString();
    const unsigned bits =
        plan.slot == SlotKind::kCompact ? CompactTicks::kPayloadBits : WideTicks::kPayloadBits;
    ASSERT_LE(plan.debt_max, uint64_t{1} << (bits - 2)) << quota.ToString();
    ASSERT_EQ(plan.tolerance, plan.emission * quota.burst());
  }
  if (quota.start() == WindowStart::kFirstHit) {
    const Uint128 got = Uint128{plan.window_ticks} * tick_ns;
    ASSERT_GE(got, window) << quota.ToString();
    ASSERT_LE((got - window) * 1'000'000, window) << quota.ToString();
    ASSERT_LE(tick_ns * 1'000'000, std::max<Uint128>(window, 1'000'000)) << quota.ToString();
  }
  ASSERT_GT(plan.wrap_ns, plan.horizon_ns * 2) << quota.ToString();
}

// "...the nearest allowed is N...", and N is allowed.
void ExpectNearestWorks(QuotaSpec spec, const std::string& message) {
  const int64_t asked = spec.limit;
  ASSERT_EQ(message.rfind("limit: " + std::to_string(asked), 0), 0U) << message;
  const std::string phrase = "the nearest allowed is ";
  const size_t at = message.find(phrase);
  ASSERT_NE(at, std::string::npos) << message;
  const int64_t nearest = std::stoll(message.substr(at + phrase.size()));
  const auto works = [&](int64_t limit) {
    spec.limit = limit;
    return Quota::Create(spec).ok();
  };
  ASSERT_TRUE(works(nearest)) << message;
  // Nothing between it and what was asked for works, nor as near on the other side.
  const int64_t distance = std::abs(asked - nearest);
  Random random(static_cast<uint64_t>(asked));
  for (int i = 0; i < 200; ++i) {
    const int64_t away = i < 100
                             ? distance - 1 - i
                             : static_cast<int64_t>(random.Below(static_cast<uint64_t>(distance)));
    if (away < 0) {
      continue;
    }
    ASSERT_FALSE(asked - away >= 1 && works(asked - away)) << message << " " << asked - away;
    ASSERT_FALSE(asked + away <= kMost && works(asked + away)) << message << " " << asked + away;
  }
}

// A quota that exists has a plan. True if this one does.
bool ExpectPlanOrReason(const QuotaSpec& spec) {
  const auto quota = Quota::Create(spec);
  if (!quota.ok()) {
    const std::string& message = quota.error().message;
    if (message.rfind("burst: ", 0) != 0) {
      ExpectNearestWorks(spec, message);
    }
    return false;
  }
  if (FitsCompact(*quota)) {
    const auto compact = Compile(*quota, SlotKind::kCompact);
    EXPECT_TRUE(compact.ok());
    ExpectFaithful(*quota, *compact);
  }
  const auto plan = Compile(*quota, SlotKind::kWide);
  EXPECT_TRUE(plan.ok()) << quota->ToString();
  ExpectFaithful(*quota, *plan);
  return true;
}

TEST(Compile, EveryQuotaGetsAPlanOrANearestOneThatDoes) {
  Random random(1);
  size_t made = 0;
  for (int i = 0; i < 60'000 && !HasFailure(); ++i) {
    QuotaSpec spec{.algorithm = static_cast<Algorithm>(random.Below(5))};
    const bool is_bucket =
        spec.algorithm == Algorithm::kTokenBucket || spec.algorithm == Algorithm::kLeakyBucket;
    spec.limit = spec.algorithm == Algorithm::kMinGap
                     ? 1
                     : static_cast<int64_t>(random.Scaled(1, Quota::kMaxLimit));
    spec.window = Duration(static_cast<int64_t>(
        random.Scaled(1000, static_cast<uint64_t>(Quota::kMaxWindow.count()))));
    spec.burst = is_bucket ? static_cast<int64_t>(random.Scaled(1, Quota::kMaxLimit)) : 0;
    if (spec.algorithm == Algorithm::kFixedWindow) {
      spec.start = static_cast<WindowStart>(random.Below(3));
    }
    made += static_cast<size_t>(ExpectPlanOrReason(spec));
  }
  EXPECT_GT(made, 40'000U);
}

// Above 256 a nanosecond only limits that divide window * 2^28 are met; the nearest may be above.
TEST(Compile, ABucketThatIsTooFastIsToldTheNearestLimit) {
  const auto told = [](int64_t limit, Duration window) {
    const std::string message = Quota::TokenBucket(limit, window, 1).error().message;
    return message.substr(message.rfind(' ') + 1);
  };
  EXPECT_EQ(told(4'000'000'000, microseconds(1)), "4194304000") << "125 * 2^25";
  EXPECT_EQ(told(3'000'000'000, microseconds(1)), "2684354560") << "5 * 2^29";
  EXPECT_EQ(told(256'001, microseconds(1)), "256000");
  EXPECT_EQ(told(kMost, microseconds(1)), "4194304000");
  EXPECT_EQ(told(kMost, Duration(1024)), "2147483648") << "2^32 would be one too many";
  EXPECT_EQ(told(kMost, Duration(1021)), "4282384384") << "1021 * 2^22";
  EXPECT_EQ(told(2'600'000'000, Duration(10'000'019)), "2560007305") << "T just above 2^20 - 1";
}

TEST(Compile, TakesTheExtremesOfEveryField) {
  const Duration least = Quota::kMinWindow;
  const Duration most = Quota::kMaxWindow;
  const int64_t century = kCentury / most;  // bursts of one per ten years that a century refills
  std::vector<QuotaSpec> specs;
  for (const int64_t limit : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{1'000'003}, kMost}) {
    for (const Duration window :
         {least, least * 3, Duration(seconds(1)), Duration(hours(24)), most}) {
      for (const int64_t burst : {int64_t{1}, kMost, limit}) {
        specs.push_back({.algorithm = Algorithm::kTokenBucket,
                         .limit = limit,
                         .window = window,
                         .burst = burst});
      }
      specs.push_back({.algorithm = Algorithm::kSlidingWindow, .limit = limit, .window = window});
      for (const WindowStart start :
           {WindowStart::kEpoch, WindowStart::kFirstHit, WindowStart::kPerKey}) {
        specs.push_back({.algorithm = Algorithm::kFixedWindow,
                         .limit = limit,
                         .window = window,
                         .start = start});
      }
    }
    specs.push_back(
        {.algorithm = Algorithm::kCalendar, .limit = limit, .period = CalendarPeriod::kYear});
  }
  specs.push_back(
      {.algorithm = Algorithm::kTokenBucket, .limit = 1, .window = most, .burst = century});
  specs.push_back({.algorithm = Algorithm::kMinGap, .limit = 1, .window = least});
  specs.push_back({.algorithm = Algorithm::kMinGap, .limit = 1, .window = most});
  size_t made = 0;
  for (const QuotaSpec& spec : specs) {
    made += static_cast<size_t>(ExpectPlanOrReason(spec));
  }
  EXPECT_GT(made, 150U);
}

}  // namespace
}  // namespace weir::algorithm
