// The text form of a quota: reading it with good errors, and writing it back.
// The grammar is in docs/reference/quota.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/quota.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir::algorithm {

inline constexpr size_t kMaxQuotaTextBytes = 256;

// Nanoseconds.
inline constexpr int64_t kUs = 1000;
inline constexpr int64_t kMs = 1000 * kUs;
inline constexpr int64_t kSecond = 1000 * kMs;
inline constexpr int64_t kMinute = 60 * kSecond;
inline constexpr int64_t kHour = 60 * kMinute;
inline constexpr int64_t kDay = 24 * kHour;
inline constexpr int64_t kWeek = 7 * kDay;

// The fields of QuotaSpec, for saying which one is wrong.
enum class QuotaField : uint8_t {
  kAlgorithm,
  kLimit,
  kWindow,
  kBurst,
  kStart,
  kPeriod,
  kTimeZone,
  kSlices,
  kUndelayed,
};
inline constexpr size_t kQuotaFields = 9;

struct ParsedQuota {
  QuotaSpec spec;
  // Where each field was written, counted from 1; 1 for a field that was not written.
  std::array<size_t, kQuotaFields> column{};
};

// Reads the text. What it returns still has to pass Quota::Create.
Result<ParsedQuota> ParseQuotaText(std::string_view text);

// REQUIRES: a spec that Quota::Create has accepted.
[[nodiscard]] std::string FormatQuota(const QuotaSpec& spec);

// In the largest unit that divides it: "90min", "2w", "-5s".
[[nodiscard]] std::string FormatDuration(Duration duration);

[[nodiscard]] std::string_view NameOf(WindowStart start) noexcept;
[[nodiscard]] std::string_view NameOf(CalendarPeriod period) noexcept;

// An error in `text` at `column`: both are quoted before the message.
[[nodiscard]] Error QuotaTextError(std::string_view text, size_t column, std::string_view message);

// "limit: 0 is not allowed; the least is 1"
[[nodiscard]] std::string TooSmall(std::string_view field, std::string_view found,
                                   std::string_view least);
[[nodiscard]] std::string TooLarge(std::string_view field, std::string_view found,
                                   std::string_view most);

}  // namespace weir::algorithm
