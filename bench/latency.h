// How long single decisions take: each call by itself between two clock reads that wait for it to
// finish, so neighbours cannot overlap as they do in the throughput cases. What the two reads cost
// by themselves is measured and taken off.
#pragma once

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "bench/measure.h"
#include "bench/workload.h"

namespace weir::bench {

// Time stamps in an unknown unit, fenced so that nothing before or after slips across.
#if defined(__x86_64__)
inline uint64_t FencedTicks() {
  unsigned processor = 0;
  const uint64_t ticks = __rdtscp(&processor);
  _mm_lfence();
  return ticks;
}
#else
inline uint64_t FencedTicks() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return static_cast<uint64_t>(SteadyNs());
}
#endif

class TickTimer {
 public:
  TickTimer() {
    const int64_t start_ns = SteadyNs();
    const uint64_t start = FencedTicks();
    while (SteadyNs() - start_ns < 20'000'000) {
    }
    const uint64_t ticks = FencedTicks() - start;
    ns_per_tick_ = static_cast<double>(SteadyNs() - start_ns) / static_cast<double>(ticks);
    std::vector<uint64_t> empty(10'001);
    for (uint64_t& taken : empty) {
      const uint64_t before = FencedTicks();
      taken = FencedTicks() - before;
    }
    std::nth_element(empty.begin(), empty.begin() + 5'000, empty.end());
    own_ticks_ = empty[5'000];
  }

  [[nodiscard]] double Ns(uint64_t ticks) const {
    return static_cast<double>(ticks - std::min(ticks, own_ticks_)) * ns_per_tick_;
  }

  // What a pair of reads costs with nothing between them.
  [[nodiscard]] double own_ns() const { return static_cast<double>(own_ticks_) * ns_per_tick_; }

 private:
  double ns_per_tick_ = 1;
  uint64_t own_ticks_ = 0;
};

class Latencies {
 public:
  explicit Latencies(const TickTimer& timer) : timer_(timer) {}

  // Times call(key) for `count` random keys, which are made outside the timed part.
  template <class StartChunk, class Call>
  void Sample(uint64_t key_count, size_t count, StartChunk start_chunk, Call call) {
    ForRandomKeys(key_count, count, [&](std::span<const std::string_view> keys) {
      start_chunk();
      uint64_t sum = 0;
      for (const std::string_view key : keys) {
        const uint64_t before = FencedTicks();
        sum += call(key) ? 1 : 0;
        ticks_.push_back(FencedTicks() - before);
      }
      return sum;
    });
  }

  // REQUIRES: something was sampled; 0 <= share < 1.
  [[nodiscard]] double PercentileNs(double share) {
    std::sort(ticks_.begin(), ticks_.end());
    return timer_.Ns(ticks_[static_cast<size_t>(static_cast<double>(ticks_.size()) * share)]);
  }

 private:
  const TickTimer& timer_;
  std::vector<uint64_t> ticks_;
};

}  // namespace weir::bench
