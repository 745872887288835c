// From the name of a header field to what we call it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "codec/http/request.h"

namespace weir::codec::http {

inline constexpr std::array<std::string_view, kKnownFields> kKnownNames = {
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "forwarded",
    "host",
    "traceparent",
    "transfer-encoding",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-method",
    "x-forwarded-proto",
    "x-forwarded-uri",
    "x-original-method",
    "x-original-uri",
    "x-real-ip",
};

namespace internal {

static_assert(std::all_of(kKnownNames.begin(), kKnownNames.end(),
                          [](std::string_view name) { return name.size() >= sizeof(uint32_t); }));

// Known names by length: most lengths have one or none, so most fields are told by their length.
inline constexpr size_t kNameBytesMax = 18;
inline constexpr size_t kNamesPerLength = 4;
inline constexpr auto kKnownByLength = [] {
  std::array<std::array<Known, kNamesPerLength>, kNameBytesMax + 1> table{};
  for (auto& row : table) {
    row.fill(Known::kNone);
  }
  for (size_t i = 0; i < kKnownFields; ++i) {
    auto& row = table.at(kKnownNames[i].size());
    size_t place = 0;
    while (row.at(place) != Known::kNone) {
      ++place;
    }
    row.at(place) = static_cast<Known>(i);
  }
  return table;
}();

// A known name in lower case, and the bit that makes a letter small wherever there is one: any text
// that becomes the name with these bits set is the name but for case.
struct NameWords {
  static constexpr size_t kBytes = 24;
  std::array<char, kBytes> text{};
  std::array<char, kBytes> cases{};
};

inline constexpr auto kNameWords = [] {
  std::array<NameWords, kKnownFields> words{};
  for (size_t i = 0; i < kKnownFields; ++i) {
    for (size_t at = 0; at < kKnownNames[i].size(); ++at) {
      words[i].text[at] = kKnownNames[i][at];
      words[i].cases[at] = kKnownNames[i][at] == '-' ? '\0' : '\x20';
    }
  }
  return words;
}();

template <class Word>
inline bool IsNameAt(std::string_view text, const NameWords& known, size_t at) noexcept {
  Word given;
  Word name;
  Word cases;
  std::memcpy(&given, text.data() + at, sizeof(Word));
  std::memcpy(&name, known.text.data() + at, sizeof(Word));
  std::memcpy(&cases, known.cases.data() + at, sizeof(Word));
  return (given | cases) == name;
}

// By words, the last of which may overlap the one before. REQUIRES: the sizes are equal, at
// least 4.
inline bool IsName(std::string_view text, const NameWords& known) noexcept {
  const size_t size = text.size();
  if (size < sizeof(uint64_t)) {
    return IsNameAt<uint32_t>(text, known, 0) &&
           IsNameAt<uint32_t>(text, known, size - sizeof(uint32_t));
  }
  for (size_t at = 0; at + sizeof(uint64_t) < size; at += sizeof(uint64_t)) {
    if (!IsNameAt<uint64_t>(text, known, at)) {
      return false;
    }
  }
  return IsNameAt<uint64_t>(text, known, size - sizeof(uint64_t));
}

}  // namespace internal

// Whatever is found is a token.
inline Known FindKnown(std::string_view name) noexcept {
  if (name.size() > internal::kNameBytesMax) {
    return Known::kNone;
  }
  for (const Known known : internal::kKnownByLength[name.size()]) {
    if (known == Known::kNone) {
      break;
    }
    if (internal::IsName(name, internal::kNameWords[static_cast<size_t>(known)])) {
      return known;
    }
  }
  return Known::kNone;
}

}  // namespace weir::codec::http
