// Counts of values by size, for latencies: percentiles within 1 % of the truth from a fixed 36 KiB,
// however many values there are.
//
// Buckets are linear up to 256 and from there 128 to each doubling, so that a bucket is never wider
// than 1/128 of what lies in it. Recording is an index and an addition; histograms that were filled
// apart add up to the one that would have been filled together.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace weir::base {

class Histogram {
 public:
  // Larger values count in the last bucket; max() still knows the largest. In nanoseconds: 73 min.
  static constexpr uint64_t kLargest = (uint64_t{1} << 42) - 1;

  void Record(uint64_t value, uint64_t times = 1) noexcept {
    if (times == 0) {
      return;
    }
    counts_[IndexOf(value)] += times;
    count_ += times;
    sum_ += value * times;
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
  }

  void Merge(const Histogram& other) noexcept {
    for (size_t index = 0; index < kBuckets; ++index) {
      counts_[index] += other.counts_[index];
    }
    count_ += other.count_;
    sum_ += other.sum_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
  }

  [[nodiscard]] uint64_t count() const noexcept { return count_; }
  // All 0 while nothing has been recorded.
  [[nodiscard]] uint64_t min() const noexcept { return count_ == 0 ? 0 : min_; }
  [[nodiscard]] uint64_t max() const noexcept { return max_; }
  [[nodiscard]] double mean() const noexcept {
    return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
  }

  // The smallest value that at least this share of all values do not exceed, rounded up to the end
  // of its bucket. REQUIRES: 0 <= share <= 1.
  [[nodiscard]] uint64_t ValueAt(double share) const noexcept {
    const auto wanted = std::max(
        uint64_t{1}, static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_))));
    uint64_t seen = 0;
    for (size_t index = 0; index < kBuckets; ++index) {
      seen += counts_[index];
      if (seen >= wanted) {
        return std::min(HighestOf(index), max_);
      }
    }
    return max_;
  }

  // Calls visit(lowest value, highest value, count) for each bucket that is not empty, in order.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (size_t index = 0; index < kBuckets; ++index) {
      if (counts_[index] != 0) {
        visit(LowestOf(index), HighestOf(index), counts_[index]);
      }
    }
  }

 private:
  static constexpr int kBits = 7;
  static constexpr uint64_t kPerDoubling = uint64_t{1} << kBits;
  static constexpr int kShiftMax = std::bit_width(kLargest) - kBits - 1;
  static constexpr size_t kBuckets = (kShiftMax + 2) * kPerDoubling;

  static constexpr size_t IndexOf(uint64_t value) noexcept {
    value = std::min(value, kLargest);
    const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - kBits - 1);
    return static_cast<size_t>(shift) * kPerDoubling + (value >> shift);
  }
  static constexpr int ShiftOf(size_t index) noexcept {
    return std::max(0, static_cast<int>(index / kPerDoubling) - 1);
  }
  static constexpr uint64_t LowestOf(size_t index) noexcept {
    const int shift = ShiftOf(index);
    return (index - static_cast<size_t>(shift) * kPerDoubling) << shift;
  }
  static constexpr uint64_t HighestOf(size_t index) noexcept {
    return LowestOf(index) + (uint64_t{1} << ShiftOf(index)) - 1;
  }

  std::array<uint64_t, kBuckets> counts_{};
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  uint64_t min_ = std::numeric_limits<uint64_t>::max();
  uint64_t max_ = 0;
};

}  // namespace weir::base
