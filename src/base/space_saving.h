// Space-saving (Metwally, Agrawal, El Abbadi 2005): the most frequent keys of a stream, in a fixed
// number of counters.
//
// A key that has no counter takes over the smallest one with its count, and keeps that as its
// error. With k counters and N counted in all:
//   count - error <= true count <= count     for every key that has a counter
//   true count <= AbsentMost() <= N / k      for every key that has none
// so a key with more than N / k is always among them. Two summaries can be merged, and the bounds
// add up (Agarwal et al. 2012). Not thread-safe. Allocates when it is made and when it is merged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::base {

class SpaceSaving {
 public:
  static constexpr size_t kTextBytes = 64;

  struct Counter {
    uint64_t hash = 0;
    uint64_t count = 0;
    uint64_t error = 0;
    uint64_t marked = 0;  // of those counted under this key, how many were marked
    uint32_t place = 0;   // in the index
    uint32_t bytes = 0;   // of the whole key
    char text[kTextBytes] = {};

    [[nodiscard]] std::string_view shown() const noexcept {
      return {text, bytes < kTextBytes ? bytes : kTextBytes};
    }
  };

  // REQUIRES: 0 < counters <= 2^20.
  explicit SpaceSaving(size_t counters);

  // `hash` tells keys apart; of `key` the first kTextBytes are kept to be shown.
  void Add(uint64_t hash, std::string_view key, uint64_t count, bool marked) noexcept;

  // As if both streams had been counted here, up to the bounds.
  void Merge(const SpaceSaving& other);

  // The most that a key without a counter can have been counted.
  [[nodiscard]] uint64_t AbsentMost() const noexcept;
  [[nodiscard]] uint64_t total() const noexcept { return total_; }

  // The largest counts first.
  [[nodiscard]] std::vector<Counter> Top(size_t most) const;

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  [[nodiscard]] size_t Probe(uint64_t hash) const noexcept;  // its place, or the empty one for it
  void Put(size_t heap_place, const Counter& counter) noexcept;
  void RemoveFromIndex(size_t place) noexcept;
  void Sink(size_t heap_place) noexcept;
  void Insert(Counter counter) noexcept;

  size_t capacity_;
  std::vector<Counter> heap_;    // the smallest count first
  std::vector<uint32_t> index_;  // by hash: a place in the heap, or kNone
  uint64_t total_ = 0;
  uint64_t absent_ = 0;  // the same as AbsentMost, from merges
};

}  // namespace weir::base
