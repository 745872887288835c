// What weir is measured against inside this process.
//
// MutexMap is the keyed limiter that most people write, written with care: shards so that threads
// seldom meet, a good hash table, short critical sections. RandomLines is no limiter at all: it is
// what the memory system allows to anything that changes one random cache line per decision with
// one locked instruction, so nothing that is safe to share can be faster.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include <absl/container/flat_hash_map.h>

#include "bench/measure.h"
#include "bench/workload.h"

namespace weir::bench {

class MutexMap {
 public:
  struct Answer {
    int64_t retry_after_ns;
    int64_t reset_after_ns;
    int64_t remaining;
    bool allowed;
  };

  // A unit each `interval_ns`, `burst` at once: the same law as weir's token bucket.
  MutexMap(int64_t interval_ns, int64_t burst)
      : interval_ns_(interval_ns), tolerance_ns_(interval_ns * burst) {}

  Answer Check(std::string_view key_text, int64_t now_ns) {
    const std::string key(key_text);
    // Not the table's own hash: its low bits would then be the same for a whole shard.
    Shard& shard = shards_[std::hash<std::string>{}(key) % kShards];
    const std::lock_guard<std::mutex> lock(shard.mutex);
    int64_t& arrival_ns = shard.arrivals_ns[key];
    const int64_t base_ns = std::max(arrival_ns, now_ns);
    const int64_t next_ns = base_ns + interval_ns_;
    const int64_t latest_ns = now_ns + tolerance_ns_;
    if (next_ns > latest_ns) {
      return {next_ns - latest_ns, base_ns - now_ns, (latest_ns - base_ns) / interval_ns_, false};
    }
    arrival_ns = next_ns;
    return {0, next_ns - now_ns, (latest_ns - next_ns) / interval_ns_, true};
  }

  Answer Check(std::string_view key) { return Check(key, SteadyNs()); }

  [[nodiscard]] size_t size() {
    size_t sum = 0;
    for (Shard& shard : shards_) {
      const std::lock_guard<std::mutex> lock(shard.mutex);
      sum += shard.arrivals_ns.size();
    }
    return sum;
  }

 private:
  static constexpr size_t kShards = 64;

  struct alignas(64) Shard {
    std::mutex mutex;
    absl::flat_hash_map<std::string, int64_t> arrivals_ns;  // GCRA's theoretical arrival times
  };

  int64_t interval_ns_;
  int64_t tolerance_ns_;
  std::array<Shard, kShards> shards_;
};

class RandomLines {
 public:
  explicit RandomLines(size_t bytes) : lines_(std::max<size_t>(bytes / sizeof(Line), 1)) {
    constexpr size_t kHugePage = size_t{2} << 20;
    mapped_bytes_ = lines_ * sizeof(Line) + 2 * kHugePage;
    mapped_ =
        mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) {
      Fail("no memory for the table of the floor");
    }
    const auto start = reinterpret_cast<uintptr_t>(mapped_);
    table_ = reinterpret_cast<Line*>((start + kHugePage - 1) / kHugePage * kHugePage);
    madvise(table_, lines_ * sizeof(Line), MADV_HUGEPAGE);
    for (size_t i = 0; i < lines_; ++i) {
      table_[i].word.store(1, std::memory_order_relaxed);
    }
  }

  RandomLines(const RandomLines&) = delete;
  RandomLines& operator=(const RandomLines&) = delete;
  ~RandomLines() { munmap(mapped_, mapped_bytes_); }

  // Compare-and-swap, as a limiter needs: what is written depends on what was read.
  void Touch(size_t count) {
    constexpr size_t kAhead = 32;
    Random random(NextSeed());
    std::array<std::atomic<uint64_t>*, kAhead> ring;
    const auto fetch = [&](size_t slot) {
      ring[slot] = &table_[Below(random(), lines_)].word;
      __builtin_prefetch(ring[slot], 1);
    };
    for (size_t slot = 0; slot < kAhead; ++slot) {
      fetch(slot);
    }
    for (size_t i = 0; i < count; ++i) {
      std::atomic<uint64_t>& word = *ring[i % kAhead];
      uint64_t seen = word.load(std::memory_order_relaxed);
      while (!word.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel,
                                         std::memory_order_relaxed)) {
      }
      fetch(i % kAhead);
    }
  }

 private:
  struct alignas(64) Line {
    std::atomic<uint64_t> word;
  };

  size_t lines_;
  size_t mapped_bytes_ = 0;
  void* mapped_ = nullptr;
  Line* table_ = nullptr;
};

}  // namespace weir::bench
