// Any bytes are refused or become a zone whose offsets stay in range, whose ToUnix is the earliest
// instant that reaches a local time, and whose calendar periods tile.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "weir/quota.h"

#include "algorithm/calendar.h"
#include "base/time_zone.h"
#include "fuzz/require.h"

using weir::fuzz::Require;

namespace {

using weir::base::TimeZone;

void CheckAt(const TimeZone& zone, int64_t local) {
  const int64_t reached = zone.ToUnix(local);
  Require(std::abs(zone.OffsetAt(reached)) <= TimeZone::kMaxOffsetSeconds);
  Require(reached + zone.OffsetAt(reached) >= local);
  Require(reached - 1 + zone.OffsetAt(reached - 1) < local);
  Require(zone.ToUnix(local + 1) >= reached);
}

void CheckPeriods(const TimeZone& zone, int64_t wall_ns) {
  for (const auto kind : {weir::CalendarPeriod::kDay, weir::CalendarPeriod::kWeek,
                          weir::CalendarPeriod::kMonth, weir::CalendarPeriod::kYear}) {
    const auto period = weir::algorithm::PeriodAt(kind, zone, wall_ns);
    Require(period.begin_ns <= wall_ns && wall_ns < period.end_ns);
    const auto next = weir::algorithm::PeriodAt(kind, zone, period.end_ns);
    Require(next.begin_ns == period.end_ns && next.id > period.id);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto zone = TimeZone::FromBytes(std::span(reinterpret_cast<const char*>(data), size));
  if (!zone) {
    Require(!zone.error().message.empty());
    return 0;
  }
  constexpr std::array<int64_t, 8> kLocals = {
      -4'000'000'000, -1, 0, 1, 951'782'400, 1'325'203'200, 2'145'916'800, 7'000'000'000};
  for (const int64_t local : kLocals) {
    CheckAt(**zone, local);
    CheckPeriods(**zone, local * 1'000'000'000);
  }
  Require(std::abs((*zone)->OffsetAt(INT64_MAX)) <= TimeZone::kMaxOffsetSeconds);
  Require(std::abs((*zone)->OffsetAt(INT64_MIN)) <= TimeZone::kMaxOffsetSeconds);
  (void)(*zone)->ToUnix(INT64_MAX);
  (void)(*zone)->ToUnix(INT64_MIN);
  return 0;
}
