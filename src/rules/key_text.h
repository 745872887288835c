// How a key is written: its parts one after the other with "|" between them. In a part "|" and "\"
// are escaped by "\", so that two different lists of parts are never one key; a NUL byte, which no
// key may have, becomes "\0". A part that is missing and shared is "\-".
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace weir::rules {

inline constexpr char kPartSeparator = '|';
inline constexpr std::string_view kSharedPart = "\\-";

// Whether a part has none of the bytes that are escaped. Eight bytes a step: nearly all have none.
[[nodiscard]] inline bool IsPlainPart(std::string_view part) noexcept {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr size_t kStep = sizeof(uint64_t);
  if (part.size() < kStep) {
    return part.find_first_of(std::string_view("|\\\0", 3)) == std::string_view::npos;
  }
  const auto zeros = [](uint64_t word) { return (word - kOnes) & ~word; };  // by their high bits
  uint64_t special = 0;
  for (size_t at = 0;; at += kStep) {
    const bool last = at + kStep >= part.size();
    at = last ? part.size() - kStep : at;  // the last word may overlap the one before
    uint64_t word = 0;
    std::memcpy(&word, part.data() + at, kStep);
    special |= zeros(word) | zeros(word ^ kOnes * static_cast<uint8_t>(kPartSeparator)) |
               zeros(word ^ kOnes * '\\');
    if (last) {
      return (special & kOnes << 7) == 0;
    }
  }
}

// Writes `part` escaped and returns how many bytes that took; 0 if there is no room for it.
// REQUIRES: part is not empty.
[[nodiscard]] inline size_t WriteEscaped(std::string_view part, char* out, size_t room) noexcept {
  if (part.size() <= room && IsPlainPart(part)) [[likely]] {
    std::memcpy(out, part.data(), part.size());
    return part.size();
  }
  size_t size = 0;
  for (const char c : part) {
    const bool special = c == kPartSeparator || c == '\\' || c == '\0';
    if (size + (special ? 2 : 1) > room) {
      return 0;
    }
    if (special) {
      out[size++] = '\\';
    }
    out[size++] = c == '\0' ? '0' : c;
  }
  return size;
}

[[nodiscard]] inline std::string EscapedKeyPart(std::string_view part) {
  std::string text(2 * part.size(), '\0');
  text.resize(WriteEscaped(part, text.data(), text.size()));
  return text;
}

}  // namespace weir::rules
