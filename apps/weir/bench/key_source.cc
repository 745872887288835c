// Zipf's law by rejection-inversion (W. Hörmann, G. Derflinger, "Rejection-inversion to generate
// variates from monotone discrete distributions", 1996): a few operations a draw, no table, however
// many keys there are.
#include "apps/weir/bench/key_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace weir::bench {

namespace {

constexpr std::string_view kPrefix = "key:";

size_t Digits(uint64_t number) {
  size_t digits = 1;
  for (; number >= 10; number /= 10) {
    ++digits;
  }
  return digits;
}

// (exp(x) - 1) / x and log(1 + x) / x, also where x is nearly 0 and the quotient would be noise.
double ExpRatio(double x) {
  return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2;
}
double LogRatio(double x) {
  return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2;
}

}  // namespace

KeySource::KeySource(uint64_t count, double skew, uint64_t seed)
    : count_(count), skew_(skew), state_(seed) {
  std::memcpy(text_.data(), kPrefix.data(), kPrefix.size());
  bytes_ = kPrefix.size() + Digits(count - 1);
  if (skew_ > 0) {
    area_first_ = Area(1.5) - 1;
    area_all_ = Area(static_cast<double>(count_) + 0.5);
    shortcut_ = 2 - InverseArea(Area(2.5) - std::exp(-skew_ * std::log(2.0)));
  }
}

uint64_t KeySource::Draw() noexcept {
  if (skew_ > 0) {
    return DrawZipf() - 1;
  }
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{RandomBits()} * count_) >> 64);
}

// splitmix64: passes the usual tests, and any seed will do.
uint64_t KeySource::RandomBits() noexcept {
  state_ += 0x9E3779B97F4A7C15;
  uint64_t bits = state_;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  return bits ^ (bits >> 31);
}

double KeySource::RandomShare() noexcept {
  return static_cast<double>(RandomBits() >> 11) * 0x1p-53;
}

uint64_t KeySource::DrawZipf() noexcept {
  while (true) {
    const double area = area_all_ + RandomShare() * (area_first_ - area_all_);
    const double x = InverseArea(area);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(count_));
    if (rank - x <= shortcut_ || area >= Area(rank + 0.5) - std::exp(-skew_ * std::log(rank))) {
      return static_cast<uint64_t>(rank);
    }
  }
}

// The integral of 1 / x^skew from 1 to x.
double KeySource::Area(double x) const noexcept {
  const double log_x = std::log(x);
  return ExpRatio((1 - skew_) * log_x) * log_x;
}

double KeySource::InverseArea(double area) const noexcept {
  const double t = std::max(area * (1 - skew_), -1.0);
  return std::exp(LogRatio(t) * area);
}

std::string_view KeySource::Text(uint64_t index) noexcept {
  for (char* digit = text_.data() + bytes_; digit != text_.data() + kPrefix.size(); index /= 10) {
    *--digit = static_cast<char>('0' + index % 10);
  }
  return {text_.data(), bytes_};
}

}  // namespace weir::bench
