// Which bytes may stand where in HTTP (RFC 9110, RFC 3986).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace weir::codec::http {

constexpr bool IsDigit(char character) noexcept {
  return character >= '0' && character <= '9';
}

constexpr char ToLower(char character) noexcept {
  return character >= 'A' && character <= 'Z' ? static_cast<char>(character | 0x20) : character;
}

constexpr bool IsLetter(char character) noexcept {
  return ToLower(character) >= 'a' && ToLower(character) <= 'z';
}

constexpr bool IsBlank(char character) noexcept {
  return character == ' ' || character == '\t';
}

// The value of a hexadecimal digit; -1 if it is none.
constexpr int HexValue(char character) noexcept {
  if (IsDigit(character)) {
    return character - '0';
  }
  const char lower = ToLower(character);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

namespace internal {

enum ByteClass : uint8_t { kToken = 1, kTarget = 2, kHost = 4 };

inline constexpr std::array<uint8_t, 256> kByteClasses = [] {
  std::array<uint8_t, 256> classes{};
  for (int byte = 0; byte < 256; ++byte) {
    const char character = static_cast<char>(byte);
    const auto among = [character](std::string_view set) {
      return set.find(character) != std::string_view::npos;
    };
    const bool alphanumeric = IsDigit(character) || IsLetter(character);
    uint8_t of = 0;
    if (alphanumeric || among("!#$%&'*+-.^_`|~")) {
      of |= kToken;
    }
    if (byte > 0x20 && byte < 0x7F && character != '#') {
      of |= kTarget;
    }
    if (alphanumeric || among("-._~%!$&'()*+;=:[]")) {
      of |= kHost;
    }
    classes[static_cast<size_t>(byte)] = of;
  }
  return classes;
}();

// How many bytes from the first on are of that class.
constexpr size_t CountOf(std::string_view text, ByteClass wanted) noexcept {
  size_t count = 0;
  while (count < text.size() && (kByteClasses[static_cast<uint8_t>(text[count])] & wanted) != 0) {
    ++count;
  }
  return count;
}

constexpr bool AllOf(std::string_view text, ByteClass wanted) noexcept {
  return CountOf(text, wanted) == text.size();
}

}  // namespace internal

constexpr size_t TokenBytes(std::string_view text) noexcept {
  return internal::CountOf(text, internal::kToken);
}

// Names of methods, fields and codings. An empty text is none.
constexpr bool IsToken(std::string_view text) noexcept {
  return !text.empty() && internal::AllOf(text, internal::kToken);
}

// Visible ASCII without '#': a fragment is never sent.
constexpr bool IsTarget(std::string_view text) noexcept {
  return !text.empty() && internal::AllOf(text, internal::kTarget);
}

// Bytes of a name or address with a port; no user, no blank, no list. May be empty.
constexpr bool IsHost(std::string_view text) noexcept {
  return internal::AllOf(text, internal::kHost);
}

// Whether a byte is below a blank (tab excepted) or DEL. Eight bytes a step: values are most of a
// head.
inline bool HasControl(std::string_view text) noexcept {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighs = 0x80 * kOnes;
  const auto is_control = [](char character) {
    const auto byte = static_cast<uint8_t>(character);
    return (byte < 0x20 && byte != '\t') || byte == 0x7F;
  };
  const auto any_control = [&is_control](std::string_view bytes) {
    for (const char character : bytes) {
      if (is_control(character)) {
        return true;
      }
    }
    return false;
  };
  if (text.size() < 8) {
    return any_control(text);
  }
  for (size_t at = 0;; at += 8) {
    const bool last = at + 8 >= text.size();
    at = last ? text.size() - 8 : at;  // the last word may overlap the one before
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    const uint64_t del = word ^ (0x7F * kOnes);
    const uint64_t suspects = ((word - 0x20 * kOnes) & ~word) | ((del - kOnes) & ~del);
    if ((suspects & kHighs) != 0 && any_control(text.substr(at, 8))) {
      return true;
    }
    if (last) {
      return false;
    }
  }
}

constexpr std::string_view TrimBlanks(std::string_view text) noexcept {
  while (!text.empty() && IsBlank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && IsBlank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

// Takes the next element of a comma-separated list without quotes; false at its end.
constexpr bool NextElement(std::string_view& list, std::string_view& element) noexcept {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    element = TrimBlanks(list.substr(0, comma));
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    if (!element.empty()) {
      return true;
    }
  }
  return false;
}

}  // namespace weir::codec::http
