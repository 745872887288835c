// Numbers and durations as people read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"
#include "weir/time.h"

namespace weir::app {

// The largest unit that divides it: "1 min", "90 s", "600 ms", "1 h"; "0" for nothing.
[[nodiscard]] std::string FormatDuration(Duration duration);
// The same in the unit that `like` would be printed in. REQUIRES: a multiple of `like`.
[[nodiscard]] std::string FormatDuration(Duration duration, Duration like);

// "90s", "5min", "1h", "250 ms"; units ns, us, ms, s, m, min, h, d, or the words for them.
[[nodiscard]] Result<Duration> ParseDuration(std::string_view text);

// "1.20x". Rounded, but never onto a whole number that it is not: 1999 of 1000 is "1.99x", and
// 1001 of 1000 is "1.01x".
[[nodiscard]] std::string FormatRatio(uint64_t part, uint64_t whole);

// "12.3 %"; "0 %" only for none, "< 0.1 %" for nearly none.
[[nodiscard]] std::string FormatPercent(uint64_t part, uint64_t whole);

// "1,234,567".
[[nodiscard]] std::string FormatCount(uint64_t count);

// "12.8" of 128.
[[nodiscard]] std::string FormatTenths(uint64_t tenths);

// About as long: "1.5 s", "31.1 min", "4 h". For axes, where the last digit does not matter.
[[nodiscard]] std::string FormatAbout(Duration duration);

// A decimal number such as "1.5" in thousandths, at most three places.
[[nodiscard]] Result<int64_t> ParseMilli(std::string_view text);

// A whole number, digits only.
[[nodiscard]] Result<uint64_t> ParseWhole(std::string_view text);

// Columns on the terminal, for text whose characters are all one column wide.
[[nodiscard]] size_t Columns(std::string_view utf8) noexcept;
[[nodiscard]] std::string PadRight(std::string_view text, size_t columns);
[[nodiscard]] std::string PadLeft(std::string_view text, size_t columns);
// Lines of at most this many columns, broken between words.
[[nodiscard]] std::vector<std::string> Wrap(std::string_view text, size_t columns);
[[nodiscard]] std::string Repeat(std::string_view text, size_t times);

}  // namespace weir::app
