// A Quota says how much, how fast, with what burst, counted how. It cannot be built invalid.
//
//   auto a = weir::Quota::Parse("100/min");                // sliding counter
//   auto b = weir::Quota::Parse("5000/h burst 20");        // token bucket
//   auto c = weir::Quota::Parse("1000000/month");          // calendar quota, UTC
//   auto d = weir::Quota::TokenBucket(10, std::chrono::seconds(1), 20);
//   auto e = weir::Quota::MinGap(std::chrono::seconds(2));
//   auto f = weir::Quota::Parse("10/s burst 21 queue");    // leaky bucket that delays
//
// Every factory returns Result<Quota>; the error names the field, what was found and the nearest
// value that is allowed. What each algorithm admits is stated in docs/reference/algorithms.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/result.h"
#include "weir/time.h"

namespace weir {

enum class Algorithm : uint8_t {
  kTokenBucket,    // GCRA: continuous refill, burst on top
  kLeakyBucket,    // the same law seen as a level that drains: a meter, or a queue that delays
  kFixedWindow,    // a counter per window
  kSlidingWindow,  // two counters, the older one weighted
  kMinGap,         // a least distance between two requests
  kCalendar,       // a counter per day, week, month or year of a time zone
  kSlidingLog,     // every unit's stamp: exact over any window
  kSlicedWindow,   // a counter per slice of the window
  kConcurrency,    // what is held at the same time; a hold ends by release or lease
};

[[nodiscard]] std::string_view ToString(Algorithm algorithm) noexcept;

// Where a fixed window begins.
enum class WindowStart : uint8_t {
  kEpoch,     // multiples of the window since 1970-01-01T00:00:00Z
  kFirstHit,  // the first charge of a key opens its window
  kPerKey,    // as kEpoch, shifted by a keyed hash of the key so that keys do not reset together
};

enum class CalendarPeriod : uint8_t { kDay, kWeek, kMonth, kYear };

// The raw fields, for building a quota from configuration. Quota::Create checks them.
struct QuotaSpec {
  Algorithm algorithm = Algorithm::kSlidingWindow;
  int64_t limit = 0;
  Duration window{};  // the gap for kMinGap, the lease for kConcurrency; unused for kCalendar
  int64_t burst = 0;  // buckets only; 0 means the limit
  WindowStart start = WindowStart::kEpoch;
  CalendarPeriod period = CalendarPeriod::kMonth;
  std::string time_zone = "UTC";  // calendar only; a name of the system's zone database
  int64_t slices = 0;             // sliced window only: how many make up the window
  // Leaky bucket only. 0: a meter, which delays nothing. Otherwise a queue: this many units start
  // at once, and what is charged beyond them is told when to start, a unit every window/limit.
  int64_t undelayed = 0;
};

class Quota {
 public:
  static constexpr int64_t kMaxLimit = 4294967295;  // 2^32 - 1, also the largest burst
  static constexpr int64_t kMaxLogLimit = 65536;    // a sliding log keeps a stamp for each unit
  static constexpr int64_t kMaxSlices = 1024;
  static constexpr int64_t kMaxHolds = 65535;  // a hold is remembered by itself
  static constexpr Duration kMinWindow = std::chrono::microseconds(1);
  static constexpr Duration kMaxWindow = std::chrono::hours(24 * 3653);  // ten years
  // A lease is for how long what a crashed holder had is lost; a live one renews it.
  static constexpr Duration kMaxLease = std::chrono::hours(24 * 366);
  static constexpr Duration kMaxHorizon = std::chrono::hours(24 * 36525);  // a hundred years

  static Result<Quota> Create(QuotaSpec spec);

  // `<limit>/<window> [burst <n>] [<algorithm>] [<option>...]`, or `gap <duration>`, or
  // `concurrency <limit> lease <duration>`.
  // Without an algorithm: a burst makes it a token bucket, month and year make it a calendar
  // quota, anything else is a sliding counter. The whole grammar: docs/reference/quota.md.
  static Result<Quota> Parse(std::string_view text);

  static Result<Quota> TokenBucket(int64_t limit, Duration window, int64_t burst = 0);
  static Result<Quota> LeakyBucket(int64_t limit, Duration window, int64_t burst = 0);
  // A leaky bucket as a queue: `undelayed` units start at once, up to `burst` less these wait, and
  // what would be one too many is denied. Decision::start_after says when to start.
  static Result<Quota> Queue(int64_t limit, Duration window, int64_t burst = 0,
                             int64_t undelayed = 1);
  static Result<Quota> FixedWindow(int64_t limit, Duration window,
                                   WindowStart start = WindowStart::kEpoch);
  static Result<Quota> SlidingWindow(int64_t limit, Duration window);
  static Result<Quota> MinGap(Duration gap);
  static Result<Quota> Calendar(int64_t limit, CalendarPeriod period,
                                std::string_view time_zone = "UTC");
  static Result<Quota> SlidingLog(int64_t limit, Duration window);
  // REQUIRES: the window is a whole number of slices of at least a microsecond.
  static Result<Quota> SlicedWindow(int64_t limit, Duration window, int64_t slices);
  // At most `limit` units held at the same time; see hold.h. A lease is at most kMaxLease.
  static Result<Quota> Concurrency(int64_t limit, Duration lease);

  [[nodiscard]] Algorithm algorithm() const noexcept { return spec_.algorithm; }
  [[nodiscard]] uint32_t limit() const noexcept { return static_cast<uint32_t>(spec_.limit); }
  [[nodiscard]] Duration window() const noexcept { return spec_.window; }
  // The most units at once on a fresh key.
  [[nodiscard]] uint32_t burst() const noexcept { return static_cast<uint32_t>(spec_.burst); }
  [[nodiscard]] WindowStart start() const noexcept { return spec_.start; }
  [[nodiscard]] CalendarPeriod period() const noexcept { return spec_.period; }
  [[nodiscard]] uint32_t slices() const noexcept { return static_cast<uint32_t>(spec_.slices); }
  // 0 unless the quota is a queue.
  [[nodiscard]] uint32_t undelayed() const noexcept {
    return static_cast<uint32_t>(spec_.undelayed);
  }
  // The longest that anything admitted waits: (burst - undelayed) * window / limit, rounded up; 0
  // unless the quota is a queue.
  [[nodiscard]] Duration longest_wait() const noexcept;
  [[nodiscard]] const std::string& time_zone() const noexcept { return spec_.time_zone; }

  // Text that Parse reads back to an equal quota.
  [[nodiscard]] std::string ToString() const;

  friend bool operator==(const Quota& a, const Quota& b) noexcept;

 private:
  explicit Quota(QuotaSpec spec) : spec_(std::move(spec)) {}

  QuotaSpec spec_;
};

}  // namespace weir
