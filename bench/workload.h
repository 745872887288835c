// The one workload of the library suite: random keys of 20 bytes of text, made and handed over in
// chunks as a server has them after draining a socket. Every contender gets its keys from here, so
// making them costs both sides the same.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace weir::bench {

inline constexpr size_t kKeyBytes = 20;

// How many keys are made before they are decided: 32 bytes of text, a view and a decision each
// stay within the first-level cache.
inline constexpr size_t kChunk = 256;

__extension__ using Wide = unsigned __int128;

// Uniform in [0, bound) for a uniform x, without a division.
inline uint64_t Below(uint64_t x, uint64_t bound) {
  return static_cast<uint64_t>((static_cast<Wide>(x) * bound) >> 64);
}

// One multiplication a number (wyrand), so that drawing keys does not hide what deciding costs.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U) {}

  uint64_t operator()() {
    state_ += 0xa0761d6478bd642fU;
    const Wide product = static_cast<Wide>(state_) * (state_ ^ 0xe7037ed1a0b428dbU);
    return static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
  }

 private:
  uint64_t state_;
};

// A new one for each run of each thread, so that no contender meets the order of keys that the one
// before it has just brought into the caches.
inline uint64_t NextSeed() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// "usr:" and 16 characters from '@' on, as of an encoded random id. Six bits of each byte of two
// products: ids below 2^40 make different keys but for a chance of one in 2^50, which the count of
// live keys would show.
inline void MakeKey(uint64_t id, char* text) {
  const auto letters = [](uint64_t x) { return (x & 0x3f3f3f3f3f3f3f3fU) | 0x4040404040404040U; };
  const uint64_t first = letters(id * 0x9e3779b97f4a7c15U);
  const uint64_t second = letters((id + 1) * 0xbf58476d1ce4e5b9U);
  std::memcpy(text, "usr:", 4);
  std::memcpy(text + 4, &first, sizeof first);
  std::memcpy(text + 12, &second, sizeof second);
}

class KeyChunk {
 public:
  // The views stay where they are, as those into a socket's buffer do; only the text changes.
  KeyChunk() {
    for (size_t i = 0; i < kChunk; ++i) {
      views_[i] = std::string_view(text_[i].data(), kKeyBytes);
    }
  }

  KeyChunk(const KeyChunk&) = delete;
  KeyChunk& operator=(const KeyChunk&) = delete;

  template <class IdOf>
  std::span<const std::string_view> Make(size_t count, IdOf id_of) {
    for (size_t i = 0; i < count; ++i) {
      MakeKey(id_of(i), text_[i].data());
    }
    return {views_.data(), count};
  }

 private:
  alignas(64) std::array<std::array<char, 32>, kChunk> text_;
  std::array<std::string_view, kChunk> views_;
};

// Calls body(keys) with chunks of `count` random keys out of `key_count` and returns the sum of
// what it returned. One key is not drawn.
template <class Body>
uint64_t ForRandomKeys(uint64_t key_count, size_t count, Body body) {
  Random random(NextSeed());
  KeyChunk chunk;
  uint64_t sum = 0;
  for (size_t done = 0; done < count; done += kChunk) {
    const size_t size = std::min(kChunk, count - done);
    if (key_count == 1) {
      sum += body(chunk.Make(size, [](size_t) { return uint64_t{0}; }));
    } else {
      sum += body(chunk.Make(size, [&](size_t) { return Below(random(), key_count); }));
    }
  }
  return sum;
}

// The same, over each of the ids in [first, last) once.
template <class Body>
uint64_t ForEachKey(uint64_t first, uint64_t last, Body body) {
  KeyChunk chunk;
  uint64_t sum = 0;
  for (uint64_t id = first; id < last; id += kChunk) {
    sum +=
        body(chunk.Make(std::min<uint64_t>(kChunk, last - id), [&](size_t i) { return id + i; }));
  }
  return sum;
}

}  // namespace weir::bench
