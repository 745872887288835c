#include "algorithm/calendar.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "weir/quota.h"

#include "base/time_zone.h"

namespace weir::algorithm {
namespace {

using base::TimeZone;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kHourNs = 3600 * kSecondNs;
constexpr int64_t kDayNs = 24 * kHourNs;
constexpr int64_t kDaySeconds = 86'400;
constexpr std::array kKinds = {CalendarPeriod::kDay, CalendarPeriod::kWeek, CalendarPeriod::kMonth,
                               CalendarPeriod::kYear};

std::shared_ptr<const TimeZone> Zone(std::string_view name) {
  auto zone = TimeZone::Load(name);
  EXPECT_TRUE(zone.ok()) << (zone ? "" : zone.error().message);
  return zone ? *zone : nullptr;
}

// UTC, in nanoseconds.
int64_t At(int year, unsigned month, unsigned day, int64_t hour = 0, int64_t minute = 0) {
  const std::chrono::sys_days days =
      std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day);
  return int64_t{days.time_since_epoch().count()} * kDayNs + hour * kHourNs +
         minute * 60 * kSecondNs;
}

// A number that grows by one a period, from the local civil time of an instant alone.
int64_t LocalNumber(CalendarPeriod kind, const TimeZone& zone, int64_t unix_seconds) {
  const std::chrono::sys_seconds local{
      std::chrono::seconds(unix_seconds + zone.OffsetAt(unix_seconds))};
  const auto day = std::chrono::floor<std::chrono::days>(local);
  const std::chrono::year_month_day date(day);
  switch (kind) {
    case CalendarPeriod::kDay:
      return day.time_since_epoch().count();
    case CalendarPeriod::kWeek: {
      const auto monday = day - (std::chrono::weekday(day) - std::chrono::Monday);
      return (monday.time_since_epoch().count() + 3) / 7;
    }
    case CalendarPeriod::kMonth:
      return int64_t{int{date.year()} - 1970} * 12 + unsigned{date.month()} - 1;
    case CalendarPeriod::kYear:
      return int{date.year()} - 1970;
  }
  return 0;
}

TEST(Calendar, ADayInUtcIsADay) {
  const auto utc = Zone("UTC");
  const Period day = PeriodAt(CalendarPeriod::kDay, *utc, At(2024, 2, 29, 13, 5) + 7);
  EXPECT_EQ(day.begin_ns, At(2024, 2, 29));
  EXPECT_EQ(day.end_ns, At(2024, 3, 1));
  EXPECT_EQ(day.id, At(2024, 2, 29) / kDayNs);
}

TEST(Calendar, MonthsHaveTheirRealLengths) {
  const auto utc = Zone("UTC");
  const std::array<int64_t, 12> days = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  for (unsigned month = 1; month <= 12; ++month) {
    const Period period = PeriodAt(CalendarPeriod::kMonth, *utc, At(2024, month, 28, 23));
    EXPECT_EQ(period.begin_ns, At(2024, month, 1));
    EXPECT_EQ(period.end_ns - period.begin_ns, days[month - 1] * kDayNs);
    EXPECT_EQ(period.id, int64_t{54} * 12 + month - 1);
  }
  const Period february = PeriodAt(CalendarPeriod::kMonth, *utc, At(2100, 2, 1));
  EXPECT_EQ(february.end_ns - february.begin_ns, 28 * kDayNs);
}

TEST(Calendar, AWeekBeginsOnMonday) {
  const auto utc = Zone("UTC");
  const Period week = PeriodAt(CalendarPeriod::kWeek, *utc, At(2026, 1, 4, 23, 59));  // a Sunday
  EXPECT_EQ(week.begin_ns, At(2025, 12, 29));
  EXPECT_EQ(week.end_ns, At(2026, 1, 5));
  EXPECT_EQ(PeriodAt(CalendarPeriod::kWeek, *utc, At(2026, 1, 5)).begin_ns, At(2026, 1, 5));
}

TEST(Calendar, AYearBeginsAtTheZonesOwnNewYear) {
  const auto berlin = Zone("Europe/Berlin");
  const Period year = PeriodAt(CalendarPeriod::kYear, *berlin, At(2024, 12, 31, 23));
  EXPECT_EQ(year.id, 55);  // 2025 already
  EXPECT_EQ(year.begin_ns, At(2024, 12, 31, 23));
  EXPECT_EQ(year.end_ns, At(2025, 12, 31, 23));
  EXPECT_EQ(PeriodAt(CalendarPeriod::kYear, *berlin, At(2024, 12, 31, 23) - 1).id, 54);
}

TEST(Calendar, TheDayClocksGoForwardHas23Hours) {
  const Period day = PeriodAt(CalendarPeriod::kDay, *Zone("Europe/Berlin"), At(2024, 3, 31, 12));
  EXPECT_EQ(day.begin_ns, At(2024, 3, 30, 23));
  EXPECT_EQ(day.end_ns - day.begin_ns, 23 * kHourNs);
}

TEST(Calendar, TheDayClocksGoBackHas25Hours) {
  const Period day = PeriodAt(CalendarPeriod::kDay, *Zone("America/New_York"), At(2024, 11, 3, 12));
  EXPECT_EQ(day.begin_ns, At(2024, 11, 3, 4));
  EXPECT_EQ(day.end_ns - day.begin_ns, 25 * kHourNs);
}

TEST(Calendar, LordHoweChangesByHalfAnHour) {
  const auto zone = Zone("Australia/Lord_Howe");
  const Period shorter = PeriodAt(CalendarPeriod::kDay, *zone, At(2024, 10, 6, 6));
  EXPECT_EQ(shorter.end_ns - shorter.begin_ns, 23 * kHourNs + kHourNs / 2);
  const Period longer = PeriodAt(CalendarPeriod::kDay, *zone, At(2024, 4, 7, 6));
  EXPECT_EQ(longer.end_ns - longer.begin_ns, kDayNs + kHourNs / 2);
}

TEST(Calendar, ADayWhoseMidnightIsSkippedBeginsWhereTheGapEnds) {
  const Period day =
      PeriodAt(CalendarPeriod::kDay, *Zone("America/Sao_Paulo"), At(2018, 11, 4, 12));
  EXPECT_EQ(day.begin_ns, At(2018, 11, 4, 3));
  EXPECT_EQ(day.end_ns - day.begin_ns, 23 * kHourNs);
}

TEST(Calendar, AnHourLivedTwiceAcrossMidnightStaysInTheNewDay) {
  // St. John's went from 00:01 on 2010-11-07 back to 23:01 on the day before.
  const auto zone = Zone("America/St_Johns");
  const int64_t midnight = At(2010, 11, 7, 2, 30);
  const Period day = PeriodAt(CalendarPeriod::kDay, *zone, midnight);
  EXPECT_EQ(day.begin_ns, midnight);
  EXPECT_EQ(day.end_ns - day.begin_ns, 25 * kHourNs);
  const Period later = PeriodAt(CalendarPeriod::kDay, *zone, midnight + kHourNs / 2);
  EXPECT_EQ(later.id, day.id);
  EXPECT_EQ(later.begin_ns, day.begin_ns);
}

TEST(Calendar, ApiaHasNo30December2011) {
  const auto apia = Zone("Pacific/Apia");
  const int64_t change = At(2011, 12, 30, 10);
  const Period before = PeriodAt(CalendarPeriod::kDay, *apia, change - 1);
  const Period after = PeriodAt(CalendarPeriod::kDay, *apia, change);
  EXPECT_EQ(before.end_ns, change);
  EXPECT_EQ(before.end_ns - before.begin_ns, kDayNs);
  EXPECT_EQ(after.begin_ns, change);
  EXPECT_EQ(after.end_ns - after.begin_ns, kDayNs);
  EXPECT_EQ(after.id, before.id + 2);
  const Period week = PeriodAt(CalendarPeriod::kWeek, *apia, change);
  EXPECT_EQ(week.end_ns - week.begin_ns, 6 * kDayNs);
  EXPECT_EQ(PeriodAt(CalendarPeriod::kMonth, *apia, change).id, int64_t{41} * 12 + 11);
}

constexpr std::array kZones = {
    "UTC",          "America/New_York",  "Europe/Berlin",     "Australia/Lord_Howe",
    "Pacific/Apia", "America/Sao_Paulo", "Africa/Casablanca", "Asia/Kathmandu",
    "Asia/Gaza",    "America/St_Johns",  "Pacific/Kwajalein", "Europe/Dublin"};

TEST(Calendar, PeriodsTileTime) {
  for (const std::string name : kZones) {
    const auto zone = Zone(name);
    for (const CalendarPeriod kind : kKinds) {
      Period period = PeriodAt(kind, *zone, At(1920, 5, 5, 5));
      const int64_t until = kind == CalendarPeriod::kDay ? At(2060, 1, 1) : At(2250, 1, 1);
      int64_t skipped = 0;
      while (period.end_ns < until) {
        ASSERT_LT(period.begin_ns, period.end_ns);
        const Period last = PeriodAt(kind, *zone, period.end_ns - 1);
        ASSERT_EQ(last.id, period.id) << name;
        ASSERT_EQ(last.begin_ns, period.begin_ns);
        ASSERT_EQ(last.end_ns, period.end_ns);
        const Period next = PeriodAt(kind, *zone, period.end_ns);
        ASSERT_EQ(next.begin_ns, period.end_ns) << name;
        ASSERT_GT(next.id, period.id) << name;
        skipped += next.id - period.id - 1;
        period = next;
      }
      const bool skips_a_day = name == "Pacific/Apia" || name == "Pacific/Kwajalein";
      EXPECT_EQ(skipped, kind == CalendarPeriod::kDay && skips_a_day ? 1 : 0) << name;
    }
  }
}

// The slow way: an instant belongs to the highest period that local time has reached so far.
TEST(Calendar, AgreesWithWalkingThroughTimeMinuteByMinute) {
  std::mt19937_64 random(42);
  std::uniform_int_distribution<int64_t> seconds(At(1975, 1, 1) / kSecondNs,
                                                 At(2100, 1, 1) / kSecondNs);
  constexpr int64_t kStep = 60;
  constexpr int64_t kLag = int64_t{27} * 3600;  // no clock was ever set back further
  for (const std::string name : kZones) {
    const auto zone = Zone(name);
    for (int i = 0; i < 60; ++i) {
      // Half of the walks cross a change of offset.
      int64_t begin = seconds(random) / kStep * kStep;
      for (int day = 0; i % 2 != 0 && day < 400; ++day) {
        if (zone->OffsetAt(begin + kLag) != zone->OffsetAt(begin + kLag + kDaySeconds)) {
          break;
        }
        begin += kDaySeconds;
      }
      for (const CalendarPeriod kind : kKinds) {
        int64_t reached = std::numeric_limits<int64_t>::min();
        int64_t began = 0;
        for (int64_t now = begin; now < begin + kLag + 2 * kDaySeconds; now += kStep) {
          const int64_t number = LocalNumber(kind, *zone, now);
          if (number > reached) {
            reached = number;
            began = now;
          }
          if (now < begin + kLag || (now / kStep) % 17 != 0) {
            continue;
          }
          const Period period = PeriodAt(kind, *zone, now * kSecondNs + 999'999'999);
          ASSERT_EQ(period.id, reached) << name << " " << now;
          if (began > begin) {
            ASSERT_EQ(period.begin_ns, began * kSecondNs) << name << " " << now;
          } else {
            ASSERT_LE(period.begin_ns, began * kSecondNs) << name << " " << now;
          }
          ASSERT_GT(period.end_ns, now * kSecondNs);
        }
      }
    }
  }
}

TEST(Calendar, IdsNeverFallAsTimePasses) {
  std::mt19937_64 random(3);
  std::uniform_int_distribution<int64_t> anywhere(At(1680, 1, 1), At(2261, 1, 1));
  std::uniform_int_distribution<int64_t> steps(0, 40 * kDayNs);
  for (const std::string name : kZones) {
    const auto zone = Zone(name);
    for (int i = 0; i < 2000; ++i) {
      const int64_t earlier = anywhere(random);
      const int64_t later = earlier + steps(random);
      for (const CalendarPeriod kind : kKinds) {
        const Period a = PeriodAt(kind, *zone, earlier);
        const Period b = PeriodAt(kind, *zone, later);
        ASSERT_LE(a.id, b.id) << name;
        ASSERT_EQ(a.id == b.id, later < a.end_ns) << name;
        ASSERT_LE(a.begin_ns, earlier) << name;
      }
    }
  }
}

TEST(Calendar, TheEndsOfTimeAreCutAndDoNotOverflow) {
  using Limits = std::numeric_limits<int64_t>;
  for (const std::string name : kZones) {
    const auto zone = Zone(name);
    for (const CalendarPeriod kind : kKinds) {
      const Period first = PeriodAt(kind, *zone, Limits::min());
      EXPECT_EQ(first.begin_ns, Limits::min());
      EXPECT_GT(first.end_ns, first.begin_ns);
      const Period last = PeriodAt(kind, *zone, Limits::max());
      EXPECT_EQ(last.end_ns, Limits::max());
      EXPECT_LT(last.begin_ns, last.end_ns);
    }
  }
}

}  // namespace
}  // namespace weir::algorithm
