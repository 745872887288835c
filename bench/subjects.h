// Limiters filled with live keys, and how each side decides a chunk of keys.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weir/limiter.h"

#include "bench/baselines.h"
#include "bench/measure.h"
#include "bench/workload.h"

namespace weir::bench {

// A unit each 30 seconds and 1000 at once: a key is live long enough to be counted once it was
// charged, and no run asks for more than its burst, so every request is admitted and every decision
// writes. About the longest debt that 8-byte slots hold.
inline constexpr auto kInterval = std::chrono::seconds(30);
inline constexpr int64_t kBurst = 1000;

template <class T>
T Must(Result<T> result) {
  if (!result) {
    Fail(result.error().message);
  }
  return *std::move(result);
}

inline Quota BucketQuota() {
  return Must(Quota::TokenBucket(1, kInterval, kBurst));
}

inline Quota WindowQuota() {
  return Must(Quota::SlidingWindow(kBurst, std::chrono::hours(1)));
}

// Where batches are answered, made once a thread as a server would.
inline std::span<Decision, kChunk> DecisionBuffer() {
  static thread_local constinit std::array<Decision, kChunk> decisions{};
  return decisions;
}

inline uint64_t CountAllowed(std::span<const Decision> decisions) {
  uint64_t allowed = 0;
  for (const Decision& decision : decisions) {
    allowed += decision.allowed() ? 1 : 0;
  }
  return allowed;
}

// Decides chunks in the three ways that weir has. Each returns how many were allowed.
struct Ours {
  static uint64_t Batch(Limiter& limiter, std::span<const std::string_view> keys, Cost cost = 1) {
    const std::span<Decision> decisions = DecisionBuffer().first(keys.size());
    limiter.CheckMany(keys, limiter.Now(), decisions, cost);
    return CountAllowed(decisions);
  }

  static uint64_t OneByOne(Limiter& limiter, std::span<const std::string_view> keys) {
    const Timestamp now = limiter.Now();
    uint64_t allowed = 0;
    for (const std::string_view key : keys) {
      allowed += limiter.Check(key, now).allowed() ? 1 : 0;
    }
    return allowed;
  }

  static uint64_t WithClock(Limiter& limiter, std::span<const std::string_view> keys) {
    uint64_t allowed = 0;
    for (const std::string_view key : keys) {
      allowed += limiter.Check(key).allowed() ? 1 : 0;
    }
    return allowed;
  }
};

struct Theirs {
  static uint64_t OneByOne(MutexMap& map, std::span<const std::string_view> keys) {
    const int64_t now_ns = SteadyNs();
    uint64_t allowed = 0;
    for (const std::string_view key : keys) {
      allowed += map.Check(key, now_ns).allowed ? 1 : 0;
    }
    return allowed;
  }

  static uint64_t WithClock(MutexMap& map, std::span<const std::string_view> keys) {
    uint64_t allowed = 0;
    for (const std::string_view key : keys) {
      allowed += map.Check(key).allowed ? 1 : 0;
    }
    return allowed;
  }
};

// `decide` is one of the above, bound to its limiter. Fails unless exactly `admitted_share` (0 or
// 1) of the requests was let through: a limiter that says no to everything would be very fast.
template <class Decide>
Contender OnRandomKeys(size_t threads, uint64_t key_count, uint64_t admitted_share, Decide decide) {
  return Contender(threads, [=](size_t count) {
    return RunThreads(threads, [&](size_t) {
      if (ForRandomKeys(key_count, count, decide) != count * admitted_share) {
        Fail("a contender admitted or denied what it should not have");
      }
    });
  });
}

// Charges each key once, on `threads` threads, and returns how many were admitted.
template <class Decide>
uint64_t Fill(size_t threads, uint64_t key_count, Decide decide) {
  std::atomic<uint64_t> admitted{0};
  RunThreads(threads, [&](size_t worker) {
    const uint64_t first = key_count * worker / threads;
    const uint64_t last = key_count * (worker + 1) / threads;
    admitted += ForEachKey(first, last, decide);
  });
  return admitted;
}

// A limiter of this budget with `key_count` live keys; none if one of them found no slot.
inline std::optional<Limiter> TryFilledLimiter(const Quota& quota, size_t budget_bytes,
                                               size_t threads, uint64_t key_count) {
  Limiter limiter = Must(Limiter::Create(quota, MemoryOptions{.budget_bytes = budget_bytes}));
  const uint64_t admitted = Fill(threads, key_count, [&](std::span<const std::string_view> keys) {
    return Ours::Batch(limiter, keys);
  });
  if (limiter.store()->Stats().overflow != 0) {
    return std::nullopt;
  }
  if (admitted != key_count) {
    Fail("a key was denied on its first request");
  }
  return limiter;
}

inline Limiter FilledLimiter(const Quota& quota, size_t budget_bytes, size_t threads,
                             uint64_t key_count) {
  std::optional<Limiter> limiter = TryFilledLimiter(quota, budget_bytes, threads, key_count);
  if (!limiter) {
    Fail(std::to_string(budget_bytes) + " bytes are too few for " + std::to_string(key_count) +
         " keys");
  }
  return *std::move(limiter);
}

// Looks each key up and counts those whose charge is there, in a state of their own.
inline uint64_t CountLiveKeys(Limiter& limiter, uint64_t key_count) {
  return ForEachKey(0, key_count, [&](std::span<const std::string_view> keys) {
    const std::span<Decision> decisions = DecisionBuffer();
    limiter.CheckMany(keys, limiter.Now(), decisions, 0);
    uint64_t live = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      const bool charged_once = decisions[i].remaining + 1 == decisions[i].limit;
      live += charged_once && decisions[i].basis == Basis::kStore ? 1 : 0;
    }
    return live;
  });
}

inline size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t all_pages = 0;
  size_t resident_pages = 0;
  statm >> all_pages >> resident_pages;
  return resident_pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace weir::bench
