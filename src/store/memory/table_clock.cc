#include "store/memory/table_clock.h"

#include <algorithm>

namespace weir::store {

namespace {

// The clock is read again about four times a second, whoever comes first.
constexpr uint64_t kRefreshNs = 250'000'000;

}  // namespace

TableClock::TableClock(const Clock& source, Duration max_skew) noexcept
    : source_(source),
      max_skew_ns_(static_cast<uint64_t>(max_skew.count())),
      accepted_span_ns_(max_skew_ns_ + std::min(kRefreshNs, max_skew_ns_)),
      origin_ns_(static_cast<uint64_t>(source.Now().time_since_epoch().count()) - kStartNs),
      floor_ns_(kStartNs - max_skew_ns_) {}

}  // namespace weir::store
