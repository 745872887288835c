#include "testing/oracle.h"

#include <chrono>
#include <cstdlib>
#include <ctime>

namespace weir::testing {

namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kDayNs = 86'400 * kSecondNs;
constexpr Int128 kMillion = 1'000'000;

int64_t FloorDiv(int64_t a, int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

// How far local time is ahead of UTC. Sets TZ for the whole program: for tests of one thread.
int64_t UtcOffsetNs(const std::string& zone, int64_t now) {
  if (zone == "UTC") {
    return 0;
  }
  static std::string current;
  if (zone != current) {
    ::setenv("TZ", zone.c_str(), 1);
    ::tzset();
    current = zone;
  }
  const time_t seconds = FloorDiv(now, kSecondNs);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return int64_t{local.tm_gmtoff} * kSecondNs;
}

}  // namespace

size_t Oracle::Charge(int64_t now, uint64_t cost) {
  charges_.push_back({now, cost});
  return charges_.size() - 1;
}

uint64_t Oracle::Remaining(int64_t now, uint64_t most) const {
  uint64_t fits = 0;
  uint64_t too_much = most + 1;
  while (too_much - fits > 1) {
    const uint64_t middle = fits + (too_much - fits) / 2;
    (Fits(now, middle) ? fits : too_much) = middle;
  }
  return fits;
}

bool BucketOracle::Within(int64_t now, uint64_t cost, uint64_t burst) const {
  if (cost > burst) {
    return false;
  }
  Int128 sum = cost;
  for (size_t i = charges_.size(); i-- > 0;) {
    const Paid& paid = charges_[i];
    sum += paid.cost;
    // sum <= burst + (now - s) * L / W, multiplied by W.
    if (paid.cost != 0 && (sum - burst) * window_ns_ > Int128{now - paid.at} * limit_) {
      return false;
    }
  }
  return true;
}

bool BucketOracle::Fits(int64_t now, uint64_t cost) const {
  return Within(now, cost, burst_);
}

// Nothing is owed: even a bucket without any burst would have drained.
bool BucketOracle::IsFresh(int64_t now) const {
  return Within(now, 0, 0);
}

bool GapOracle::Fits(int64_t now, uint64_t) const {
  return IsFresh(now);
}

bool GapOracle::IsFresh(int64_t now) const {
  for (const Paid& paid : charges_) {
    if (paid.cost != 0 && now - paid.at < gap_ns_) {
      return false;
    }
  }
  return true;
}

int64_t FixedWindowOracle::BeginOf(int64_t now) const {
  return FloorDiv(now + phase_ns_, window_ns_) * window_ns_ - phase_ns_;
}

uint64_t FixedWindowOracle::Count(int64_t now) const {
  uint64_t sum = 0;
  for (const Paid& paid : charges_) {
    sum += BeginOf(paid.at) == BeginOf(now) ? paid.cost : 0;
  }
  return sum;
}

bool FixedWindowOracle::Fits(int64_t now, uint64_t cost) const {
  return Count(now) + cost <= limit_;
}

bool FixedWindowOracle::IsFresh(int64_t now) const {
  return Count(now) == 0;
}

uint64_t FirstHitOracle::Count(int64_t now) const {
  uint64_t sum = 0;
  int64_t open = 0;
  bool is_open = false;
  for (const Paid& paid : charges_) {
    if (paid.cost == 0) {
      continue;
    }
    if (!is_open || paid.at - open >= window_ns_) {
      open = paid.at;
      is_open = true;
      sum = 0;
    }
    sum += paid.cost;
  }
  return is_open && now - open < window_ns_ ? sum : 0;
}

bool FirstHitOracle::Fits(int64_t now, uint64_t cost) const {
  return Count(now) + cost <= limit_;
}

bool FirstHitOracle::IsFresh(int64_t now) const {
  return Count(now) == 0;
}

SlidingWindowOracle::Counts SlidingWindowOracle::CountsAt(int64_t now) const {
  const int64_t begin = FloorDiv(now, window_ns_) * window_ns_;
  Int128 previous = 0;
  uint64_t current = 0;
  for (const Paid& paid : charges_) {
    if (paid.at >= begin) {
      current += paid.cost;
    } else if (paid.at >= begin - window_ns_) {
      previous += paid.cost;
    }
  }
  const int64_t left = window_ns_ - (now - begin);
  return {static_cast<uint64_t>(previous * left / window_ns_), current};
}

bool SlidingWindowOracle::Fits(int64_t now, uint64_t cost) const {
  const Counts counts = CountsAt(now);
  return counts.weighted + counts.current + cost <= limit_;
}

bool SlidingWindowOracle::IsFresh(int64_t now) const {
  const Counts counts = CountsAt(now);
  return counts.weighted == 0 && counts.current == 0;
}

int64_t CalendarOracle::PeriodOf(int64_t now) const {
  const int64_t day = FloorDiv(now + UtcOffsetNs(zone_, now), kDayNs);
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(day))};
  const int64_t year = int{date.year()};
  switch (period_) {
    case CalendarPeriod::kDay:
      return day;
    case CalendarPeriod::kWeek:
      return FloorDiv(day + 3, 7);  // 1970-01-01 was a Thursday
    case CalendarPeriod::kMonth:
      return year * 12 + static_cast<int64_t>(unsigned{date.month()}) - 1;
    case CalendarPeriod::kYear:
      break;
  }
  return year;
}

size_t CalendarOracle::Charge(int64_t now, uint64_t cost) {
  periods_.push_back(PeriodOf(now));
  return Oracle::Charge(now, cost);
}

uint64_t CalendarOracle::Count(int64_t now) const {
  const int64_t period = PeriodOf(now);
  uint64_t sum = 0;
  for (size_t i = 0; i < charges_.size(); ++i) {
    sum += periods_[i] == period ? charges_[i].cost : 0;
  }
  return sum;
}

bool CalendarOracle::Fits(int64_t now, uint64_t cost) const {
  return Count(now) + cost <= limit_;
}

bool CalendarOracle::IsFresh(int64_t now) const {
  return Count(now) == 0;
}

uint64_t LogOracle::Count(int64_t now) const {
  uint64_t sum = 0;
  for (const Paid& paid : charges_) {
    sum += paid.at > now - window_ns_ ? paid.cost : 0;
  }
  return sum;
}

bool LogOracle::Fits(int64_t now, uint64_t cost) const {
  return Count(now) + cost <= limit_;
}

bool LogOracle::IsFresh(int64_t now) const {
  return Count(now) == 0;
}

uint64_t SlicedOracle::Count(int64_t now) const {
  uint64_t sum = 0;
  for (const Paid& paid : charges_) {
    const int64_t last = (FloorDiv(paid.at, slice_ns_) + 1) * slice_ns_ - 1;  // of its slice
    sum += last > now - window_ns_ ? paid.cost : 0;
  }
  return sum;
}

bool SlicedOracle::Fits(int64_t now, uint64_t cost) const {
  return Count(now) + cost <= limit_;
}

bool SlicedOracle::IsFresh(int64_t now) const {
  return Count(now) == 0;
}

std::unique_ptr<Oracle> MakeOracle(const Quota& quota, int64_t phase_ns) {
  const int64_t window_ns = quota.window().count();
  switch (quota.algorithm()) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      return std::make_unique<BucketOracle>(quota.limit(), window_ns, quota.burst());
    case Algorithm::kMinGap:
      return std::make_unique<GapOracle>(window_ns);
    case Algorithm::kSlidingWindow:
      return std::make_unique<SlidingWindowOracle>(quota.limit(), window_ns);
    case Algorithm::kCalendar:
      return std::make_unique<CalendarOracle>(quota.limit(), quota.period(), quota.time_zone());
    case Algorithm::kSlidingLog:
      return std::make_unique<LogOracle>(quota.limit(), window_ns);
    case Algorithm::kSlicedWindow:
      return std::make_unique<SlicedOracle>(quota.limit(), window_ns, quota.slices());
    case Algorithm::kConcurrency:  // hold_oracle.h
    case Algorithm::kFixedWindow:
      break;
  }
  if (quota.start() == WindowStart::kFirstHit) {
    return std::make_unique<FirstHitOracle>(quota.limit(), window_ns);
  }
  return std::make_unique<FixedWindowOracle>(quota.limit(), window_ns,
                                             quota.start() == WindowStart::kPerKey ? phase_ns : 0);
}

std::unique_ptr<Oracle> MakeSlowerOracle(const Quota& quota) {
  return std::make_unique<BucketOracle>(quota.limit() * kMillion,
                                        quota.window().count() * (kMillion + 1), quota.burst());
}

}  // namespace weir::testing
