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

// The same, for what runs only after somebody has called ProcessSecret. It has an address of its
// own: whoever hashes need not first follow a pointer to it.
extern HashSecret drawn_secret [[gnu::visibility("hidden")]];

// Has a value worked out here and no later, so that what it is made from need not be kept in
// registers: where they are few, that is worth more than the freedom to put it off.
template <class T>
[[gnu::always_inline]] inline void WorkOut(T& value) noexcept {
  asm volatile("" : "+r"(value));
}

[[nodiscard]] inline uint64_t ReadWord(const void* at) noexcept {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// A key of 17 to 32 bytes, as most are: its first and its last 16 bytes, which overlap, are all of
// it. Each byte is loaded once or twice and no loop runs.
class UsualKey {
 public:
  static constexpr size_t kBytesMin = 17;
  static constexpr size_t kBytesMax = 32;

  [[nodiscard]] static constexpr bool Fits(std::string_view key) noexcept {
    return key.size() - kBytesMin <= kBytesMax - kBytesMin;
  }

  // REQUIRES: Fits(key).
  [[gnu::always_inline]] explicit UsualKey(std::string_view key) noexcept : key_(key) {}

#if defined(__SSE2__)
  // A byte of it is zero iff one of the key is.
  [[nodiscard]] [[gnu::always_inline]] __m128i Least() const noexcept {
    return _mm_min_epu8(Load(key_.data()), Load(Tail()));
  }

  [[nodiscard]] [[gnu::always_inline]] bool HasNul() const noexcept {
    return _mm_movemask_epi8(_mm_cmpeq_epi8(Least(), _mm_setzero_si128())) != 0;
  }
#else
  [[nodiscard]] bool HasNul() const noexcept {
    return std::memchr(key_.data(), 0, key_.size()) != nullptr;
  }
#endif

  // XXH3 as far as its last step, the avalanche, and without a factor for the size. The avalanche
  // is a bijection, so leaving it out makes no two keys collide that would not have; MixHash
  // spreads the bits instead. By words: from a vector to a register and on takes longer than two
  // loads.
  [[nodiscard]] [[gnu::always_inline]] uint64_t Hash(const HashSecret& secret) const noexcept {
    uint64_t first = Fold(key_.data(), secret.bytes);
    WorkOut(first);
    const uint64_t second = Fold(Tail(), secret.bytes + 16);
    return first + key_.size() + second;
  }

 private:
#if defined(__SSE2__)
  [[gnu::always_inline]] static __m128i Load(const void* at) noexcept {
    return _mm_loadu_si128(static_cast<const __m128i*>(at));
  }
#endif

  [[nodiscard]] [[gnu::always_inline]] const char* Tail() const noexcept {
    return key_.data() + key_.size() - 16;
  }

  [[gnu::always_inline]] static uint64_t Fold(const char* at,
                                              const unsigned char* secret) noexcept {
    return MulFold(ReadWord(at) ^ ReadWord(secret), ReadWord(at + 8) ^ ReadWord(secret + 8));
  }

  std::string_view key_;
};

// The hash of a key. Always goes through MixHash before its bits are used.
[[nodiscard]] inline uint64_t HashKey(std::string_view key, const HashSecret& secret) noexcept {
  if (UsualKey::Fits(key)) [[likely]] {
    return UsualKey(key).Hash(secret);
  }
  return XXH3_64bits_withSecret(key.data(), key.size(), secret.bytes, HashSecret::kBytes);
}

// For what a whole fleet must agree on, such as the phase of a key's window.
[[nodiscard]] inline uint64_t HashKeySeeded(std::string_view key, uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

// One key's hash made into that of (key, quota): a multiplication folded on itself, which spreads
// every bit over all. REQUIRES: salt is odd and has about as many ones as zeros, as SaltFor gives.
[[nodiscard]] constexpr uint64_t MixHash(uint64_t hash, uint64_t salt) noexcept {
  return MulFold(hash, salt);
}

[[nodiscard]] constexpr uint64_t SaltFor(uint64_t number) noexcept {
  return MixHash(MixHash(number + 0xd1b54a32d192ed03U, 0x9e3779b97f4a7c15U), 0xa0761d6478bd642fU) |
         1U;
}

}  // namespace weir::base
