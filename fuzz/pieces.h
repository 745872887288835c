// For targets that feed a parser: what must hold, and the input cut into pieces that the input
// itself chooses, so that a finding repeats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace weir::fuzz {

inline void Require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

// Sizes from 1 to 17, from a generator seeded by the content.
class Pieces {
 public:
  explicit Pieces(std::string_view seed) {
    for (const char byte : seed) {
      state_ = (state_ ^ static_cast<uint8_t>(byte)) * 0x100000001b3U;
    }
  }

  size_t Next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return 1 + (state_ >> 33) % 17;
  }

 private:
  uint64_t state_ = 0xcbf29ce484222325U;
};

inline std::string_view Text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace weir::fuzz
