// The pure policies against plain 128-bit arithmetic, over a hundred million random tuples of
// (plan, state, cost, now). Each formula here is the textbook one, without the policies' tricks:
// no reciprocals, no wrapped clocks, no packed words. Under UBSan this is also the proof that no
// tuple overflows.
#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

#include "weir/quota.h"

#include "algorithm/calendar.h"
#include "algorithm/fixed_window.h"
#include "algorithm/gcra.h"
#include "algorithm/min_gap.h"
#include "algorithm/plan.h"
#include "algorithm/sliding_window.h"
#include "base/time_zone.h"
#include "testing/random.h"

namespace weir::algorithm {
namespace {

using base::Uint128;
using testing::Random;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kYear = 366 * 86'400 * kSecond;

// At least a hundred million in all, split evenly over the policies below; a tenth of that where a
// tuple is many times as dear: without optimisation, and under an emulator.
constexpr uint64_t kPolicies = 7;
constexpr uint64_t kTuplesPerPolicy =
#if defined(__OPTIMIZE__) && defined(__x86_64__)
    100'000'000 / kPolicies + 1;
#else
    10'000'000 / kPolicies + 1;
#endif

// Plans are dear to make and cheap to use: each serves this many tuples.
constexpr uint64_t kTuplesPerPlan = 200;

Plan AnyPlan(Random& random, Algorithm algorithm, SlotKind slot, WindowStart start) {
  for (;;) {
    QuotaSpec spec{.algorithm = algorithm, .start = start};
    const bool is_bucket = algorithm == Algorithm::kTokenBucket;
    spec.limit = algorithm == Algorithm::kMinGap
                     ? 1
                     : static_cast<int64_t>(random.Scaled(1, base::LowBits(32)));
    spec.window = Duration(static_cast<int64_t>(random.Scaled(1000, 10 * kYear)));
    if (is_bucket) {
      spec.burst = static_cast<int64_t>(random.Scaled(1, base::LowBits(32)));
    }
    if (slot == SlotKind::kCompact) {
      const int64_t unit = spec.limit * 1000;
      spec.window = spec.window / unit * unit;
    }
    const auto quota = Quota::Create(spec);
    if (quota.ok() && (slot == SlotKind::kWide || FitsCompact(*quota))) {
      auto plan = Compile(*quota, slot);
      if (plan.ok()) {
        plan->epoch_offset_ns = random.Scaled(1, 60 * kYear);
        return *plan;
      }
    }
  }
}

// Nanoseconds up, from ticks, as a fraction would say it.
Uint128 NsUp(const Plan& plan, Uint128 ticks) {
  if (plan.slot == SlotKind::kCompact) {
    return ticks * 1000;
  }
  return plan.shift >= 0 ? (ticks + ((Uint128{1} << plan.shift) - 1)) >> plan.shift
                         : ticks << -plan.shift;
}

Uint128 TicksDown(const Plan& plan, Uint128 ns) {
  if (plan.slot == SlotKind::kCompact) {
    return ns / 1000;
  }
  return plan.shift >= 0 ? ns << plan.shift : ns >> -plan.shift;
}

// A slot's word: the payload, and above it the rest of the word, which Load is to ignore.
uint64_t Word(Random& random, SlotKind slot, uint64_t payload) {
  const unsigned bits =
      slot == SlotKind::kCompact ? CompactTicks::kPayloadBits : WideTicks::kPayloadBits;
  return payload | random.Next() << bits;
}

#define WEIR_SAME(actual, expected)                                                          \
  if (static_cast<Uint128>(actual) != static_cast<Uint128>(expected)) {                      \
    ADD_FAILURE() << #actual << " is " << static_cast<uint64_t>(actual) << ", expected "     \
                  << static_cast<uint64_t>(expected) << "; tuple " << i << ", cost " << cost \
                  << ", limit " << plan.limit << ", burst " << plan.burst << ", window "     \
                  << plan.window_ns << ", shift " << int{plan.shift};                        \
    return;                                                                                  \
  }

template <class Ticks>
void BucketTuples(uint64_t tuples, uint64_t seed) {
  using Bucket = Gcra<Ticks>;
  Random random(seed);
  Plan plan;
  for (uint64_t i = 0; i < tuples; ++i) {
    if (i % kTuplesPerPlan == 0) {
      plan = AnyPlan(random, Algorithm::kTokenBucket, Ticks::kSlot, WindowStart::kEpoch);
    }
    const uint64_t cost = std::min<uint64_t>(plan.burst, random.Scaled(1, uint64_t{1} << 32));
    // An absolute TAT and an absolute now, both unwrapped, at most a quarter of a wrap apart.
    const uint64_t now_ns = (uint64_t{1} << 41) + random.Scaled(1, 30 * kYear);
    const Uint128 now = TicksDown(plan, now_ns);
    const uint64_t debt = random.OneIn(8) ? 0 : random.Below(plan.debt_max + 1);
    const uint64_t age = random.Below(uint64_t{1} << (Ticks::kPayloadBits - 2));
    const bool is_past = random.OneIn(8);
    const Uint128 tat = is_past ? now - std::min(now, Uint128{age}) : now + debt;
    const Uint128 owed = tat > now ? tat - now : 0;

    const auto at = Bucket::At(plan, {.ns = now_ns});
    const uint64_t payload = static_cast<uint64_t>(tat) & Bucket::kMask;
    auto state = Bucket::Load(plan, Word(random, plan.slot, payload), at);
    WEIR_SAME(state.debt, owed);
    WEIR_SAME(Bucket::Expired(plan, payload, at), owed == 0);
    const Uint128 tolerance = Uint128{plan.burst} * plan.emission;
    WEIR_SAME(plan.tolerance, tolerance);
    const Uint128 room = owed >= tolerance ? 0 : (tolerance - owed) / plan.emission;
    WEIR_SAME(Bucket::Available(plan, state, at), room);
    WEIR_SAME(Bucket::ResetNs(plan, state, at), NsUp(plan, owed));
    const Uint128 after = owed + Uint128{cost} * plan.emission;
    const bool fits = after <= tolerance;
    if (!fits) {
      WEIR_SAME(Bucket::RetryNs(plan, state, at, cost), NsUp(plan, after - tolerance));
    }
    // Load and Take in one.
    const auto attempt = Bucket::Try(plan, Word(random, plan.slot, payload), at, cost);
    WEIR_SAME(Bucket::Fits(plan, attempt), fits);
    if (fits) {
      WEIR_SAME(Bucket::Charged(attempt).debt, after);
    } else {
      WEIR_SAME(Bucket::Refused(attempt).debt, owed);
      WEIR_SAME(Bucket::RetryNs(plan, attempt), NsUp(plan, after - tolerance));
    }
    auto counted = state;
    Bucket::Count(plan, counted, cost);
    WEIR_SAME(counted.debt, std::max(owed, std::min(after, 2 * tolerance)));
    WEIR_SAME(Bucket::Take(plan, state, cost), fits);
    WEIR_SAME(state.debt, fits ? after : owed);
    if (fits) {
      WEIR_SAME(Bucket::Left(plan, state), (tolerance - after) / plan.emission);
    }
    WEIR_SAME(Bucket::Save(plan, state, at), (now + (fits ? after : owed)) & Bucket::kMask);
    if (fits) {
      // Given back at once it is all owed; at any time never more than was paid.
      auto back = state;
      const uint64_t mark = Bucket::Mark(plan, state, at);
      const Refund refund = Bucket::GiveBack(plan, back, at, mark, static_cast<uint32_t>(cost), 0);
      WEIR_SAME(back.debt, owed);
      WEIR_SAME(refund.units, cost);
    }
  }
}

template <class Ticks>
void GapTuples(uint64_t tuples, uint64_t seed) {
  using Gap = MinGap<Ticks>;
  Random random(seed);
  Plan plan;
  for (uint64_t i = 0; i < tuples; ++i) {
    if (i % kTuplesPerPlan == 0) {
      plan = AnyPlan(random, Algorithm::kMinGap, Ticks::kSlot, WindowStart::kEpoch);
    }
    const uint64_t cost = random.Scaled(1, uint64_t{1} << 32);
    const uint64_t now_ns = (uint64_t{1} << 41) + random.Scaled(1, 30 * kYear);
    const Uint128 now = TicksDown(plan, now_ns);
    const auto at = Gap::At(plan, {.ns = now_ns});
    // The last request was `ago` ticks before now; the gap is whole in ticks.
    const uint64_t ago = random.Below(std::min<uint64_t>(
        plan.emission * 2, static_cast<uint64_t>(std::min<Uint128>(now, base::kUint64Max))));
    const uint64_t payload = static_cast<uint64_t>(now - ago + plan.emission) & Gap::Bucket::kMask;
    auto state = Gap::Load(plan, Word(random, plan.slot, payload), at);
    const bool fits = ago >= plan.emission;
    WEIR_SAME(Gap::Available(plan, state, at), fits ? 1 : 0);
    const Uint128 wait = fits ? 0 : plan.emission - ago;
    WEIR_SAME(Gap::RetryNs(plan, state, at, cost), NsUp(plan, wait));
    WEIR_SAME(Gap::ResetNs(plan, state, at), NsUp(plan, wait));
    WEIR_SAME(Gap::Take(plan, state, cost), fits);
    if (fits) {
      WEIR_SAME(Gap::Save(plan, state, at), (now + plan.emission) & Gap::Bucket::kMask);
    }
  }
}

void FixedTuples(uint64_t tuples, uint64_t seed) {
  Random random(seed);
  Plan plan;
  for (uint64_t i = 0; i < tuples; ++i) {
    if (i % kTuplesPerPlan == 0) {
      plan = AnyPlan(random, Algorithm::kFixedWindow, SlotKind::kWide,
                     random.OneIn(2) ? WindowStart::kEpoch : WindowStart::kPerKey);
    }
    const uint64_t cost = std::min<uint64_t>(plan.limit, random.Scaled(1, uint64_t{1} << 32));
    const Moment moment{.ns = (uint64_t{1} << 41) + random.Scaled(1, 30 * kYear),
                        .phase = random.Next()};
    const Uint128 shifted =
        Uint128{moment.ns} + plan.epoch_offset_ns +
        (plan.start == WindowStart::kPerKey ? moment.phase % plan.window_ns : 0);
    const auto now = FixedWindow::At(plan, moment);
    WEIR_SAME(now.id, shifted / plan.window_ns);
    WEIR_SAME(now.left_ns, plan.window_ns - shifted % plan.window_ns);
    const uint64_t stored_count = random.Below(plan.count_max + 1);
    const uint64_t windows_ago = random.OneIn(2) ? 0 : random.Between(1, 5);
    const uint64_t payload = FixedWindow::Save(plan, {now.id - windows_ago, stored_count, 0}, now);
    const uint64_t count = windows_ago == 0 ? stored_count : 0;
    auto state = FixedWindow::Load(plan, Word(random, plan.slot, payload), now);
    WEIR_SAME(state.count, count);
    WEIR_SAME(FixedWindow::Expired(plan, payload, now), count == 0);
    WEIR_SAME(FixedWindow::Available(plan, state, now),
              count >= plan.limit ? 0 : plan.limit - count);
    WEIR_SAME(FixedWindow::ResetNs(plan, state, now), count == 0 ? 0 : now.left_ns);
    WEIR_SAME(FixedWindow::RetryNs(plan, state, now, cost), now.left_ns);
    const bool fits = Uint128{count} + cost <= plan.limit;
    auto counted = state;
    FixedWindow::Count(plan, counted, cost);
    WEIR_SAME(counted.count, std::min<Uint128>(Uint128{count} + cost, plan.count_max));
    WEIR_SAME(FixedWindow::Take(plan, state, cost), fits);
    WEIR_SAME(state.count, fits ? count + cost : count);
    const auto again = FixedWindow::Load(plan, FixedWindow::Save(plan, state, now), now);
    WEIR_SAME(again.count, state.count);
  }
}

void FirstHitTuples(uint64_t tuples, uint64_t seed) {
  Random random(seed);
  Plan plan;
  for (uint64_t i = 0; i < tuples; ++i) {
    if (i % kTuplesPerPlan == 0) {
      plan = AnyPlan(random, Algorithm::kFixedWindow, SlotKind::kWide, WindowStart::kFirstHit);
    }
    const uint64_t cost = std::min<uint64_t>(plan.limit, random.Scaled(1, uint64_t{1} << 32));
    const uint64_t now_ns = (uint64_t{1} << 62) + random.Scaled(1, 30 * kYear);
    const auto now = FirstHitWindow::At(plan, {.ns = now_ns});
    const uint64_t ago = random.Below(plan.window_ticks * 2);
    const uint64_t stored_count = random.Below(plan.count_max + 1);
    const uint64_t payload = FirstHitWindow::Save(plan, {now.tick - ago, stored_count, 0}, now);
    const bool is_open = stored_count != 0 && ago < plan.window_ticks;
    const uint64_t count = is_open ? stored_count : 0;
    auto state = FirstHitWindow::Load(plan, Word(random, plan.slot, payload), now);
    WEIR_SAME(state.count, count);
    WEIR_SAME(FirstHitWindow::Expired(plan, payload, now), !is_open);
    const Uint128 left = is_open ? plan.window_ticks - ago : plan.window_ticks;
    WEIR_SAME(FirstHitWindow::ResetNs(plan, state, now), is_open ? NsUp(plan, left) : 0);
    WEIR_SAME(FirstHitWindow::RetryNs(plan, state, now, cost), NsUp(plan, left));
    const bool fits = Uint128{count} + cost <= plan.limit;
    WEIR_SAME(FirstHitWindow::Take(plan, state, cost), fits);
    const auto again = FirstHitWindow::Load(plan, FirstHitWindow::Save(plan, state, now), now);
    WEIR_SAME(again.count, state.count);
    WEIR_SAME(again.left, state.count == 0 ? plan.window_ticks : left);
  }
}

// Periods of UTC by the standard library's calendar, and the counters that are kept for them.
void CalendarTuples(uint64_t tuples, uint64_t seed) {
  using std::chrono::days;
  using std::chrono::sys_days;
  Random random(seed);
  const auto zone = *base::TimeZone::Load("UTC");
  Plan plan;
  CalendarPeriod kind{};
  for (uint64_t i = 0; i < tuples; ++i) {
    if (i % kTuplesPerPlan == 0) {
      kind = static_cast<CalendarPeriod>(random.Below(4));
      const auto limit = static_cast<int64_t>(random.Scaled(1, base::LowBits(32)));
      plan = *Compile(*Quota::Calendar(limit, kind), SlotKind::kWide);
    }
    const uint64_t cost = std::min<uint64_t>(plan.limit, random.Scaled(1, uint64_t{1} << 32));
    // From 1920 to 2210.
    const int64_t wall_ns =
        static_cast<int64_t>(random.Below(290 * kYear)) - 50 * static_cast<int64_t>(kYear);
    const sys_days today = std::chrono::floor<days>(
        std::chrono::sys_time<std::chrono::nanoseconds>(Duration(wall_ns)));
    const std::chrono::year_month_day date(today);
    sys_days begin = today;
    sys_days end = today + days(1);
    if (kind == CalendarPeriod::kWeek) {
      begin = today - (std::chrono::weekday(today) - std::chrono::Monday);
      end = begin + days(7);
    } else if (kind == CalendarPeriod::kMonth) {
      begin = date.year() / date.month() / 1;
      end = (date.year() / date.month() + std::chrono::months(1)) / 1;
    } else if (kind == CalendarPeriod::kYear) {
      begin = date.year() / 1 / 1;
      end = (date.year() + std::chrono::years(1)) / 1 / 1;
    }
    const Period period = PeriodAt(kind, *zone, wall_ns);
    WEIR_SAME(period.begin_ns == Duration(begin.time_since_epoch()).count(), true);
    WEIR_SAME(period.end_ns == Duration(end.time_since_epoch()).count(), true);
    WEIR_SAME(PeriodAt(kind, *zone, period.end_ns).id == period.id + 1, true);

    const auto left = static_cast<uint64_t>(period.end_ns - wall_ns);
    const auto now = FixedWindow::At(
        plan, {.period_id = static_cast<uint64_t>(period.id), .period_left_ns = left});
    const uint64_t stored_count = random.Below(plan.count_max + 1);
    const uint64_t periods_ago = random.OneIn(2) ? 0 : random.Between(1, 5);
    const uint64_t payload = FixedWindow::Save(plan, {now.id - periods_ago, stored_count, 0}, now);
    const uint64_t count = periods_ago == 0 ? stored_count : 0;
    auto state = FixedWindow::Load(plan, Word(random, plan.slot, payload), now);
    WEIR_SAME(state.count, count);
    WEIR_SAME(FixedWindow::Expired(plan, payload, now), count == 0);
    WEIR_SAME(FixedWindow::ResetNs(plan, state, now), count == 0 ? 0 : left);
    WEIR_SAME(FixedWindow::RetryNs(plan, state, now, cost), left);
    const bool fits = Uint128{count} + cost <= plan.limit;
    WEIR_SAME(FixedWindow::Take(plan, state, cost), fits);
    WEIR_SAME(state.count, fits ? count + cost : count);
  }
}

// floor(previous * left / window) by one division of 128 bits.
Uint128 Weight(const Plan& plan, uint64_t previous, uint64_t left) {
  return Uint128{previous} * left / plan.window_ns;
}

void SlidingTuples(uint64_t tuples, uint64_t seed) {
  Random random(seed);
  Plan plan;
  for (uint64_t i = 0; i < tuples; ++i) {
    if (i % kTuplesPerPlan == 0) {
      plan = AnyPlan(random, Algorithm::kSlidingWindow, SlotKind::kWide, WindowStart::kEpoch);
    }
    const uint64_t cost = std::min<uint64_t>(plan.limit, random.Scaled(1, uint64_t{1} << 32));
    const Moment moment{.ns = (uint64_t{1} << 41) + random.Scaled(1, 30 * kYear)};
    const auto now = SlidingWindow::At(plan, moment);
    const uint64_t most = random.OneIn(4) ? plan.count_max : plan.limit;
    const uint64_t stored_previous = random.Below(most + 1);
    const uint64_t stored_current = random.Below(most + 1);
    const uint64_t windows_ago = random.OneIn(2) ? 0 : random.Between(1, 3);
    const uint64_t payload = SlidingWindow::Save(
        plan, {now.id - windows_ago, stored_previous, stored_current, 0, 0}, now);
    const uint64_t previous = windows_ago == 0   ? stored_previous
                              : windows_ago == 1 ? stored_current
                                                 : 0;
    const uint64_t current = windows_ago == 0 ? stored_current : 0;
    auto state = SlidingWindow::Load(plan, Word(random, plan.slot, payload), now);
    const Uint128 used = Weight(plan, previous, now.left_ns) + current;
    WEIR_SAME(state.weighted + state.current, used);
    WEIR_SAME(SlidingWindow::Available(plan, state, now),
              used >= plan.limit ? 0 : plan.limit - used);
    // What is in use after waiting, with nobody else charging.
    const auto used_after = [&](Uint128 wait) -> Uint128 {
      if (wait < now.left_ns) {
        return Weight(plan, previous, now.left_ns - static_cast<uint64_t>(wait)) + current;
      }
      const Uint128 into_next = wait - now.left_ns;
      return into_next >= plan.window_ns
                 ? 0
                 : Weight(plan, current, plan.window_ns - static_cast<uint64_t>(into_next));
    };
    const uint64_t reset = SlidingWindow::ResetNs(plan, state, now);
    WEIR_SAME(used_after(reset), 0);
    if (reset != 0) {
      WEIR_SAME(used_after(reset - 1) != 0, true);
    }
    const bool fits = used + cost <= plan.limit;
    if (!fits) {
      const uint64_t retry = SlidingWindow::RetryNs(plan, state, now, cost);
      WEIR_SAME(retry != 0, true);
      WEIR_SAME(used_after(retry) + cost <= plan.limit, true);
      WEIR_SAME(used_after(retry - 1) + cost <= plan.limit, false);
    }
    WEIR_SAME(SlidingWindow::Take(plan, state, cost), fits);
    WEIR_SAME(state.current, fits ? current + cost : current);
    const auto again = SlidingWindow::Load(plan, SlidingWindow::Save(plan, state, now), now);
    WEIR_SAME(again.current, state.current);
    WEIR_SAME(again.previous, state.previous);
  }
}

TEST(PolicyTuples, CompactBucketsAgreeWithPlainArithmetic) {
  BucketTuples<CompactTicks>(kTuplesPerPolicy, 1);
}
TEST(PolicyTuples, WideBucketsAgreeWithPlainArithmetic) {
  BucketTuples<WideTicks>(kTuplesPerPolicy, 2);
}
TEST(PolicyTuples, GapsAgreeWithPlainArithmetic) {
  GapTuples<CompactTicks>(kTuplesPerPolicy / 2 + 1, 3);
  GapTuples<WideTicks>(kTuplesPerPolicy / 2 + 1, 4);
}
TEST(PolicyTuples, FixedWindowsAgreeWithPlainArithmetic) {
  FixedTuples(kTuplesPerPolicy, 5);
}
TEST(PolicyTuples, FirstHitWindowsAgreeWithPlainArithmetic) {
  FirstHitTuples(kTuplesPerPolicy, 6);
}
TEST(PolicyTuples, CalendarPeriodsAgreeWithTheStandardLibrary) {
  CalendarTuples(kTuplesPerPolicy, 8);
}
TEST(PolicyTuples, SlidingWindowsAgreeWithPlainArithmetic) {
  SlidingTuples(kTuplesPerPolicy, 7);
}

}  // namespace
}  // namespace weir::algorithm
