#include "rules/fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>

#include "base/spelling.h"

namespace weir::rules {

std::string DidYouMean(std::string_view found, std::span<const std::string_view> candidates) {
  std::string_view best;
  size_t least = found.size() / 3 + 2;  // at most about a third of it mistyped
  for (const std::string_view candidate : candidates) {
    const bool begins = found.size() >= 3 && candidate.starts_with(found);
    const size_t distance = begins ? 0 : base::SpellingDistance(found, candidate);
    if (distance < least && distance < candidate.size()) {
      least = distance;
      best = candidate;
    }
  }
  return best.empty() ? "" : " did you mean " + base::Quoted(best) + "?";
}

std::string Listed(std::span<const std::string_view> words) {
  std::string result;
  for (size_t i = 0; i < words.size(); ++i) {
    result += i == 0 ? "" : i + 1 == words.size() ? " and " : ", ";
    result += words[i];
  }
  return result;
}

Fields::Fields(const YamlNode& map, std::span<const std::string_view> known, std::string_view what,
               Issues& issues)
    : mark_(map.mark()), issues_(issues) {
  if (!map.IsMap()) {
    issues.Error(map.mark(), std::string(what) + ": found " + Describe(map) +
                                 "; expected a mapping with " + Listed(known));
    return;
  }
  const std::vector<YamlNode> children = map.children();
  for (size_t i = 0; i + 1 < children.size(); i += 2) {
    const std::string_view key = children[i].text();
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      const std::string hint = DidYouMean(key, known);
      issues.Error(children[i].mark(), std::string(what) + ": the key " + base::Quoted(key) +
                                           " is not known;" +
                                           (hint.empty() ? " expected " + Listed(known) : hint));
      continue;
    }
    pairs_.emplace_back(children[i], children[i + 1]);
  }
}

const YamlNode* Fields::Find(std::string_view key) const {
  for (const auto& [name, value] : pairs_) {
    if (name.text() == key) {
      return &value;
    }
  }
  return nullptr;
}

Mark Fields::MarkOf(std::string_view key) const {
  for (const auto& [name, value] : pairs_) {
    if (name.text() == key) {
      return value.mark();
    }
  }
  return mark_;
}

std::optional<std::string_view> Fields::Scalar(std::string_view key,
                                               std::string_view expected) const {
  const YamlNode* const node = Find(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (!node->IsScalar()) {
    issues_.Error(node->mark(), std::string(key) + ": found " + Describe(*node) + "; expected " +
                                    std::string(expected));
    return std::nullopt;
  }
  return node->text();
}

void Fields::Read(std::string_view key, std::string& into, size_t bytes_max) const {
  const auto text = Scalar(key, "text");
  if (text && (text->empty() || text->size() > bytes_max)) {
    issues_.Error(MarkOf(key), std::string(key) + ": found " + std::to_string(text->size()) +
                                   " bytes; expected 1 to " + std::to_string(bytes_max));
  } else if (text) {
    into = *text;
  }
}

void Fields::Read(std::string_view key, bool& into) const {
  const auto text = Scalar(key, "true or false");
  if (!text) {
    return;
  }
  const bool yes = *text == "true" || *text == "yes";
  if (!yes && *text != "false" && *text != "no") {
    issues_.Error(MarkOf(key),
                  std::string(key) + ": found " + base::Quoted(*text) + "; expected true or false");
    return;
  }
  into = yes;
}

void Fields::Read(std::string_view key, int64_t& into, int64_t least, int64_t most) const {
  const auto text = Scalar(key, "a number");
  if (!text) {
    return;
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size() || value < least || value > most) {
    issues_.Error(MarkOf(key), std::string(key) + ": found " + base::Quoted(*text) +
                                   "; expected a whole number from " + std::to_string(least) +
                                   " to " + std::to_string(most));
    return;
  }
  into = value;
}

void Fields::Read(std::string_view key, WallTime& into) const {
  const auto text = Scalar(key, "a time");
  if (!text) {
    return;
  }
  const auto time = ParseTime(*text);
  if (!time) {
    issues_.Error(MarkOf(key), std::string(key) + ": found " + base::Quoted(*text) +
                                   "; expected a time such as 2027-01-31 or 2027-01-31T12:00:00Z");
    return;
  }
  into = *time;
}

std::optional<size_t> Fields::Choice(std::string_view key,
                                     std::span<const std::string_view> words) const {
  const auto text = Scalar(key, Listed(words));
  if (!text) {
    return std::nullopt;
  }
  const auto found = std::find(words.begin(), words.end(), *text);
  if (found == words.end()) {
    issues_.Error(MarkOf(key), std::string(key) + ": found " + base::Quoted(*text) + ";" +
                                   DidYouMean(*text, words) + " expected one of " + Listed(words));
    return std::nullopt;
  }
  return static_cast<size_t>(found - words.begin());
}

std::vector<std::pair<std::string_view, Mark>> Texts(const YamlNode& node, std::string_view what,
                                                     Issues& issues) {
  std::vector<std::pair<std::string_view, Mark>> texts;
  const std::vector<YamlNode> items = node.IsSequence() ? node.children() : std::vector{node};
  for (const YamlNode& item : items) {
    if (item.IsScalar() && !item.text().empty()) {
      texts.emplace_back(item.text(), item.mark());
    } else {
      issues.Error(item.mark(),
                   std::string(what) + ": found " + Describe(item) + "; expected text");
    }
  }
  if (items.empty()) {
    issues.Error(node.mark(), std::string(what) + ": found an empty list; expected text");
  }
  return texts;
}

std::optional<uint64_t> ParseUnsigned(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

std::optional<WallTime> ParseTime(std::string_view text) {
  // Two digits at `at`, or none.
  const auto number = [text](size_t at, size_t digits) -> std::optional<int> {
    const std::string_view part = text.substr(std::min(at, text.size()), digits);
    if (part.size() != digits ||
        !std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      return std::nullopt;
    }
    int value = 0;
    std::from_chars(part.data(), part.data() + part.size(), value);
    return value;
  };
  const auto is = [text](size_t at, char c) { return at < text.size() && text[at] == c; };
  const auto year = number(0, 4);
  const auto month = number(5, 2);
  const auto day = number(8, 2);
  if (!year || !month || !day || !is(4, '-') || !is(7, '-') || *year < 1970 || *year > 2200) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) {
    return std::nullopt;
  }
  WallTime time = std::chrono::sys_days(date);
  if (text.size() == 10) {
    return time;
  }
  const auto hour = number(11, 2);
  const auto minute = number(14, 2);
  const auto second = number(17, 2);
  if (!hour || !minute || !second || (!is(10, 'T') && !is(10, ' ')) || !is(13, ':') ||
      !is(16, ':') || *hour > 23 || *minute > 59 || *second > 59) {
    return std::nullopt;
  }
  time += std::chrono::hours(*hour) + std::chrono::minutes(*minute) + std::chrono::seconds(*second);
  if (text.substr(19) == "Z") {
    return time;
  }
  const auto offset_hours = number(20, 2);
  const auto offset_minutes = number(23, 2);
  if (text.size() != 25 || !offset_hours || !offset_minutes || !is(22, ':') ||
      (!is(19, '+') && !is(19, '-')) || *offset_hours > 23 || *offset_minutes > 59) {
    return std::nullopt;
  }
  const auto offset = std::chrono::hours(*offset_hours) + std::chrono::minutes(*offset_minutes);
  return is(19, '+') ? time - offset : time + offset;
}

std::string FormatTime(WallTime time) {
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(days);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - days));
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%04d-%02u-%02uT%02d:%02d:%02dZ", int(date.year()),
                unsigned(date.month()), unsigned(date.day()), int(clock.hours().count()),
                int(clock.minutes().count()), int(clock.seconds().count()));
  return out.data();
}

}  // namespace weir::rules
