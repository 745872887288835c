// The keyed hash of the table: XXH3 with 192 secret bytes drawn per process, so that nobody outside
// can choose keys that collide. Every byte of XXH3 is inlined: nothing is linked.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/wide_math.h"

namespace weir::base {

struct HashSecret {
  static constexpr size_t kBytes = 192;
  alignas(64) unsigned char bytes[kBytes];
};

// The process's secret, drawn from the kernel at first use.
[[nodiscard]] const HashSecret& ProcessSecret() noexcept;

[[nodiscard]] inline uint64_t HashKey(std::string_view key, const HashSecret& secret) noexcept {
  return XXH3_64bits_withSecret(key.data(), key.size(), secret.bytes, HashSecret::kBytes);
}

// For what a whole fleet must agree on, such as the phase of a key's window.
[[nodiscard]] inline uint64_t HashKeySeeded(std::string_view key, uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

// One key's hash made into that of (key, quota): a multiplication folded on itself.
[[nodiscard]] constexpr uint64_t MixHash(uint64_t hash, uint64_t salt) noexcept {
  const Uint128 product = static_cast<Uint128>(hash ^ salt) * 0x9e3779b97f4a7c15U;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// True if `text` has a NUL byte. Eight bytes at a time; keys are short, so this beats memchr's call.
[[nodiscard]] inline bool HasNul(std::string_view text) noexcept {
  constexpr uint64_t kOnes = 0x0101010101010101U;
  constexpr uint64_t kHighs = 0x8080808080808080U;
  const char* data = text.data();
  const size_t size = text.size();
  uint64_t word = 0;
  if (size < 8) {
    // Never read past the end: pad with ones, which are not NUL.
    word = kOnes;
    std::memcpy(&word, data, size);
    return ((word - kOnes) & ~word & kHighs) != 0;
  }
  uint64_t found = 0;
  for (size_t i = 0; i + 8 < size; i += 8) {
    std::memcpy(&word, data + i, 8);
    found |= (word - kOnes) & ~word & kHighs;
  }
  std::memcpy(&word, data + size - 8, 8);
  found |= (word - kOnes) & ~word & kHighs;
  return found != 0;
}

}  // namespace weir::base
