// The words of a quota's text: units, kinds and starts, and which of them a misspelt one was meant
// to be.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/quota.h"

#include "algorithm/quota_text.h"
#include "base/spelling.h"

namespace weir::algorithm {

struct Unit {
  std::array<std::string_view, 5> names;
  int64_t ns = 0;  // 0: a month or a year, which have no fixed length
  std::optional<CalendarPeriod> period;
};

inline constexpr Unit kUnits[] = {
    {{"ns", "nanosecond", "nanoseconds"}, 1, {}},
    {{"us", "usec", "usecs", "microsecond", "microseconds"}, kUs, {}},
    {{"ms", "msec", "msecs", "millisecond", "milliseconds"}, kMs, {}},
    {{"s", "sec", "secs", "second", "seconds"}, kSecond, {}},
    {{"m", "min", "mins", "minute", "minutes"}, kMinute, {}},
    {{"h", "hr", "hrs", "hour", "hours"}, kHour, {}},
    {{"d", "day", "days"}, kDay, CalendarPeriod::kDay},
    {{"w", "week", "weeks"}, kWeek, CalendarPeriod::kWeek},
    {{"month", "months"}, 0, CalendarPeriod::kMonth},
    {{"yr", "yrs", "year", "years"}, 0, CalendarPeriod::kYear},
};

inline constexpr std::string_view kUnitsAllowed =
    "allowed are ns, us, ms, s, min, h, day, week, month and year";

inline constexpr Algorithm kNamedAlgorithms[] = {Algorithm::kTokenBucket, Algorithm::kLeakyBucket,
                                                 Algorithm::kFixedWindow, Algorithm::kSlidingWindow,
                                                 Algorithm::kCalendar,    Algorithm::kSlidingLog,
                                                 Algorithm::kSlicedWindow};
inline constexpr WindowStart kStarts[] = {WindowStart::kEpoch, WindowStart::kFirstHit,
                                          WindowStart::kPerKey};

inline constexpr std::string_view kWordsAllowed =
    "allowed are \"burst <n>\", \"token-bucket\", \"leaky-bucket\", \"queue [after <n>]\", "
    "\"fixed-window\", "
    "\"sliding-window\", \"sliding-log\", \"sliced-window slices <k>\", \"calendar\", "
    "\"from <start>\" and \"in <time zone>\"";

inline char Lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline bool IsDigit(char c) noexcept {
  return c >= '0' && c <= '9';
}

inline bool IsLetter(char c) noexcept {
  return Lower(c) >= 'a' && Lower(c) <= 'z';
}

inline bool IsSpace(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

inline bool SameWord(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

inline bool BeginsWith(std::string_view word, std::string_view prefix) noexcept {
  return word.size() >= prefix.size() && SameWord(word.substr(0, prefix.size()), prefix);
}

// Collects candidates for "did you mean". A word cut short wins, then the least distance, then the
// longest candidate: "mn" is rather "min" than "m".
class Suggestion {
 public:
  explicit Suggestion(std::string_view found)
      : found_(found),
        best_distance_(found.size() <= 4   ? 2
                       : found.size() <= 7 ? 3
                                           : 4) {}

  void Consider(std::string_view candidate) {
    const bool is_cut_short = found_.size() >= 2 && BeginsWith(candidate, found_);
    const size_t distance = is_cut_short ? 0 : base::SpellingDistance(found_, candidate);
    if (distance >= candidate.size() || distance >= found_.size()) {
      return;  // nothing in common
    }
    const bool is_longer = !best_.empty() && !is_cut_short && candidate.size() > best_.size();
    if (distance < best_distance_ || (distance == best_distance_ && is_longer)) {
      best_distance_ = distance;
      best_ = candidate;
    }
  }

  // A question that begins with a space, or nothing.
  [[nodiscard]] std::string Phrase() const {
    return best_.empty() ? std::string() : " did you mean " + base::Quoted(best_) + "?";
  }

 private:
  std::string_view found_;
  size_t best_distance_;
  std::string_view best_;
};

}  // namespace weir::algorithm
