// The current period of a calendar quota. Looked up once per period; a decision then compares the
// time with its two ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "weir/quota.h"

#include "algorithm/calendar.h"
#include "base/mutex.h"
#include "base/time_zone.h"

namespace weir::store {

class CalendarCache {
 public:
  struct View {
    uint64_t id;
    uint64_t left_ns;
  };

  // `wall_offset_ns` plus a store time is Unix time; it follows the wall clock and outlives this.
  CalendarCache(CalendarPeriod period, std::shared_ptr<const base::TimeZone> zone,
                const std::atomic<int64_t>& wall_offset_ns);

  // A wall clock that is set back does not reopen a period that has begun: the id never goes back.
  [[nodiscard]] View At(uint64_t now_ns) noexcept;

 private:
  const algorithm::Period* Advance(int64_t wall_ns) noexcept;

  const CalendarPeriod period_;
  const std::shared_ptr<const base::TimeZone> zone_;
  const std::atomic<int64_t>& wall_offset_ns_;
  // Points into periods_; release when set, acquire when read, so the ends are complete.
  std::atomic<const algorithm::Period*> current_{nullptr};
  base::Mutex mutex_;
  // All periods there have been: a reader may still look at an old one. One a day at most.
  std::vector<std::unique_ptr<const algorithm::Period>> periods_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::store
