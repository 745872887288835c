// Exact integer arithmetic through 128 bits, and division by a number known beforehand.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace weir::base {

__extension__ using Uint128 = unsigned __int128;

inline constexpr uint64_t kUint64Max = std::numeric_limits<uint64_t>::max();

[[nodiscard]] constexpr uint64_t SaturatingAdd(uint64_t a, uint64_t b) noexcept {
  return b > kUint64Max - a ? kUint64Max : a + b;
}

[[nodiscard]] constexpr uint64_t SaturatingMul(uint64_t a, uint64_t b) noexcept {
  const Uint128 product = static_cast<Uint128>(a) * b;
  return product > kUint64Max ? kUint64Max : static_cast<uint64_t>(product);
}

// floor(a * b / c), saturated. REQUIRES: c > 0.
[[nodiscard]] constexpr uint64_t MulDivFloor(uint64_t a, uint64_t b, uint64_t c) noexcept {
  const Uint128 quotient = static_cast<Uint128>(a) * b / c;
  return quotient > kUint64Max ? kUint64Max : static_cast<uint64_t>(quotient);
}

// ceil(a * b / c), saturated. REQUIRES: c > 0.
[[nodiscard]] constexpr uint64_t MulDivCeil(uint64_t a, uint64_t b, uint64_t c) noexcept {
  const Uint128 quotient = (static_cast<Uint128>(a) * b + (c - 1)) / c;
  return quotient > kUint64Max ? kUint64Max : static_cast<uint64_t>(quotient);
}

// The product's two halves. Where the processor has one instruction for it, that is named: GCC 12
// wants two neighbouring registers for a Uint128, and moves and saves others to have them.
struct Product {
  uint64_t low;
  uint64_t high;
};

[[nodiscard]] [[gnu::always_inline]] constexpr Product Multiply(uint64_t a, uint64_t b) noexcept {
#if defined(__x86_64__)
  if (!std::is_constant_evaluated()) {
    uint64_t high = 0;
    asm("mulq %2" : "+a"(a), "=d"(high) : "rm"(b) : "cc");
    return {a, high};
  }
#endif
  const Uint128 product = static_cast<Uint128>(a) * b;
  return {static_cast<uint64_t>(product), static_cast<uint64_t>(product >> 64)};
}

[[nodiscard]] constexpr uint64_t MulHigh(uint64_t a, uint64_t b) noexcept {
  return Multiply(a, b).high;
}

// The halves folded on one another, for hashes: every bit of both counts for every bit of it.
[[nodiscard]] constexpr uint64_t MulFold(uint64_t a, uint64_t b) noexcept {
  const Product product = Multiply(a, b);
  return product.low ^ product.high;
}

// How many bits `value` needs.
[[nodiscard]] constexpr unsigned BitsFor(uint64_t value) noexcept {
  return static_cast<unsigned>(std::bit_width(value));
}

[[nodiscard]] constexpr uint64_t LowBits(unsigned count) noexcept {
  return count >= 64 ? kUint64Max : (uint64_t{1} << count) - 1;
}

// floor(n / d) for a d chosen beforehand: a multiplication and one correction instead of a divide,
// which is the dearest instruction on the decision's path.
//
// With m = floor((2^64 - 1) / d) the estimate mulhigh(n, m) is floor(n / d) or one less:
// m >= 2^64/d - 1, so n*m/2^64 > n/d - 1, and the floor of that is above n/d - 2.
class Reciprocal {
 public:
  constexpr Reciprocal() = default;
  // REQUIRES: divisor > 0.
  constexpr explicit Reciprocal(uint64_t divisor)
      // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): required above.
      : divisor_(divisor), multiplier_(kUint64Max / divisor) {}

  [[nodiscard]] constexpr uint64_t Divide(uint64_t n) const noexcept {
    const uint64_t estimate = MulHigh(n, multiplier_);
    return estimate + static_cast<uint64_t>(n - estimate * divisor_ >= divisor_);
  }

  [[nodiscard]] constexpr uint64_t divisor() const noexcept { return divisor_; }

 private:
  uint64_t divisor_ = 1;
  uint64_t multiplier_ = kUint64Max;
};

// The same for n below 2^63, where no correction is needed.
//
// With 2^(s-1) < d <= 2^s and m = ceil(2^(63+s) / d), n*m / 2^(63+s) exceeds n/d by less than
// n*d / (d * 2^(63+s)) <= n / (2^63 * d) < 1/d, which is too little to reach the next integer.
class NarrowReciprocal {
 public:
  constexpr NarrowReciprocal() = default;
  // REQUIRES: 0 < divisor < 2^63.
  constexpr explicit NarrowReciprocal(uint64_t divisor)
      : multiplier_(static_cast<uint64_t>(
            ((Uint128{1} << (63 + BitsFor(divisor - 1))) + divisor - 1) / divisor)),
        shift_(BitsFor(divisor - 1)) {}

  // REQUIRES: n < 2^63.
  [[nodiscard]] constexpr uint64_t Divide(uint64_t n) const noexcept {
    return MulHigh(2 * n, multiplier_) >> shift_;
  }

 private:
  uint64_t multiplier_ = uint64_t{1} << 63;
  uint64_t shift_ = 0;
};

// 1 / divisor, rounded up. REQUIRES: 0 < divisor < 2^53.
[[nodiscard]] inline double ReciprocalUp(uint64_t divisor) noexcept {
  const auto exact = static_cast<double>(divisor);
  const double nearest = 1 / exact;
  return std::fma(nearest, exact, -1.0) < 0 ? std::nextafter(nearest, 2.0) : nearest;
}

}  // namespace weir::base
