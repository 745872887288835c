// The rows on quotas that live in records: holds, and the sliding log.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/limiter.h"

#include "bench/measure.h"
#include "bench/record_subjects.h"
#include "bench/rows.h"
#include "bench/subjects.h"
#include "bench/workload.h"

namespace weir::bench {

inline constexpr uint64_t kRecordKeys = 1'000'000;
inline constexpr size_t kRecordThreads = 2;

// Every hold is released before the next key is asked for, as most are before they expire.
inline void MeasureHolds(const Rows& rows, Effort effort) {
  constexpr uint32_t kLimit = 10;
  constexpr auto kLease = std::chrono::seconds(30);
  using Keys = std::span<const std::string_view>;
  // What a key takes, its record and its share of what finds it, and a tenth to spare.
  Limiter limiter = Must(Limiter::Create(Must(Quota::Concurrency(kLimit, kLease)),
                                         MemoryOptions{.budget_bytes = kRecordKeys * 80}));
  MutexHolds map(kLimit, std::chrono::nanoseconds(kLease).count());
  const auto batch = [&](Keys keys) {
    static thread_local std::array<Acquired, kChunk> acquired;
    const Timestamp now = limiter.Now();
    limiter.AcquireMany(keys, acquired, {.now = now});
    uint64_t done = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      done += acquired[i].allowed() && limiter.Release(acquired[i].hold, now) ? 1 : 0;
    }
    return done;
  };
  const auto ours = [&](Keys keys) {
    const Timestamp now = limiter.Now();
    uint64_t done = 0;
    for (const std::string_view key : keys) {
      const Acquired got = limiter.Acquire(key, {.now = now});
      done += got.allowed() && limiter.Release(got.hold, now) ? 1 : 0;
    }
    return done;
  };
  const auto theirs = [&](Keys keys) {
    const int64_t now_ns = SteadyNs();
    uint64_t done = 0;
    for (const std::string_view key : keys) {
      const uint64_t number = map.Acquire(key, now_ns);
      done += number != 0 && map.Release(key, number, now_ns) ? 1 : 0;
    }
    return done;
  };
  if (Fill(kRecordThreads, kRecordKeys, ours) != kRecordKeys ||
      Fill(kRecordThreads, kRecordKeys, theirs) != kRecordKeys) {
    Fail("a hold was denied on a fresh key");
  }
  std::vector<Contender> contenders;
  contenders.push_back(OnRandomKeys(kRecordThreads, kRecordKeys, 1, batch));
  contenders.push_back(OnRandomKeys(kRecordThreads, kRecordKeys, 1, ours));
  contenders.push_back(OnRandomKeys(kRecordThreads, kRecordKeys, 1, theirs));
  const std::vector<Rate> rates = Race(std::move(contenders), effort).Finish();
  rows.PrintBest("hold and release, batch, 1M keys, 2 threads", rates[0], "mutex map", rates[2], 5);
  rows.PrintBest("hold and release, one by one, 1M keys, 2 threads", rates[1], "mutex map",
                 rates[2], 2);
}

// A window short enough that stamps leave it and that no key reaches its limit.
inline void MeasureSlidingLog(const Rows& rows, Effort effort) {
  constexpr uint32_t kLimit = 100;
  constexpr auto kWindow = std::chrono::seconds(2);
  constexpr size_t kBytesPerKey = 950;
  using Keys = std::span<const std::string_view>;
  Limiter limiter = FilledLimiter(Must(Quota::SlidingLog(kLimit, kWindow)),
                                  kRecordKeys * kBytesPerKey, kRecordThreads, kRecordKeys);
  const uint64_t records = limiter.store()->Stats().records;
  if (records != kRecordKeys) {
    Fail("only " + std::to_string(records) + " keys have a log");
  }
  rows.Print({.what = "bytes per key, sliding log of 100, beside its stamps alone",
              .unit = "B/key",
              .better = Better::kLess,
              .ours = static_cast<double>(limiter.store()->Stats().budget_bytes) /
                      static_cast<double>(records),
              .peer = "1.2 x 800",
              .theirs = 1.2 * 8 * kLimit,
              .bar = 1});
  MutexLog map(kLimit, std::chrono::nanoseconds(kWindow).count());
  const auto theirs = [&](Keys keys) {
    const int64_t now_ns = SteadyNs();
    uint64_t allowed = 0;
    for (const std::string_view key : keys) {
      allowed += map.Check(key, now_ns) ? 1 : 0;
    }
    return allowed;
  };
  Fill(kRecordThreads, kRecordKeys, theirs);
  std::vector<Contender> contenders;
  contenders.push_back(OnRandomKeys(kRecordThreads, kRecordKeys, 1,
                                    [&](Keys keys) { return Ours::Batch(limiter, keys); }));
  contenders.push_back(OnRandomKeys(kRecordThreads, kRecordKeys, 1,
                                    [&](Keys keys) { return Ours::OneByOne(limiter, keys); }));
  contenders.push_back(OnRandomKeys(kRecordThreads, kRecordKeys, 1, theirs));
  const std::vector<Rate> rates = Race(std::move(contenders), effort).Finish();
  rows.PrintBest("sliding log of 100, batch, 1M keys, 2 threads", rates[0], "mutex map of deques",
                 rates[2], 5);
  Row single{.what = "sliding log of 100, Check(key, now), 1M keys, 2 threads",
             .unit = "M/s",
             .ours = rates[1].best / 1e6,
             .peer = "mutex map of deques",
             .theirs = rates[2].best / 1e6};
  rows.Print(single);
}

}  // namespace weir::bench
