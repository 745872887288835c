// From the name of a header field to what we call it.
#pragma once

#include <array>
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

// The same but for case. Right for tokens, in which no byte becomes '-' or a letter with bit 5 set
// unless it is that. REQUIRES: sizes are equal.
inline bool IsName(std::string_view token, std::string_view known) noexcept {
  for (size_t i = 0; i < known.size(); ++i) {
    if ((token[i] | 0x20) != known[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace internal

// REQUIRES: name is a token.
inline Known FindKnown(std::string_view name) noexcept {
  if (name.size() > internal::kNameBytesMax) {
    return Known::kNone;
  }
  for (const Known known : internal::kKnownByLength[name.size()]) {
    if (known == Known::kNone) {
      break;
    }
    if (internal::IsName(name, kKnownNames[static_cast<size_t>(known)])) {
      return known;
    }
  }
  return Known::kNone;
}

}  // namespace weir::codec::http
