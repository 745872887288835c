// One key that both threads ask for: denied, against the mutex; and admitted, leases against the
// plain compare-and-swap. Medians: two threads that contend are fastest when one of them is held
// up. Each race is run a part at a time, between the other measurements of the suite.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/limiter.h"

#include "bench/baselines.h"
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

class DeniedKey {
 public:
  DeniedKey(const Effort& effort, size_t threads)
      : limiter_(Must(Limiter::Create(Must(Quota::TokenBucket(1, std::chrono::hours(1), 1)),
                                      MemoryOptions{.budget_bytes = size_t{1} << 20U}))) {
    const auto ours = [this](auto keys) { return Ours::OneByOne(limiter_, keys); };
    const auto theirs = [this](auto keys) { return Theirs::OneByOne(map_, keys); };
    Fill(1, 1, ours);
    Fill(1, 1, theirs);
    std::vector<Contender> contenders;
    contenders.push_back(OnRandomKeys(threads, 1, 0, ours));
    contenders.push_back(OnRandomKeys(threads, 1, 0, theirs));
    race_.emplace(std::move(contenders), effort);
  }

  DeniedKey(const DeniedKey&) = delete;
  DeniedKey& operator=(const DeniedKey&) = delete;

  [[nodiscard]] Race& race() { return *race_; }

  void Print(const Rows& rows) {
    const std::vector<Rate> rates = race_->Finish();
    rows.PrintMedian("one key denied, Check(key, now), 2 threads", rates[0], "mutex map", rates[1],
                     15);
  }

 private:
  Limiter limiter_;
  MutexMap map_{int64_t{3600} * 1'000'000'000, 1};
  std::optional<Race> race_;
};

class HotKey {
 public:
  HotKey(const Effort& effort, size_t threads)
      : leased_(HotKeyLimiter(true)), plain_(HotKeyLimiter(false)) {
    std::vector<Contender> contenders;
    for (Limiter* limiter : {&leased_, &plain_}) {
      contenders.push_back(OnRandomKeys(
          threads, 1, 1, [limiter](auto keys) { return Ours::OneByOne(*limiter, keys); }));
      contenders.push_back(OnPreparedKey(threads, *limiter));
    }
    race_.emplace(std::move(contenders), effort);
  }

  HotKey(const HotKey&) = delete;
  HotKey& operator=(const HotKey&) = delete;

  [[nodiscard]] Race& race() { return *race_; }

  void Print(const Rows& rows) {
    const std::vector<Rate> rates = race_->Finish();
    if (leased_.store()->Stats().leases == 0) {
      Fail("nobody took a lease on the hot key");
    }
    const char* const peer = "plain compare-and-swap";
    rows.PrintMedian("one hot key admitted, Check(key, now), 2 threads", rates[0], peer, rates[2],
                     6);
    rows.PrintMedian("one hot key admitted, prepared, 2 threads", rates[1], peer, rates[3], 15);
  }

 private:
  Limiter leased_;
  Limiter plain_;
  std::optional<Race> race_;
};

}  // namespace weir::bench
