// The units of Envoy's limits. Numbers as in RateLimitResponse.RateLimit.Unit, WEEK last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::envoy {

enum class Unit : uint8_t { kUnknown, kSecond, kMinute, kHour, kDay, kMonth, kYear, kWeek };

inline constexpr size_t kUnits = 8;

// 0 for kUnknown and for numbers that are none of these. A month is 30 days, a year 365, all of
// them counted from the epoch.
[[nodiscard]] int64_t SecondsOf(Unit unit) noexcept;

[[nodiscard]] std::string_view ToString(Unit unit) noexcept;  // SECOND, UNKNOWN

// In any case; UNKNOWN is a name too.
[[nodiscard]] std::optional<Unit> ParseUnit(std::string_view text) noexcept;

}  // namespace weir::envoy
