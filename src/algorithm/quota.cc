// Every way to build a quota ends in Check and CheckPlan: nothing else decides what is valid.
#include "weir/quota.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "algorithm/plan.h"
#include "algorithm/quota_text.h"
#include "base/spelling.h"
#include "base/time_zone.h"
#include "base/wide_math.h"

namespace weir {
namespace {

using algorithm::FormatDuration;
using algorithm::QuotaField;
using algorithm::TooLarge;
using algorithm::TooSmall;

struct Fault {
  QuotaField field;
  std::string message;
};

using MaybeFault = std::optional<Fault>;

bool IsBucket(Algorithm algorithm) noexcept {
  return algorithm == Algorithm::kTokenBucket || algorithm == Algorithm::kLeakyBucket;
}

// Enumerators that came out of a cast from configuration.
MaybeFault CheckEnumerators(const QuotaSpec& spec) {
  const auto fault = [](QuotaField field, std::string_view name, unsigned found, unsigned most) {
    return Fault{field, TooLarge(name, std::to_string(found), std::to_string(most))};
  };
  if (spec.algorithm > Algorithm::kConcurrency) {
    return fault(QuotaField::kAlgorithm, "algorithm", static_cast<unsigned>(spec.algorithm),
                 static_cast<unsigned>(Algorithm::kConcurrency));
  }
  if (spec.start > WindowStart::kPerKey) {
    return fault(QuotaField::kStart, "start", static_cast<unsigned>(spec.start),
                 static_cast<unsigned>(WindowStart::kPerKey));
  }
  if (spec.period > CalendarPeriod::kYear) {
    return fault(QuotaField::kPeriod, "period", static_cast<unsigned>(spec.period),
                 static_cast<unsigned>(CalendarPeriod::kYear));
  }
  return std::nullopt;
}

// A field that the algorithm does not look at must say nothing, so that nobody believes it works.
MaybeFault CheckForeignFields(const QuotaSpec& spec) {
  const std::string owner(ToString(spec.algorithm));
  const auto fault = [&](QuotaField field, std::string_view name, std::string found,
                         std::string_view rest) {
    return Fault{field, std::string(name) + ": " + std::move(found) + " is not allowed for " +
                            owner + "; " + std::string(rest)};
  };
  if (spec.start != WindowStart::kEpoch && spec.algorithm != Algorithm::kFixedWindow) {
    return fault(QuotaField::kStart, "start", std::string(algorithm::NameOf(spec.start)),
                 "the only value is epoch (where a window begins is chosen for fixed-window only)");
  }
  if (spec.slices != 0 && spec.algorithm != Algorithm::kSlicedWindow) {
    return fault(QuotaField::kSlices, "slices", std::to_string(spec.slices),
                 "the only value is 0 (slices belong to sliced-window)");
  }
  if (spec.undelayed != 0 && spec.algorithm != Algorithm::kLeakyBucket) {
    return fault(QuotaField::kUndelayed, "undelayed", std::to_string(spec.undelayed),
                 "the only value is 0 (a queue is a leaky-bucket)");
  }
  if (spec.algorithm == Algorithm::kCalendar) {
    if (spec.window != Duration::zero()) {
      return fault(QuotaField::kWindow, "window", FormatDuration(spec.window),
                   "the only value is 0s (its length comes from period)");
    }
    return std::nullopt;
  }
  if (spec.period != CalendarPeriod::kMonth) {
    return fault(QuotaField::kPeriod, "period", std::string(algorithm::NameOf(spec.period)),
                 "leave it at month (a period belongs to calendar; here window says how long)");
  }
  if (spec.time_zone != "UTC") {
    return fault(QuotaField::kTimeZone, "time_zone", base::Quoted(spec.time_zone),
                 "the only value is \"UTC\" (a time zone belongs to calendar)");
  }
  return std::nullopt;
}

MaybeFault CheckWindow(const QuotaSpec& spec) {
  const bool is_lease = spec.algorithm == Algorithm::kConcurrency;
  const std::string_view name = spec.algorithm == Algorithm::kMinGap ? "gap"
                                : is_lease                           ? "lease"
                                                                     : "window";
  const Duration most = is_lease ? Quota::kMaxLease : Quota::kMaxWindow;
  if (spec.window < Quota::kMinWindow) {
    return Fault{QuotaField::kWindow,
                 TooSmall(name, FormatDuration(spec.window), FormatDuration(Quota::kMinWindow))};
  }
  if (spec.window > most) {
    return Fault{QuotaField::kWindow,
                 TooLarge(name, FormatDuration(spec.window), FormatDuration(most))};
  }
  return std::nullopt;
}

// The nearest number of slices, from 1 to `most`, that cuts the window into whole nanoseconds; of
// two as near, the smaller. One always does.
int64_t NearestSlices(Duration window, int64_t slices, int64_t most) {
  for (int64_t away = 0;; ++away) {
    for (const int64_t near : {slices - away, slices + away}) {
      if (near >= 1 && near <= most && window.count() % near == 0) {
        return near;
      }
    }
  }
}

// The window must be cut into whole nanoseconds; the nearest number of slices that does is named.
MaybeFault CheckSlices(const QuotaSpec& spec) {
  if (spec.algorithm != Algorithm::kSlicedWindow) {
    return std::nullopt;
  }
  if (spec.slices < 1) {
    return Fault{QuotaField::kSlices, TooSmall("slices", std::to_string(spec.slices), "1")};
  }
  const int64_t most = std::min(Quota::kMaxSlices, spec.window / Quota::kMinWindow);
  if (spec.slices > most) {
    return Fault{QuotaField::kSlices,
                 TooLarge("slices", std::to_string(spec.slices),
                          std::to_string(NearestSlices(spec.window, most, most)))};
  }
  const int64_t nearest = NearestSlices(spec.window, spec.slices, most);
  if (nearest != spec.slices) {
    return Fault{QuotaField::kSlices, "slices: " + std::to_string(spec.slices) + " do not divide " +
                                          FormatDuration(spec.window) +
                                          " evenly; the nearest that do are " +
                                          std::to_string(nearest)};
  }
  return std::nullopt;
}

// A bucket must refill within kMaxHorizon: burst * window / limit, without rounding.
MaybeFault CheckBurst(const QuotaSpec& spec) {
  if (!IsBucket(spec.algorithm)) {
    if (spec.burst != spec.limit) {
      return Fault{QuotaField::kBurst,
                   "burst: " + std::to_string(spec.burst) + " is not allowed for " +
                       std::string(ToString(spec.algorithm)) + "; the only value is its limit, " +
                       std::to_string(spec.limit) +
                       " (a burst belongs to token-bucket and leaky-bucket)"};
    }
    return std::nullopt;
  }
  const std::string found = std::to_string(spec.burst);
  if (spec.burst < 1) {
    return Fault{QuotaField::kBurst, TooSmall("burst", found, "1")};
  }
  const base::Uint128 allowed_ns =
      static_cast<base::Uint128>(Quota::kMaxHorizon.count()) * static_cast<uint64_t>(spec.limit);
  const base::Uint128 window_ns = static_cast<uint64_t>(spec.window.count());
  const base::Uint128 horizon_most = allowed_ns / window_ns;
  if (spec.burst > Quota::kMaxLimit && horizon_most >= Quota::kMaxLimit) {
    return Fault{QuotaField::kBurst, TooLarge("burst", found, std::to_string(Quota::kMaxLimit))};
  }
  if (static_cast<uint64_t>(spec.burst) > horizon_most) {
    return Fault{QuotaField::kBurst,
                 TooLarge("burst", found, std::to_string(static_cast<uint64_t>(horizon_most))) +
                     " (at " + std::to_string(spec.limit) + " per " + FormatDuration(spec.window) +
                     " more would take over " + FormatDuration(Quota::kMaxHorizon) + " to refill)"};
  }
  return std::nullopt;
}

MaybeFault CheckUndelayed(const QuotaSpec& spec) {
  if (spec.undelayed < 0) {
    return Fault{QuotaField::kUndelayed, TooSmall("undelayed", std::to_string(spec.undelayed),
                                                  "1, or 0 for a meter that delays nothing")};
  }
  if (spec.undelayed > spec.burst) {
    return Fault{QuotaField::kUndelayed,
                 TooLarge("undelayed", std::to_string(spec.undelayed), std::to_string(spec.burst)) +
                     ", the burst: no more are admitted at once"};
  }
  return std::nullopt;
}

// The most that this kind of quota takes in this window is what is nearest to any limit beyond it.
Fault LimitTooLarge(const QuotaSpec& spec) {
  const std::string found = std::to_string(spec.limit);
  const std::string most = std::to_string(Quota::kMaxLimit);
  QuotaSpec largest = spec;
  largest.limit = Quota::kMaxLimit;
  const auto quota = Quota::Create(largest);
  const std::string prefix = "limit: " + most;
  if (!quota && quota.error().message.starts_with(prefix)) {
    return {QuotaField::kLimit, "limit: " + found + quota.error().message.substr(prefix.size())};
  }
  return {QuotaField::kLimit, TooLarge("limit", found, most)};
}

// Fills in what defaults stand for and finds the first thing wrong.
MaybeFault Check(QuotaSpec& spec) {
  if (MaybeFault fault = CheckEnumerators(spec)) {
    return fault;
  }
  const bool is_gap = spec.algorithm == Algorithm::kMinGap;
  if (is_gap && spec.limit == 0) {
    spec.limit = 1;
  }
  if (is_gap && spec.limit != 1) {
    return Fault{QuotaField::kLimit, "limit: " + std::to_string(spec.limit) +
                                         " is not allowed for min-gap; the only value is 1"};
  }
  if (spec.limit < 1) {
    return Fault{QuotaField::kLimit, TooSmall("limit", std::to_string(spec.limit), "1")};
  }
  if (spec.limit > Quota::kMaxLimit) {
    return LimitTooLarge(spec);
  }
  if (spec.algorithm == Algorithm::kSlidingLog && spec.limit > Quota::kMaxLogLimit) {
    return Fault{QuotaField::kLimit, TooLarge("limit", std::to_string(spec.limit),
                                              std::to_string(Quota::kMaxLogLimit)) +
                                         " for sliding-log, which keeps a stamp for each unit"};
  }
  if (spec.algorithm == Algorithm::kConcurrency && spec.limit > Quota::kMaxHolds) {
    return Fault{QuotaField::kLimit,
                 TooLarge("limit", std::to_string(spec.limit), std::to_string(Quota::kMaxHolds)) +
                     " for concurrency, which remembers every hold"};
  }
  if (spec.burst == 0) {
    spec.burst = spec.limit;
  }
  if (MaybeFault fault = CheckForeignFields(spec)) {
    return fault;
  }
  if (spec.algorithm != Algorithm::kCalendar) {
    if (MaybeFault fault = CheckWindow(spec)) {
      return fault;
    }
  }
  if (MaybeFault fault = CheckSlices(spec)) {
    return fault;
  }
  if (MaybeFault fault = CheckBurst(spec)) {
    return fault;
  }
  if (MaybeFault fault = CheckUndelayed(spec)) {
    return fault;
  }
  if (spec.algorithm == Algorithm::kCalendar) {
    const auto zone = base::TimeZone::Load(spec.time_zone);
    if (!zone) {
      return Fault{QuotaField::kTimeZone, "time_zone: " + zone.error().message};
    }
  }
  return std::nullopt;
}

// A quota that the store could not keep to is none: counters and clocks have room for so much only.
// All of it is about limits that are too large for their window, and named as such.
MaybeFault CheckPlan(const Quota& quota) {
  const auto slot =
      algorithm::NeedsRecord(quota) ? algorithm::SlotKind::kRecord : algorithm::SlotKind::kWide;
  const auto plan = algorithm::Compile(quota, slot);
  if (plan) {
    return std::nullopt;
  }
  return Fault{QuotaField::kLimit, plan.error().message};
}

}  // namespace

std::string_view ToString(Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::kTokenBucket:
      return "token-bucket";
    case Algorithm::kLeakyBucket:
      return "leaky-bucket";
    case Algorithm::kFixedWindow:
      return "fixed-window";
    case Algorithm::kSlidingWindow:
      return "sliding-window";
    case Algorithm::kMinGap:
      return "min-gap";
    case Algorithm::kCalendar:
      return "calendar";
    case Algorithm::kSlidingLog:
      return "sliding-log";
    case Algorithm::kSlicedWindow:
      return "sliced-window";
    case Algorithm::kConcurrency:
      return "concurrency";
  }
  return "unknown";
}

Result<Quota> Quota::Create(QuotaSpec spec) {
  if (MaybeFault fault = Check(spec)) {
    return Error::Invalid(std::move(fault->message));
  }
  Quota quota(std::move(spec));
  if (MaybeFault fault = CheckPlan(quota)) {
    return Error::Invalid(std::move(fault->message));
  }
  return quota;
}

Result<Quota> Quota::Parse(std::string_view text) {
  Result<algorithm::ParsedQuota> parsed = algorithm::ParseQuotaText(text);
  if (!parsed) {
    return parsed.error();
  }
  const auto refuse = [&](const Fault& fault) {
    return algorithm::QuotaTextError(text, parsed->column[static_cast<size_t>(fault.field)],
                                     fault.message);
  };
  if (MaybeFault fault = Check(parsed->spec)) {
    return refuse(*fault);
  }
  Quota quota(std::move(parsed->spec));
  if (MaybeFault fault = CheckPlan(quota)) {
    return refuse(*fault);
  }
  return quota;
}

Result<Quota> Quota::TokenBucket(int64_t limit, Duration window, int64_t burst) {
  return Create(
      {.algorithm = Algorithm::kTokenBucket, .limit = limit, .window = window, .burst = burst});
}

Result<Quota> Quota::LeakyBucket(int64_t limit, Duration window, int64_t burst) {
  return Create(
      {.algorithm = Algorithm::kLeakyBucket, .limit = limit, .window = window, .burst = burst});
}

Result<Quota> Quota::Queue(int64_t limit, Duration window, int64_t burst, int64_t undelayed) {
  if (undelayed < 1) {
    return Error::Invalid(TooSmall("undelayed", std::to_string(undelayed), "1"));
  }
  return Create({.algorithm = Algorithm::kLeakyBucket,
                 .limit = limit,
                 .window = window,
                 .burst = burst,
                 .undelayed = undelayed});
}

Result<Quota> Quota::FixedWindow(int64_t limit, Duration window, WindowStart start) {
  return Create(
      {.algorithm = Algorithm::kFixedWindow, .limit = limit, .window = window, .start = start});
}

Result<Quota> Quota::SlidingWindow(int64_t limit, Duration window) {
  return Create({.algorithm = Algorithm::kSlidingWindow, .limit = limit, .window = window});
}

Result<Quota> Quota::MinGap(Duration gap) {
  return Create({.algorithm = Algorithm::kMinGap, .limit = 1, .window = gap});
}

Result<Quota> Quota::Calendar(int64_t limit, CalendarPeriod period, std::string_view time_zone) {
  return Create({.algorithm = Algorithm::kCalendar,
                 .limit = limit,
                 .period = period,
                 .time_zone = std::string(time_zone)});
}

Result<Quota> Quota::SlidingLog(int64_t limit, Duration window) {
  return Create({.algorithm = Algorithm::kSlidingLog, .limit = limit, .window = window});
}

Result<Quota> Quota::SlicedWindow(int64_t limit, Duration window, int64_t slices) {
  return Create(
      {.algorithm = Algorithm::kSlicedWindow, .limit = limit, .window = window, .slices = slices});
}

Duration Quota::longest_wait() const noexcept {
  if (spec_.undelayed == 0) {
    return Duration::zero();
  }
  const auto waiting = static_cast<uint64_t>(spec_.burst - spec_.undelayed);
  return Duration(static_cast<int64_t>(base::MulDivCeil(
      static_cast<uint64_t>(spec_.window.count()), waiting, static_cast<uint64_t>(spec_.limit))));
}

Result<Quota> Quota::Concurrency(int64_t limit, Duration lease) {
  return Create({.algorithm = Algorithm::kConcurrency, .limit = limit, .window = lease});
}

std::string Quota::ToString() const {
  return algorithm::FormatQuota(spec_);
}

bool operator==(const Quota& a, const Quota& b) noexcept {
  return a.spec_.algorithm == b.spec_.algorithm && a.spec_.limit == b.spec_.limit &&
         a.spec_.window == b.spec_.window && a.spec_.burst == b.spec_.burst &&
         a.spec_.start == b.spec_.start && a.spec_.period == b.spec_.period &&
         a.spec_.time_zone == b.spec_.time_zone && a.spec_.slices == b.spec_.slices &&
         a.spec_.undelayed == b.spec_.undelayed;
}

}  // namespace weir
