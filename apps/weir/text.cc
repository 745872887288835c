#include "apps/weir/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace weir::app {
namespace {

struct Unit {
  std::string_view name;
  int64_t ns;
};

constexpr int64_t kSecond = 1'000'000'000;

// Smallest first; FormatDuration prints the first name of each size.
constexpr std::array kUnits = {
    Unit{"ns", 1},
    Unit{"us", 1000},
    Unit{"ms", 1'000'000},
    Unit{"s", kSecond},
    Unit{"sec", kSecond},
    Unit{"second", kSecond},
    Unit{"seconds", kSecond},
    Unit{"min", 60 * kSecond},
    Unit{"m", 60 * kSecond},
    Unit{"minute", 60 * kSecond},
    Unit{"minutes", 60 * kSecond},
    Unit{"h", 3600 * kSecond},
    Unit{"hour", 3600 * kSecond},
    Unit{"hours", 3600 * kSecond},
    Unit{"d", 86400 * kSecond},
    Unit{"day", 86400 * kSecond},
    Unit{"days", 86400 * kSecond},
};

std::string Decimal(uint64_t scaled, uint64_t scale, size_t places) {
  std::string fraction = std::to_string(scaled % scale);
  fraction.insert(0, places - fraction.size(), '0');
  return std::to_string(scaled / scale) + "." + fraction;
}

}  // namespace

std::string FormatDuration(Duration duration) {
  return FormatDuration(duration, duration);
}

std::string FormatDuration(Duration duration, Duration like) {
  if (duration == Duration::zero())
    return "0";
  const Unit* best = kUnits.data();
  for (const Unit& unit : kUnits) {
    if (unit.ns > best->ns && like.count() % unit.ns == 0)
      best = &unit;
  }
  return std::to_string(duration.count() / best->ns) + " " + std::string(best->name);
}

Result<Duration> ParseDuration(std::string_view text) {
  const Error error = Error::Invalid("a whole number and a unit (us, ms, s, min, h, d), as in 90s");
  int64_t count = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (problem != std::errc() || count <= 0)
    return error;
  std::string_view name = text.substr(static_cast<size_t>(end - text.data()));
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  for (const Unit& unit : kUnits) {
    if (unit.name != name)
      continue;
    if (count > std::numeric_limits<int64_t>::max() / unit.ns)
      return error;
    return Duration(count * unit.ns);
  }
  return error;
}

std::string FormatRatio(uint64_t part, uint64_t whole) {
  if (whole == 0)
    return "-";
  const uint64_t rest = part % whole;
  uint64_t hundredths = (part / whole) * 100 + (rest * 100 + whole / 2) / whole;
  if (rest != 0 && hundredths % 100 == 0) {
    hundredths = hundredths == part / whole * 100 ? hundredths + 1 : hundredths - 1;
  }
  return Decimal(hundredths, 100, 2) + "x";
}

std::string FormatCount(uint64_t count) {
  std::string text = std::to_string(count);
  for (size_t at = text.size(); at > 3; at -= 3) {
    text.insert(at - 3, ",");
  }
  return text;
}

std::string FormatPercent(uint64_t part, uint64_t whole) {
  if (whole == 0 || part == 0)
    return "0 %";
  const uint64_t tenths = (part * 1000 + whole / 2) / whole;
  if (tenths == 0)
    return "< 0.1 %";
  return Decimal(tenths, 10, 1) + " %";
}

std::string FormatTenths(uint64_t tenths) {
  return Decimal(tenths, 10, 1);
}

std::string FormatAbout(Duration duration) {
  const Unit* best = kUnits.data();
  for (const Unit& unit : kUnits) {
    if (unit.ns > best->ns && unit.ns <= duration.count())
      best = &unit;
  }
  const int64_t tenth = std::max<int64_t>(best->ns / 10, 1);
  const auto tenths = static_cast<uint64_t>(best->ns < 10 ? duration.count() * 10
                                                          : (duration.count() + tenth / 2) / tenth);
  if (tenths == 0)
    return "0";
  const std::string number = tenths % 10 == 0 ? std::to_string(tenths / 10) : FormatTenths(tenths);
  return number + " " + std::string(best->name);
}

Result<int64_t> ParseMilli(std::string_view text) {
  const Error error = Error::Invalid("a number with at most three decimals, as in 1.5");
  const size_t dot = std::min(text.find('.'), text.size());
  auto whole = ParseWhole(text.substr(0, dot));
  if (!whole || *whole > 1'000'000)
    return error;
  int64_t milli = static_cast<int64_t>(*whole) * 1000;
  if (dot == text.size())
    return milli;
  const std::string_view fraction = text.substr(dot + 1);
  auto digits = ParseWhole(fraction);
  if (!digits || fraction.size() > 3)
    return error;
  auto scaled = static_cast<int64_t>(*digits);
  for (size_t i = fraction.size(); i < 3; ++i) scaled *= 10;
  return milli + scaled;
}

Result<uint64_t> ParseWhole(std::string_view text) {
  uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) {
    return Error::Invalid("a whole number");
  }
  return value;
}

size_t Columns(std::string_view utf8) noexcept {
  // Every byte but the continuation bytes 10xxxxxx starts a character.
  return static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string PadRight(std::string_view text, size_t columns) {
  std::string out(text);
  const size_t used = Columns(text);
  if (used < columns)
    out.append(columns - used, ' ');
  return out;
}

std::string PadLeft(std::string_view text, size_t columns) {
  const size_t used = Columns(text);
  std::string out(used < columns ? columns - used : 0, ' ');
  return out.append(text);
}

std::vector<std::string> Wrap(std::string_view text, size_t columns) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool starts = lines.back().empty();
    if (!starts && Columns(lines.back()) + 1 + Columns(word) > columns) {
      lines.emplace_back(word);
    } else {
      lines.back().append(starts ? "" : " ").append(word);
    }
  }
  return lines;
}

std::string Repeat(std::string_view text, size_t times) {
  std::string out;
  out.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) out.append(text);
  return out;
}

}  // namespace weir::app
