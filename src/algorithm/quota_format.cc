// A quota and its parts as text.
#include <iterator>
#include <string>

#include "algorithm/quota_text.h"
#include "base/spelling.h"

namespace weir::algorithm {
namespace {

using base::Quoted;

struct FormatUnit {
  uint64_t ns;
  std::string_view one;
  std::string_view many;
};

constexpr FormatUnit kFormatUnits[] = {
    {kWeek, "week", "w"}, {kDay, "day", "d"}, {kHour, "h", "h"}, {kMinute, "min", "min"},
    {kSecond, "s", "s"},  {kMs, "ms", "ms"},  {kUs, "us", "us"}, {1, "ns", "ns"},
};

const FormatUnit& UnitFor(uint64_t ns) noexcept {
  for (const FormatUnit& unit : kFormatUnits) {
    if (ns % unit.ns == 0) {
      return unit;
    }
  }
  return kFormatUnits[std::size(kFormatUnits) - 1];
}

}  // namespace

std::string FormatDuration(Duration duration) {
  if (duration == Duration::zero()) {
    return "0s";
  }
  const auto raw = static_cast<uint64_t>(duration.count());
  const uint64_t ns = duration < Duration::zero() ? 0 - raw : raw;
  const FormatUnit& unit = UnitFor(ns);
  return (duration < Duration::zero() ? "-" : "") + std::to_string(ns / unit.ns) +
         std::string(unit.many);
}

std::string FormatQuota(const QuotaSpec& spec) {
  if (spec.algorithm == Algorithm::kMinGap) {
    return "gap " + FormatDuration(spec.window);
  }
  if (spec.algorithm == Algorithm::kConcurrency) {
    return "concurrency " + std::to_string(spec.limit) + " lease " + FormatDuration(spec.window);
  }
  std::string out = std::to_string(spec.limit) + "/";
  if (spec.algorithm == Algorithm::kCalendar) {
    out += NameOf(spec.period);
    if (spec.period == CalendarPeriod::kDay || spec.period == CalendarPeriod::kWeek) {
      out += " calendar";
    }
    return spec.time_zone == "UTC" ? out : out + " in " + spec.time_zone;
  }
  const auto ns = static_cast<uint64_t>(spec.window.count());
  const FormatUnit& unit = UnitFor(ns);
  out += ns == unit.ns ? std::string(unit.one) : FormatDuration(spec.window);
  const bool has_burst = spec.burst != spec.limit;
  if (has_burst) {
    out += " burst " + std::to_string(spec.burst);
  }
  const bool is_implied = spec.algorithm == Algorithm::kSlidingWindow ||
                          (spec.algorithm == Algorithm::kTokenBucket && has_burst) ||
                          spec.undelayed != 0;
  if (!is_implied) {
    out += " ";
    out += ToString(spec.algorithm);
  }
  if (spec.algorithm == Algorithm::kSlicedWindow) {
    out += " slices " + std::to_string(spec.slices);
  }
  if (spec.undelayed != 0) {
    out += spec.undelayed == 1 ? " queue" : " queue after " + std::to_string(spec.undelayed);
  }
  if (spec.start != WindowStart::kEpoch) {
    out += " from ";
    out += NameOf(spec.start);
  }
  return out;
}

std::string_view NameOf(WindowStart start) noexcept {
  switch (start) {
    case WindowStart::kEpoch:
      return "epoch";
    case WindowStart::kFirstHit:
      return "first-hit";
    case WindowStart::kPerKey:
      return "per-key";
  }
  return "unknown";
}

std::string_view NameOf(CalendarPeriod period) noexcept {
  switch (period) {
    case CalendarPeriod::kDay:
      return "day";
    case CalendarPeriod::kWeek:
      return "week";
    case CalendarPeriod::kMonth:
      return "month";
    case CalendarPeriod::kYear:
      return "year";
  }
  return "unknown";
}

Error QuotaTextError(std::string_view text, size_t column, std::string_view message) {
  const size_t shown = text.size() > kMaxQuotaTextBytes ? 80 : kMaxQuotaTextBytes;
  return Error::Invalid("quota " + Quoted(text, shown) + ", column " + std::to_string(column) +
                        ": " + std::string(message));
}

std::string TooSmall(std::string_view field, std::string_view found, std::string_view least) {
  return std::string(field) + ": " + std::string(found) + " is not allowed; the least is " +
         std::string(least);
}

std::string TooLarge(std::string_view field, std::string_view found, std::string_view most) {
  return std::string(field) + ": " + std::string(found) + " is not allowed; the most is " +
         std::string(most);
}

}  // namespace weir::algorithm
