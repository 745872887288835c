// Calendar periods of a time zone: the day, ISO week, month or year that holds an instant.
//
// A period begins at the first instant whose local time has reached the period's first midnight,
// and ends where the next one begins. So periods tile time exactly, whatever the zone does: a day
// lasts 23 or 25 hours where clocks change, a midnight that clocks skip becomes the end of the
// skip, and an hour that is lived twice across midnight belongs to the new day both times.
#pragma once

#include <cstdint>

#include "weir/quota.h"

#include "base/time_zone.h"

namespace weir::algorithm {

struct Period {
  // Counts periods of this kind; 0 holds the zone's 1970-01-01. The next period has the next id,
  // unless the zone skipped a whole day (Apia had no 2011-12-30): then that day's id is not used.
  int64_t id = 0;
  int64_t begin_ns = 0;  // Unix time
  int64_t end_ns = 0;    // one past the last; equal to begin_ns of the period that follows
};

// Bounds beyond what int64_t nanoseconds can say (years 1677 to 2262) are cut to its ends.
[[nodiscard]] Period PeriodAt(CalendarPeriod kind, const base::TimeZone& zone,
                              int64_t wall_ns) noexcept;

}  // namespace weir::algorithm
