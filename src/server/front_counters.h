// What a front has done on one loop. Written by that loop, read by whoever is asked for metrics.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weir/time.h"

namespace weir::server {

// How long answers took, from the bytes read to the bytes ready to be sent.
class LatencyCounters {
 public:
  static constexpr std::array<uint64_t, 14> kBoundsNs = {
      5'000,     10'000,    25'000,    50'000,     100'000,    250'000,     500'000,
      1'000'000, 2'500'000, 5'000'000, 10'000'000, 25'000'000, 100'000'000, 1'000'000'000};

  // All answers of one read took as long as that read.
  void Add(uint64_t duration_ns, uint64_t answers) noexcept {
    size_t bucket = 0;
    while (bucket < kBoundsNs.size() && duration_ns > kBoundsNs[bucket]) {
      ++bucket;
    }
    Bump(counts_[bucket], answers);
    Bump(sum_ns_, duration_ns * answers);
  }

  // The last is for what is above every bound.
  [[nodiscard]] uint64_t count(size_t bucket) const noexcept {
    return counts_[bucket].load(std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t sum_ns() const noexcept { return sum_ns_.load(std::memory_order_relaxed); }

  // One writer, so no read-modify-write; relaxed: each number stands alone.
  static void Bump(std::atomic<uint64_t>& counter, uint64_t by) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<uint64_t>, kBoundsNs.size() + 1> counts_{};
  std::atomic<uint64_t> sum_ns_{0};
};

struct FrontCounters {
  LatencyCounters latency;
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> errors{0};           // questions that were wrong
  std::atomic<uint64_t> protocol_errors{0};  // bytes that were none of the protocol
};

// Times one read.
class ReadTimer {
 public:
  explicit ReadTimer(FrontCounters& counters) noexcept : ReadTimer(counters, SystemClock().Now()) {}
  ReadTimer(FrontCounters& counters, Timestamp began) noexcept
      : counters_(counters), began_(began) {}

  ReadTimer(const ReadTimer&) = delete;
  ReadTimer& operator=(const ReadTimer&) = delete;

  ~ReadTimer() {
    if (answers_ != 0) {
      const Duration took = SystemClock().Now() - began_;
      counters_.latency.Add(static_cast<uint64_t>(took.count()), answers_);
      LatencyCounters::Bump(counters_.requests, answers_);
    }
  }

  void CountAnswer() noexcept { ++answers_; }
  [[nodiscard]] uint64_t answers() const noexcept { return answers_; }

 private:
  FrontCounters& counters_;
  const Timestamp began_;
  uint64_t answers_ = 0;
};

}  // namespace weir::server
