// Keys for requests: every one equally often, or few of them very often (Zipf's law), as users are.
//
// Each key has the same length, so that a request is a fixed text in which only digits change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::bench {

class KeySource {
 public:
  // The key of rank k comes in proportion to 1 / k^skew; 0 draws them evenly. REQUIRES: count >= 1,
  // 0 <= skew <= 10.
  KeySource(uint64_t count, double skew, uint64_t seed);

  // Valid until the next call.
  [[nodiscard]] std::string_view Next() noexcept { return Text(Draw()); }
  [[nodiscard]] size_t key_bytes() const noexcept { return bytes_; }

  // From 0 to count - 1; the most frequent is 0.
  [[nodiscard]] uint64_t Draw() noexcept;

 private:
  [[nodiscard]] uint64_t RandomBits() noexcept;
  [[nodiscard]] double RandomShare() noexcept;  // from 0 to 1, 1 excluded
  [[nodiscard]] uint64_t DrawZipf() noexcept;
  [[nodiscard]] double Area(double x) const noexcept;
  [[nodiscard]] double InverseArea(double area) const noexcept;
  [[nodiscard]] std::string_view Text(uint64_t index) noexcept;

  uint64_t count_;
  double skew_;
  uint64_t state_;
  double area_first_ = 0;  // of the rejection's hat, over the first rank and over all
  double area_all_ = 0;
  double shortcut_ = 0;
  std::array<char, 32> text_{};
  size_t bytes_ = 0;
};

}  // namespace weir::bench
