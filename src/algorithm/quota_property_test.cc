// Quotas by RapidCheck: what is accepted is within bounds and reads back equal, whatever is tried.
#include "weir/quota.h"

#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "algorithm/quota_text.h"
#include "base/wide_math.h"

namespace weir {

// Lets RapidCheck print the spec that breaks a property.
void showValue(const QuotaSpec& spec, std::ostream& out) {  // NOLINT(readability-identifier-naming)
  out << "{algorithm " << static_cast<int>(spec.algorithm) << ", limit " << spec.limit
      << ", window " << spec.window.count() << "ns, burst " << spec.burst << ", start "
      << static_cast<int>(spec.start) << ", period " << static_cast<int>(spec.period) << ", zone \""
      << spec.time_zone << "\"}";
}

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

// What include/weir/quota.h promises of every quota there is.
bool IsWithinBounds(const Quota& quota) {
  const bool has_numbers = quota.limit() >= 1 && quota.burst() >= 1;
  if (quota.algorithm() == Algorithm::kCalendar) {
    return has_numbers && quota.burst() == quota.limit() && quota.window() == Duration::zero();
  }
  const bool is_bucket =
      quota.algorithm() == Algorithm::kTokenBucket || quota.algorithm() == Algorithm::kLeakyBucket;
  const auto window = static_cast<uint64_t>(quota.window().count());
  const auto horizon = static_cast<uint64_t>(Quota::kMaxHorizon.count());
  return has_numbers && quota.window() >= Quota::kMinWindow &&
         quota.window() <= Quota::kMaxWindow && (is_bucket || quota.burst() == quota.limit()) &&
         (quota.algorithm() == Algorithm::kFixedWindow || quota.start() == WindowStart::kEpoch) &&
         (quota.algorithm() != Algorithm::kMinGap || quota.limit() == 1) &&
         quota.time_zone() == "UTC" &&
         static_cast<base::Uint128>(window) * quota.burst() <=
             static_cast<base::Uint128>(horizon) * quota.limit();
}

// Any fields at all, with many of them near what is allowed.
rc::Gen<QuotaSpec> AnySpec() {
  const auto number = rc::gen::oneOf(rc::gen::inRange<int64_t>(-2, 50),
                                     rc::gen::inRange<int64_t>(1, Quota::kMaxLimit + 3),
                                     rc::gen::arbitrary<int64_t>());
  const auto window =
      rc::gen::oneOf(rc::gen::inRange<int64_t>(990, 1'000'100'000), rc::gen::arbitrary<int64_t>(),
                     rc::gen::map(rc::gen::inRange<int64_t>(0, 100'000),
                                  [](int64_t minutes) { return minutes * 60'000'000'000; }));
  const auto zone = rc::gen::weightedElement<std::string>(
      {{12, "UTC"}, {2, "Europe/Berlin"}, {2, "Asia/Kathmandu"}, {1, "No/Such"}, {1, ""}});
  return rc::gen::apply(
      [](int algorithm, int64_t limit, int64_t ns, int64_t burst, int start, int period,
         std::string zone_name) {
        return QuotaSpec{.algorithm = static_cast<Algorithm>(algorithm),
                         .limit = limit,
                         .window = Duration(ns),
                         .burst = burst,
                         .start = static_cast<WindowStart>(start),
                         .period = static_cast<CalendarPeriod>(period),
                         .time_zone = std::move(zone_name)};
      },
      rc::gen::inRange(0, 10), number, rc::gen::oneOf(rc::gen::just<int64_t>(0), window, window),
      rc::gen::oneOf(rc::gen::just<int64_t>(0), number),
      rc::gen::weightedElement<int>({{8, 0}, {2, 1}, {2, 2}, {1, 3}}),
      rc::gen::weightedElement<int>({{8, 2}, {1, 0}, {1, 1}, {1, 3}, {1, 4}}), zone);
}

// Fields that Create must accept.
rc::Gen<QuotaSpec> GoodSpec() {
  const auto number = rc::gen::oneOf(rc::gen::inRange<int64_t>(1, 50),
                                     rc::gen::inRange<int64_t>(1, Quota::kMaxLimit + 1),
                                     rc::gen::just(Quota::kMaxLimit));
  const auto window =
      rc::gen::oneOf(rc::gen::inRange<int64_t>(1000, Quota::kMaxWindow.count() + 1),
                     rc::gen::map(rc::gen::inRange<int64_t>(1, 5'000'000),
                                  [](int64_t minutes) { return minutes * 60'000'000'000; }));
  return rc::gen::apply(
      [](int algorithm, int64_t limit, int64_t ns, int64_t burst, int choice,
         std::string zone_name) {
        QuotaSpec spec{.algorithm = static_cast<Algorithm>(algorithm), .limit = limit};
        if (spec.algorithm == Algorithm::kCalendar) {
          spec.period = static_cast<CalendarPeriod>(choice);
          spec.time_zone = std::move(zone_name);
          return spec;
        }
        spec.window = Duration(ns);
        if (spec.algorithm == Algorithm::kMinGap) {
          spec.limit = 1;
        } else if (spec.algorithm == Algorithm::kFixedWindow) {
          spec.start = static_cast<WindowStart>(choice % 3);
          if (spec.start == WindowStart::kFirstHit && spec.window < 17s) {
            spec.limit = std::min<int64_t>(limit, 524'287);
          }
        } else if (spec.algorithm == Algorithm::kSlidingWindow) {
          spec.limit = std::min<int64_t>(limit, spec.window < 1h ? 16'383 : 268'435'455);
        } else {
          spec.limit = limit = std::min(limit, ns <= Quota::kMaxLimit ? 256 * ns : limit);
          spec.burst = burst <= limit || burst / limit < 9 ? burst : 0;
        }
        return spec;
      },
      rc::gen::inRange(0, 6), number, window, number, rc::gen::inRange(0, 4),
      rc::gen::element<std::string>("UTC", "Europe/Berlin", "America/Argentina/ComodRivadavia"));
}

// One case of a property is many specs: a run of a hundred cases is then worth something.
constexpr int kPerCase = 100;

void ReadsBackEqual(const Quota& quota) {
  RC_ASSERT(IsWithinBounds(quota));
  const std::string text = quota.ToString();
  RC_ASSERT(text.size() <= algorithm::kMaxQuotaTextBytes);
  const Result<Quota> again = Quota::Parse(text);
  RC_ASSERT(again.ok());
  RC_ASSERT(*again == quota);
  RC_ASSERT(again->ToString() == text);
}

RC_GTEST_PROP(QuotaProperty, EveryGoodSpecIsAcceptedAndReadsBackEqual, ()) {
  for (const QuotaSpec& spec : *rc::gen::container<std::vector<QuotaSpec>>(kPerCase, GoodSpec())) {
    const Result<Quota> quota = Quota::Create(spec);
    RC_ASSERT(quota.ok());
    RC_ASSERT(quota->limit() == spec.limit);
    RC_ASSERT(quota->window() == spec.window);
    ReadsBackEqual(*quota);
  }
}

RC_GTEST_PROP(QuotaProperty, WhateverIsAcceptedIsWithinBoundsAndReadsBackEqual, ()) {
  for (const QuotaSpec& spec : *rc::gen::container<std::vector<QuotaSpec>>(kPerCase, AnySpec())) {
    const Result<Quota> quota = Quota::Create(spec);
    if (quota) {
      ReadsBackEqual(*quota);
    } else {
      RC_ASSERT(quota.error().message.find(": ") != std::string::npos);
    }
  }
}

RC_GTEST_PROP(QuotaProperty, RandomBytesAreRefusedOrAreAQuota, ()) {
  for (const std::string& text :
       *rc::gen::container<std::vector<std::string>>(kPerCase, rc::gen::arbitrary<std::string>())) {
    const Result<Quota> quota = Quota::Parse(text);
    RC_ASSERT((quota.ok() ? IsWithinBounds(*quota) : !quota.error().message.empty()));
  }
}

RC_GTEST_PROP(QuotaProperty, RandomWordsAreRefusedOrAreAQuota, ()) {
  const auto one_of = [](auto... words) { return rc::gen::element<std::string>(words...); };
  const auto text = rc::gen::apply(
      [](const std::string& limit, const std::string& slash, const std::string& window,
         const std::vector<std::string>& options) {
        std::string joined = limit;
        joined += slash;
        joined += window;
        for (const std::string& option : options) {
          joined += " " + option;
        }
        return joined;
      },
      one_of("1", "0", "-1", "5k", "1_000", "4294967295", "99999999999999999999", "1M", ""),
      one_of("/", "/", " / ", " per ", "", "//"),
      one_of("s", "30s", "MIN", "10 ms", "day", "week", "month", "year", "0h", "mn", "9999d",
             "-1s"),
      rc::gen::resize(3, rc::gen::container<std::vector<std::string>>(
                             one_of("burst 5", "burst", "burst 0", "calendar", "fixed-window",
                                    "leaky-bucket", "from first-hit", "in UTC", "gap 2s", "\t"))));
  int accepted = 0;
  for (const std::string& candidate :
       *rc::gen::container<std::vector<std::string>>(kPerCase, text)) {
    if (const Result<Quota> quota = Quota::Parse(candidate)) {
      ++accepted;
      ReadsBackEqual(*quota);
    }
  }
  RC_CLASSIFY(accepted > 0, "accepted some");
}

RC_GTEST_PROP(QuotaProperty, TheBurstNamedAsTheMostIsAllowedAndOneMoreIsNot, ()) {
  const int64_t limit = *rc::gen::inRange<int64_t>(1, 100'000);
  const Duration window(*rc::gen::inRange<int64_t>(1'000'000'000, Quota::kMaxWindow.count()));
  const Result<Quota> refused = Quota::TokenBucket(limit, window, Quota::kMaxLimit + 1);
  RC_ASSERT(!refused.ok());
  const std::string& message = refused.error().message;
  const size_t at = message.find("the most is ");
  RC_ASSERT(at != std::string::npos);
  const int64_t most = std::stoll(message.substr(at + 12));
  RC_ASSERT(Quota::TokenBucket(limit, window, most).ok());
  RC_ASSERT(!Quota::TokenBucket(limit, window, most + 1).ok());
}

}  // namespace
}  // namespace weir
