// A small generator of pseudo-random numbers for loops that must be fast and the same on every
// machine, and the shapes of numbers that find mistakes: small ones, and those at an edge.
#pragma once

#include <bit>
#include <cstdint>

namespace weir::testing {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  // splitmix64.
  uint64_t Next() noexcept {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  // Below `bound`. REQUIRES: bound > 0.
  uint64_t Below(uint64_t bound) noexcept { return Next() % bound; }
  uint64_t Between(uint64_t least, uint64_t most) noexcept {
    return least + (most - least == ~uint64_t{0} ? Next() : Below(most - least + 1));
  }
  bool OneIn(uint64_t n) noexcept { return Below(n) == 0; }

  // Every order of magnitude alike. REQUIRES: least > 0.
  uint64_t Scaled(uint64_t least, uint64_t most) noexcept {
    const auto low = static_cast<uint64_t>(std::bit_width(least));
    const auto high = static_cast<uint64_t>(std::bit_width(most));
    const uint64_t bits = Between(low, high);
    const uint64_t value =
        (uint64_t{1} << (bits - 1)) | (Next() & ((uint64_t{1} << (bits - 1)) - 1));
    return value < least ? least : value > most ? most : value;
  }

 private:
  uint64_t state_;
};

}  // namespace weir::testing
