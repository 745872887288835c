// Rows on memory under attack: what the sketch path costs beside the exact one, and what keys cost
// that were made to collide.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/limiter.h"

#include "bench/latency.h"
#include "bench/measure.h"
#include "bench/rows.h"
#include "bench/subjects.h"
#include "bench/workload.h"

namespace weir::bench {

// The long tail: `key_count` keys, none near its limit. `exact` holds all of them in slots; the
// other has an eighth of the budget, half of it sketch, and keeps them there. Its rate is high
// enough that nobody is denied however long the run is.
inline void MeasureSketch(const Rows& rows, const Effort& effort, Limiter& exact,
                          uint64_t key_count, size_t threads) {
  using Keys = std::span<const std::string_view>;
  const size_t budget = exact.store()->Stats().budget_bytes / 8;
  Limiter sketch =
      Must(Limiter::Create(Must(Quota::TokenBucket(1000, std::chrono::seconds(1), kBurst)),
                           MemoryOptions{.budget_bytes = budget, .sketch_percent = 50},
                           LimiterOptions{.precision = Precision::kSketch}));
  Fill(threads, key_count, [&](Keys keys) { return Ours::Batch(sketch, keys); });
  std::vector<Contender> contenders;
  contenders.push_back(
      OnRandomKeys(threads, key_count, 1, [&](Keys keys) { return Ours::Batch(sketch, keys); }));
  contenders.push_back(
      OnRandomKeys(threads, key_count, 1, [&](Keys keys) { return Ours::Batch(exact, keys); }));
  contenders.push_back(
      OnRandomKeys(threads, key_count, 1, [&](Keys keys) { return Ours::OneByOne(sketch, keys); }));
  contenders.push_back(
      OnRandomKeys(threads, key_count, 1, [&](Keys keys) { return Ours::OneByOne(exact, keys); }));
  const std::vector<Rate> rates = Race(std::move(contenders), effort).Finish();
  const char* const peer = "exact";
  rows.PrintBest("sketch first, batch, 5M keys, 2 threads", rates[0], peer, rates[1], 0.5);
  rows.PrintBest("sketch first, Check(key, now), 5M keys, 2 threads", rates[2], peer, rates[3],
                 0.5);
  const StoreStats stats = sketch.store()->Stats();
  std::fprintf(stderr, "library_bench: sketch first: %llu of %llu keys took a slot\n",
               static_cast<unsigned long long>(stats.live_slots),
               static_cast<unsigned long long>(key_count));
  rows.Print({.what = "budget a key, sketch first",
              .unit = "B/key",
              .better = Better::kLess,
              .ours = static_cast<double>(stats.budget_bytes) / static_cast<double>(key_count),
              .peer = peer,
              .theirs = static_cast<double>(exact.store()->Stats().budget_bytes) /
                        static_cast<double>(key_count)});
}

// Keys of 32 bytes. All of the colliding ones have one and the same XXH3 hash, as anybody can work
// out who knows the secret that XXH3 ships with: its first word makes the first product zero,
// whatever comes after it (collision_test holds that against XXH3 itself).
class AttackKeys {
 public:
  static constexpr size_t kBytes = 32;

  explicit AttackKeys(bool colliding) : colliding_(colliding) {
    text_.fill('@');
    std::memcpy(text_.data(), "\xb8\xfe\x6c\x39\x23\xa4\x4b\xbe", 8);
  }

  std::string_view Make(uint64_t id) {
    const auto letters = [](uint64_t x) { return (x & 0x3f3f3f3f3f3f3f3fU) | 0x4040404040404040U; };
    const uint64_t word = letters(id * 0x9e3779b97f4a7c15U);
    std::memcpy(text_.data() + 8, &word, 8);
    if (!colliding_) {
      const uint64_t other = letters((id + 1) * 0xbf58476d1ce4e5b9U);
      std::memcpy(text_.data(), &other, 8);
      std::memcpy(text_.data() + 16, &other, 8);
    }
    return {text_.data(), kBytes};
  }

 private:
  bool colliding_;
  std::array<char, kBytes> text_;
};

inline void MeasureCollisions(const Rows& rows) {
  constexpr uint64_t kKeys = 1'000'000;
  constexpr int kTurns = 10;
  constexpr int kSamples = 40'000;
  const TickTimer timer;
  std::vector<uint64_t> ticks[2];
  std::vector<Limiter> limiters;
  for (const bool colliding : {false, true}) {
    limiters.push_back(
        Must(Limiter::Create(BucketQuota(), MemoryOptions{.budget_bytes = kKeys * 15})));
    AttackKeys keys(colliding);
    const Timestamp now = limiters.back().Now();
    for (uint64_t id = 0; id < kKeys; ++id) {
      limiters.back().Check(keys.Make(id), now);
    }
  }
  RunThreads(1, [&](size_t) {
    for (int turn = 0; turn < kTurns; ++turn) {
      for (const bool colliding : {false, true}) {
        Limiter& limiter = limiters[colliding ? 1 : 0];
        AttackKeys keys(colliding);
        Random random(NextSeed());
        const Timestamp now = limiter.Now();
        for (int i = 0; i < kSamples; ++i) {
          const std::string_view key = keys.Make(Below(random(), kKeys));
          const uint64_t before = FencedTicks();
          const bool allowed = limiter.Check(key, now).allowed();
          ticks[colliding ? 1 : 0].push_back(FencedTicks() - before);
          if (!allowed) {
            Fail("a key of the collision row was denied");
          }
        }
      }
    }
  });
  const auto p99 = [&](std::vector<uint64_t>& all) {
    const auto at = all.begin() + static_cast<ptrdiff_t>(all.size() / 100 * 99);
    std::nth_element(all.begin(), at, all.end());
    return timer.Ns(*at);
  };
  rows.Print({.what = "latency p99, 1M keys of one unkeyed hash",
              .unit = "ns",
              .better = Better::kLess,
              .ours = p99(ticks[1]),
              .peer = "random keys",
              .theirs = p99(ticks[0]),
              .bar = 0.5});
}

}  // namespace weir::bench
