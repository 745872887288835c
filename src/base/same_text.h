// Text compared without regard to the case of its letters, as protocols do; ASCII only.
#pragma once

#include <algorithm>
#include <string_view>

namespace weir::base {

[[nodiscard]] constexpr char LowerCase(char character) noexcept {
  return character >= 'A' && character <= 'Z' ? static_cast<char>(character | 0x20) : character;
}

// REQUIRES: `lower` is in lower case.
[[nodiscard]] constexpr bool SameLetters(std::string_view text, std::string_view lower) noexcept {
  return text.size() == lower.size() &&
         std::equal(text.begin(), text.end(), lower.begin(),
                    [](char left, char right) { return LowerCase(left) == right; });
}

[[nodiscard]] constexpr bool SameText(std::string_view left, std::string_view right) noexcept {
  return left.size() == right.size() &&
         std::equal(left.begin(), left.end(), right.begin(),
                    [](char a, char b) { return LowerCase(a) == LowerCase(b); });
}

// Takes as long for any two texts of one length: for secrets.
[[nodiscard]] inline bool SameSecret(std::string_view given, std::string_view wanted) noexcept {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char against = wanted.empty() ? '\0' : wanted[i % wanted.size()];
    difference |= static_cast<unsigned char>(given[i] ^ against);
  }
  return difference == 0;
}

}  // namespace weir::base
