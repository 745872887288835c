// The "admit iff" of every algorithm by RapidCheck, through the public interface. The same over
// many more histories: limiter_property_test.
#include <rapidcheck.h>

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "weir/limiter.h"

#include "testing/twin.h"

namespace weir {
namespace {

using testing::FollowOracle;
using testing::Step;

// Histories that shrink: when one of these fails, RapidCheck finds the shortest that does.
std::vector<Step> AnyHistory(uint64_t longest_wait, uint64_t largest_cost) {
  return *rc::gen::container<std::vector<Step>>(rc::gen::build<Step>(
      rc::gen::set(&Step::wait, rc::gen::inRange<uint64_t>(0, longest_wait)),
      rc::gen::set(&Step::cost, rc::gen::inRange<uint64_t>(0, largest_cost + 2)),
      rc::gen::set(&Step::key, rc::gen::inRange<uint32_t>(0, 3)),
      rc::gen::set(&Step::mode,
                   rc::gen::element(ChargeMode::kAdmit, ChargeMode::kAdmit, ChargeMode::kUpTo,
                                    ChargeMode::kCountAlways, ChargeMode::kDryRun)),
      rc::gen::set(&Step::wait_for_retry, rc::gen::arbitrary<bool>())));
}

RC_GTEST_PROP(AdmitIffProperty, HoldsForBuckets, ()) {
  const auto limit = *rc::gen::inRange<int64_t>(1, 50);
  const auto burst = *rc::gen::inRange<int64_t>(1, 20);
  const auto interval_ns = *rc::gen::inRange<int64_t>(1000, 100'000);
  const Quota quota = *Quota::TokenBucket(limit, Duration(interval_ns * limit), burst);
  const auto ticks = static_cast<uint64_t>(interval_ns / testing::TickOf(quota).count() * 3);
  RC_ASSERT(FollowOracle(quota, AnyHistory(ticks + 1, quota.burst())) == "");
}

RC_GTEST_PROP(AdmitIffProperty, HoldsForWindows, ()) {
  const auto limit = *rc::gen::inRange<int64_t>(1, 30);
  const Duration window(*rc::gen::inRange<int64_t>(1000, 5000));
  const Quota quota =
      *rc::gen::element(*Quota::FixedWindow(limit, window), *Quota::SlidingWindow(limit, window),
                        *Quota::FixedWindow(limit, window, WindowStart::kFirstHit),
                        *Quota::FixedWindow(limit, window, WindowStart::kPerKey));
  RC_ASSERT(FollowOracle(quota, AnyHistory(static_cast<uint64_t>(window.count()), quota.burst())) ==
            "");
}

RC_GTEST_PROP(AdmitIffProperty, HoldsForGaps, ()) {
  const Quota quota = *Quota::MinGap(Duration(*rc::gen::inRange<int64_t>(1000, 10'000)));
  RC_ASSERT(FollowOracle(quota, AnyHistory(15'000, 5)) == "");
}

RC_GTEST_PROP(AdmitIffProperty, HoldsForCalendarQuotas, ()) {
  const auto limit = *rc::gen::inRange<int64_t>(1, 30);
  const auto period = *rc::gen::element(CalendarPeriod::kDay, CalendarPeriod::kWeek,
                                        CalendarPeriod::kMonth, CalendarPeriod::kYear);
  const std::string zone =
      *rc::gen::element<std::string>("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata");
  const Quota quota = *Quota::Calendar(limit, period, zone);
  const uint64_t longest_wait_ns = 86'400'000'000'000 * *rc::gen::element<uint64_t>(1, 10, 100);
  RC_ASSERT(FollowOracle(quota, AnyHistory(longest_wait_ns, quota.burst())) == "");
}

}  // namespace
}  // namespace weir
