// How a key is written: its parts one after the other with "|" between them. In a part "|" and "\"
// are escaped by "\", so that two different lists of parts are never one key; a NUL byte, which no
// key may have, becomes "\0". A part that is missing and shared is "\-".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::rules {

inline constexpr char kPartSeparator = '|';
inline constexpr std::string_view kSharedPart = "\\-";

// Writes `part` escaped and returns how many bytes that took; 0 if there is no room for it.
// REQUIRES: part is not empty.
[[nodiscard]] inline size_t WriteEscaped(std::string_view part, char* out, size_t room) noexcept {
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
