#include "algorithm/calendar.h"

#include <chrono>
#include <limits>

namespace weir::algorithm {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kDaySeconds = 86'400;
constexpr int64_t kFirstMonday = -3;  // 1969-12-29, of the week that holds 1970-01-01

// REQUIRES: divisor > 0.
constexpr int64_t FloorDiv(int64_t dividend, int64_t divisor) noexcept {
  const int64_t quotient = dividend / divisor;
  return dividend % divisor < 0 ? quotient - 1 : quotient;
}

int64_t SaturatedNs(int64_t seconds) noexcept {
  using Limits = std::numeric_limits<int64_t>;
  if (seconds > Limits::max() / kSecondNs) {
    return Limits::max();
  }
  return seconds < Limits::min() / kSecondNs ? Limits::min() : seconds * kSecondNs;
}

// `day` counts days from 1970-01-01.
int64_t IdOfDay(CalendarPeriod kind, int64_t day) noexcept {
  if (kind == CalendarPeriod::kDay) {
    return day;
  }
  if (kind == CalendarPeriod::kWeek) {
    return FloorDiv(day - kFirstMonday, 7);
  }
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(day))};
  const int64_t years = int{date.year()} - 1970;
  return kind == CalendarPeriod::kYear ? years : years * 12 + unsigned{date.month()} - 1;
}

int64_t FirstDayOf(CalendarPeriod kind, int64_t id) noexcept {
  if (kind == CalendarPeriod::kDay) {
    return id;
  }
  if (kind == CalendarPeriod::kWeek) {
    return id * 7 + kFirstMonday;
  }
  const int64_t months = kind == CalendarPeriod::kYear ? id * 12 : id;
  const int64_t years = FloorDiv(months, 12);
  const std::chrono::year_month_day date{
      std::chrono::year(static_cast<int>(1970 + years)),
      std::chrono::month(static_cast<unsigned>(months - years * 12 + 1)), std::chrono::day(1)};
  return std::chrono::sys_days(date).time_since_epoch().count();
}

}  // namespace

Period PeriodAt(CalendarPeriod kind, const base::TimeZone& zone, int64_t wall_ns) noexcept {
  const int64_t now = FloorDiv(wall_ns, kSecondNs);
  const auto begin_of = [&](int64_t id) { return zone.ToUnix(FirstDayOf(kind, id) * kDaySeconds); };
  // Local time has reached the first midnight of this period, so the period has begun. It may be
  // over already: where clocks went back across midnight, local time lags behind the period.
  int64_t id = IdOfDay(kind, FloorDiv(now + zone.OffsetAt(now), kDaySeconds));
  int64_t end = begin_of(id + 1);
  while (end <= now) {
    ++id;
    end = begin_of(id + 1);
  }
  return {id, SaturatedNs(begin_of(id)), SaturatedNs(end)};
}

}  // namespace weir::algorithm
