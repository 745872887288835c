#include "store/memory/calendar_cache.h"

#include <utility>

namespace weir::store {

CalendarCache::CalendarCache(CalendarPeriod period, std::shared_ptr<const base::TimeZone> zone,
                             const std::atomic<int64_t>& wall_offset_ns)
    : period_(period), zone_(std::move(zone)), wall_offset_ns_(wall_offset_ns) {}

CalendarCache::View CalendarCache::At(uint64_t now_ns) noexcept {
  // Relaxed: the offset stands alone.
  const int64_t wall_ns =
      static_cast<int64_t>(now_ns) + wall_offset_ns_.load(std::memory_order_relaxed);
  const algorithm::Period* period = current_.load(std::memory_order_acquire);
  if (period == nullptr || wall_ns >= period->end_ns) [[unlikely]] {
    period = Advance(wall_ns);
  }
  // Ids count from 1970 and may lie before it; the state keeps them modulo a power of two.
  return {static_cast<uint64_t>(period->id), static_cast<uint64_t>(period->end_ns - wall_ns)};
}

const algorithm::Period* CalendarCache::Advance(int64_t wall_ns) noexcept {
  const base::MutexLock lock(mutex_);
  const algorithm::Period* const current = current_.load(std::memory_order_acquire);
  if (current != nullptr && wall_ns < current->end_ns) {
    return current;
  }
  periods_.push_back(
      std::make_unique<const algorithm::Period>(algorithm::PeriodAt(period_, *zone_, wall_ns)));
  // Release: whoever finds the period finds its bounds. The ones before stay, for those still at
  // them.
  current_.store(periods_.back().get(), std::memory_order_release);
  return periods_.back().get();
}

}  // namespace weir::store
