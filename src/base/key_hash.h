// The keyed hash of the table: XXH3 with 192 secret bytes drawn per process, so that nobody outside
// can choose keys that collide. Every byte of XXH3 is inlined: nothing is linked.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

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

// XXH3_64bits_withSecret, with the branch for the usual length of a key inlined into the caller:
// the call and its dispatch cost as much as hashing twenty bytes.
[[nodiscard]] [[gnu::always_inline]] inline uint64_t HashKey(std::string_view key,
                                                             const HashSecret& secret) noexcept {
  if (key.size() > 16 && key.size() <= 128) [[likely]] {
    return XXH3_len_17to128_64b(reinterpret_cast<const xxh_u8*>(key.data()), key.size(),
                                secret.bytes, HashSecret::kBytes, 0);
  }
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

// True if `text` has a NUL byte. Keys are short: this beats memchr's call and dispatch.
[[nodiscard]] [[gnu::always_inline]] inline bool HasNul(std::string_view text) noexcept {
  const char* const data = text.data();
  const size_t size = text.size();
#if defined(__SSE2__)
  if (size >= 16) [[likely]] {
    const __m128i zero = _mm_setzero_si128();
    const auto compare = [&](const char* at) {
      return _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)), zero);
    };
    __m128i found = _mm_or_si128(compare(data), compare(data + size - 16));
    if (size > 32) [[unlikely]] {
      for (size_t i = 16; i + 16 < size; i += 16) {
        found = _mm_or_si128(found, compare(data + i));
      }
    }
    return _mm_movemask_epi8(found) != 0;
  }
#endif
  constexpr uint64_t kOnes = 0x0101010101010101U;
  constexpr uint64_t kHighs = 0x8080808080808080U;
  uint64_t word = kOnes;  // what is not copied over is not NUL
  if (size < 8) {
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
