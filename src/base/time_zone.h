// Time zones, read from the system's own zone files (TZif, RFC 9636), without any library.
//
// Immutable once made: safe to share between threads. Nothing here looks at TZ or at the process's
// local time, so a zone means the same on every machine that has the same zone database.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir::base {

class TimeZone {
 public:
  static constexpr size_t kMaxNameBytes = 64;
  // No zone may be further from UTC; zone data that says otherwise is refused.
  static constexpr int64_t kMaxOffsetSeconds = int64_t{26} * 3600;

  // A zone of the system's database, for example "Europe/Berlin": the directory TZDIR names if it
  // is set, /usr/share/zoneinfo otherwise. "UTC" is built in and needs no database. The error
  // quotes the name and, where one is close, the name that was probably meant.
  static Result<std::shared_ptr<const TimeZone>> Load(std::string_view name);

  // The contents of a TZif file, version 1 to 4. Files that count leap seconds ("right/...") are
  // refused: their seconds are not Unix seconds.
  static Result<std::shared_ptr<const TimeZone>> FromBytes(std::span<const char> bytes);

  // Seconds to add to Unix time to get local time. Times beyond 2^55 seconds from 1970 are taken
  // as 2^55.
  [[nodiscard]] int64_t OffsetAt(int64_t unix_seconds) const noexcept;

  // The first instant whose local time is `local_seconds` (civil time counted as if it were UTC)
  // or later. In a gap that is the end of the gap, in a fold the first of the two. Never decreases
  // as local_seconds grows, which is what lets calendar periods tile time.
  [[nodiscard]] int64_t ToUnix(int64_t local_seconds) const noexcept;

 private:
  // One day a year, as in a POSIX TZ string, and a time of that day that may leave it.
  struct YearlyDay {
    enum class Kind : uint8_t { kMonthWeekDay, kJulianNoLeap, kDayOfYear };
    Kind kind = Kind::kDayOfYear;
    int month = 0;
    int week = 0;
    int day = 0;
    int64_t time = 0;

    [[nodiscard]] int64_t LocalSeconds(int64_t year) const noexcept;
  };

  // The law for instants after the last transition of the table.
  struct Footer {
    int64_t standard_offset = 0;
    bool has_daylight = false;
    int64_t daylight_offset = 0;
    YearlyDay daylight_begin;
    YearlyDay daylight_end;
  };

  // A stretch of time with one offset; `end` is the first second after it.
  struct Segment {
    int64_t offset = 0;
    int64_t end = 0;
  };

  class Reader;
  class FooterParser;

  TimeZone() = default;

  [[nodiscard]] Segment SegmentAt(int64_t unix_seconds) const noexcept;
  [[nodiscard]] static Segment FooterSegmentAt(const Footer& footer, int64_t unix_seconds) noexcept;

  std::vector<int64_t> transitions_;  // ascending
  std::vector<int32_t> offsets_;  // one more than transitions_: [i] holds before transitions_[i]
  bool has_footer_ = false;
  Footer footer_;
};

}  // namespace weir::base
