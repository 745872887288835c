#include "import/imported.h"

#include <algorithm>
#include <cctype>

namespace weir::import {

namespace {

bool HasOnly(const Condition& condition, Match match) {
  return std::all_of(condition.any.begin(), condition.any.end(),
                     [match](const Test& test) { return test.match == match; });
}

// Texts that name a value, and nothing but that value.
bool IsExact(const Condition& condition) {
  return condition.attribute != "ip" && HasOnly(condition, Match::kExact);
}

// `*` any run of bytes, `?` one byte.
bool MatchesGlob(std::string_view glob, std::string_view text) {
  size_t star = std::string_view::npos;
  size_t retry = 0;
  size_t at = 0;
  size_t i = 0;
  while (i < text.size()) {
    if (at < glob.size() && glob[at] == '*') {
      star = at++;
      retry = i;
    } else if (at < glob.size() && (glob[at] == '?' || glob[at] == text[i])) {
      ++at;
      ++i;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      i = ++retry;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', at) == std::string_view::npos;
}

bool Holds(const Test& test, std::string_view value) {
  switch (test.match) {
    case Match::kExact:
      return value == test.text;
    case Match::kPrefix:
      return value.starts_with(test.text);
    case Match::kSuffix:
      return value.ends_with(test.text);
    case Match::kContains:
      return value.find(test.text) != std::string_view::npos;
    case Match::kPresent:
      return !value.empty();
    case Match::kAbsent:
      return value.empty();
    case Match::kGlob:
      return MatchesGlob(test.text, value);
    case Match::kRegex:
    case Match::kPattern:
      break;
  }
  return true;
}

// Whether what Holds says of it is certain.
bool IsPlain(const Condition& condition) {
  return std::none_of(condition.any.begin(), condition.any.end(), [](const Test& test) {
    return test.match == Match::kRegex || test.match == Match::kPattern;
  });
}

bool MeetsAny(const Condition& condition, std::string_view value) {
  return std::any_of(condition.any.begin(), condition.any.end(),
                     [value](const Test& test) { return Holds(test, value); });
}

bool AreExclusive(const Test& a, const Test& b) {
  for (const bool swapped : {false, true}) {
    const Test& exact = swapped ? b : a;
    const Test& other = swapped ? a : b;
    if (exact.match == Match::kExact) {
      return !Holds(other, exact.text);
    }
    if (exact.match == Match::kAbsent) {
      return other.match != Match::kAbsent;
    }
  }
  if (a.match == Match::kPrefix && b.match == Match::kPrefix) {
    return !a.text.starts_with(b.text) && !b.text.starts_with(a.text);
  }
  return a.match == Match::kSuffix && b.match == Match::kSuffix && !a.text.ends_with(b.text) &&
         !b.text.ends_with(a.text);
}

bool AreExclusive(const Condition& a, const Condition& b) {
  return a.attribute != "ip" && std::all_of(a.any.begin(), a.any.end(), [&](const Test& one) {
           return std::all_of(b.any.begin(), b.any.end(),
                              [&](const Test& other) { return AreExclusive(one, other); });
         });
}

const Condition* Find(const Conditions& all, std::string_view attribute) {
  const auto found = std::find_if(all.begin(), all.end(), [attribute](const Condition& one) {
    return one.attribute == attribute;
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

std::string ToString(const Place& place) {
  std::string text = place.file;
  if (place.line != 0) {
    text += ":" + std::to_string(place.line);
    text += place.column != 0 ? ":" + std::to_string(place.column) : "";
  }
  return text;
}

std::string_view ToString(Carry carry) noexcept {
  return carry == Carry::kCarried        ? "carried"
         : carry == Carry::kApproximated ? "approximated"
                                         : "dropped";
}

void Imported::NoteOnce(Carry carry, const Place& place, const std::string& what) {
  if (std::none_of(findings.begin(), findings.end(),
                   [&](const Finding& finding) { return finding.what == what; })) {
    Note(carry, place, what);
  }
}

bool AreExclusive(const Conditions& a, const Conditions& b) {
  return std::any_of(a.begin(), a.end(), [&](const Condition& one) {
    const Condition* const other = Find(b, one.attribute);
    return other != nullptr && AreExclusive(one, *other);
  });
}

bool Add(Conditions& to, const Condition& more, bool& never) {
  never = false;
  const auto there = std::find_if(
      to.begin(), to.end(), [&](const Condition& one) { return one.attribute == more.attribute; });
  if (there == to.end()) {
    to.push_back(more);
    return true;
  }
  if (*there == more || HasOnly(more, Match::kPresent)) {
    never = HasOnly(*there, Match::kAbsent) && !HasOnly(more, Match::kAbsent);
    return !never;
  }
  if (AreExclusive(*there, more)) {
    never = true;
    return false;
  }
  if (HasOnly(*there, Match::kPresent)) {
    *there = more;
    return true;
  }
  // One names values: those of them that the other one takes.
  for (const bool swapped : {false, true}) {
    const Condition& exact = swapped ? more : *there;
    const Condition& other = swapped ? *there : more;
    if (IsExact(exact) && IsPlain(other)) {
      Condition left{exact.attribute, {}};
      std::copy_if(exact.any.begin(), exact.any.end(), std::back_inserter(left.any),
                   [&](const Test& test) { return MeetsAny(other, test.text); });
      *there = std::move(left);
      return true;
    }
  }
  return false;
}

std::optional<Conditions> Both(const Conditions& a, const Conditions& b, bool& never) {
  Conditions both = a;
  bool can_say = true;
  for (const Condition& one : b) {
    can_say = Add(both, one, never) && can_say;
    if (never) {
      return std::nullopt;
    }
  }
  return can_say ? std::optional(std::move(both)) : std::nullopt;
}

std::string RegexOf(std::string_view text) {
  std::string regex;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && std::isalnum(byte) == 0 && c != '_') {
      regex += '\\';
    }
    regex += c;
  }
  return regex;
}

}  // namespace weir::import
