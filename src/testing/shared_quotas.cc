// Random quotas for script_trace.h.
#include <algorithm>

#include "store/redis/shared_plan.h"
#include "testing/script_trace.h"
#include "testing/twin.h"

namespace weir::testing {

namespace {

Duration WholeUs(Duration window, int64_t parts = 1) {
  const int64_t unit = 1000 * parts;
  return Duration(std::max<int64_t>(1, window.count() / unit) * unit);
}

// The same quota on whole microseconds.
Quota Rounded(const Quota& quota) {
  switch (quota.algorithm()) {
    case Algorithm::kFixedWindow:
      return *Quota::FixedWindow(quota.limit(), WholeUs(quota.window()), quota.start());
    case Algorithm::kSlidingWindow: {
      const auto rounded = Quota::SlidingWindow(quota.limit(), WholeUs(quota.window()));
      return script::SharedPlan::Compile(*rounded).ok()
                 ? *rounded
                 : *Quota::SlidingWindow(quota.limit(), std::chrono::seconds(1));
    }
    case Algorithm::kSlidingLog:
      return *Quota::SlidingLog(quota.limit(), WholeUs(quota.window()));
    case Algorithm::kSlicedWindow:
      return *Quota::SlicedWindow(quota.limit(),
                                  WholeUs(quota.window(), static_cast<int64_t>(quota.slices())),
                                  quota.slices());
    case Algorithm::kMinGap:
      return *Quota::MinGap(WholeUs(quota.window()));
    default:
      return quota;
  }
}

Quota RandomQueue(Random& random) {
  const Quota bucket = random.OneIn(2) ? RandomBucket(random) : RandomOddBucket(random);
  return *Quota::Queue(bucket.limit(), bucket.window(), bucket.burst(),
                       static_cast<int64_t>(random.Between(1, bucket.burst())));
}

Quota RandomConcurrency(Random& random) {
  const auto limit =
      static_cast<int64_t>(random.OneIn(2) ? random.Between(1, 5) : random.Scaled(1, 200));
  return *Quota::Concurrency(limit,
                             std::chrono::microseconds(random.Scaled(1, uint64_t{3'600'000'000})));
}

bool IsWholeUs(const Quota& quota) {
  return quota.window().count() % (int64_t{1000} * int64_t{quota.limit()}) == 0;
}

}  // namespace

Quota RandomShared(Random& random) {
  switch (random.Below(9)) {
    case 0:
      return RandomBucket(random);
    case 1:
      return RandomOddBucket(random);
    case 2:
      return RandomQueue(random);
    case 3:
      return Rounded(RandomGap(random));
    case 4:
      return RandomCalendar(random);
    case 5:
    case 6:
      return Rounded(RandomRecord(random));
    case 7:
      return RandomConcurrency(random);
    default:
      return Rounded(RandomWindow(random));
  }
}

Quota RandomComparable(Random& random) {
  for (;;) {
    const Quota quota = RandomShared(random);
    switch (quota.algorithm()) {
      case Algorithm::kTokenBucket:
      case Algorithm::kLeakyBucket:
        if (IsWholeUs(quota) && IsExact(quota)) {
          return quota;
        }
        break;
      case Algorithm::kFixedWindow:
        if (quota.start() == WindowStart::kEpoch ||
            (quota.start() == WindowStart::kFirstHit && TickOf(quota) == Duration(1))) {
          return quota;
        }
        break;
      case Algorithm::kConcurrency:
        break;  // hold_scripts_test
      default:
        return quota;
    }
  }
}

Quota RandomQuick(Random& random) {
  const auto limit = static_cast<int64_t>(random.Between(1, 50));
  const auto interval = std::chrono::microseconds(random.Scaled(1, 200));
  const Duration window = interval * limit;
  const auto odd = window + Duration(static_cast<int64_t>(random.Below(1000)));
  switch (random.Below(8)) {
    case 0:
      return *Quota::TokenBucket(limit, window, static_cast<int64_t>(random.Between(1, 100)));
    case 1:
      return *Quota::TokenBucket(limit, odd, static_cast<int64_t>(random.Between(1, 100)));
    case 2:
      return *Quota::Queue(limit, window, limit + 5, 1);
    case 3:
      return *Quota::MinGap(interval);
    case 4:
      return *Quota::FixedWindow(limit, window, static_cast<WindowStart>(random.Below(3)));
    case 5:
      return *Quota::SlidingWindow(limit, window);
    case 6:
      return random.OneIn(2) ? *Quota::SlicedWindow(limit, interval * 6, 6)
                             : *Quota::SlidingLog(limit, window);
    default:
      return *Quota::Concurrency(limit, window);
  }
}

}  // namespace weir::testing
