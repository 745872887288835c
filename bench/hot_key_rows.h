// One hot key that both threads are admitted on: leases against the plain compare-and-swap.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weir/limiter.h"

#include "bench/measure.h"
#include "bench/rows.h"
#include "bench/subjects.h"
#include "bench/workload.h"

namespace weir::bench {

// A bucket that two threads do not empty in all of the runs.
inline Limiter HotKeyLimiter(bool hot_keys) {
  return Must(Limiter::Create(
      Must(Quota::TokenBucket(100'000'000, std::chrono::seconds(1), int64_t{1} << 31U)),
      MemoryOptions{.budget_bytes = size_t{1} << 20U, .hot_keys = hot_keys}));
}

// Asks for a prepared key, so that neither making nor hashing it counts. The clock is read once a
// chunk, as in the other rows.
inline Contender OnPreparedKey(size_t threads, Limiter& limiter) {
  return Contender(threads, [&limiter, threads](size_t count) {
    return RunThreads(threads, [&](size_t) {
      const PreparedKey key = limiter.Prepare("usr:one hot key of all");
      uint64_t allowed = 0;
      for (size_t done = 0; done < count; done += kChunk) {
        const size_t chunk = std::min(kChunk, count - done);
        const Timestamp now = limiter.Now();
        for (size_t i = 0; i < chunk; ++i) {
          allowed += static_cast<uint64_t>(limiter.Check(key, now).allowed());
        }
      }
      if (allowed != count) {
        Fail("the hot key was denied " + std::to_string(count - allowed) + " times");
      }
    });
  });
}

// Medians: two threads that contend are fastest when one of them is held up.
inline void MeasureHotKey(const Rows& rows, const Effort& effort, size_t threads) {
  Limiter leased = HotKeyLimiter(true);
  Limiter plain = HotKeyLimiter(false);
  std::vector<Contender> contenders;
  for (Limiter* limiter : {&leased, &plain}) {
    contenders.push_back(OnRandomKeys(
        threads, 1, 1, [limiter](auto keys) { return Ours::OneByOne(*limiter, keys); }));
    contenders.push_back(OnPreparedKey(threads, *limiter));
  }
  const std::vector<Rate> rates = Race(std::move(contenders), effort);
  if (leased.store()->Stats().leases == 0) {
    Fail("nobody took a lease on the hot key");
  }
  const char* const peer = "plain compare-and-swap";
  rows.PrintMedian("one hot key admitted, Check(key, now), 2 threads", rates[0], peer, rates[2], 6);
  rows.PrintMedian("one hot key admitted, prepared, 2 threads", rates[1], peer, rates[3], 15);
}

}  // namespace weir::bench
