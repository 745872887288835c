// What weir adds to a rate_limit of a file: algorithm, window, calendar, burst, tiers, overrides.
#pragma once

#include <string_view>

#include "weir/result.h"

#include "envoy/descriptor_file.h"
#include "envoy/limit_rule.h"

namespace weir::envoy {

// Whether the limit says for how long it is in another way than by its unit.
[[nodiscard]] bool HasOwnWindow(const FileRateLimit& limit) noexcept;

// Fills in all, tiers, overrides, tier_key and count_refused. REQUIRES: rule.unit.
[[nodiscard]] Result<void> ReadVariants(const FileRateLimit& limit, LimitRule& rule);

}  // namespace weir::envoy
