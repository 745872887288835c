// What people write for holds and for logs: a map of keys in shards behind mutexes, with the same
// promises as weir's.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

namespace weir::bench {

template <class Value>
class ShardedMap {
 public:
  // Calls body(value of the key) under the lock of its shard.
  template <class Body>
  auto With(std::string_view key_text, Body body) {
    const std::string key(key_text);
    // Not the table's own hash: its low bits would then be the same for a whole shard.
    Shard& shard = shards_[std::hash<std::string>{}(key) % kShards];
    const std::lock_guard<std::mutex> lock(shard.mutex);
    return body(shard.values[key]);
  }

 private:
  static constexpr size_t kShards = 64;

  struct alignas(64) Shard {
    std::mutex mutex;
    absl::flat_hash_map<std::string, Value> values;
  };

  std::array<Shard, kShards> shards_;
};

// At most `limit` at once; a hold has a number and ends by release or by its lease.
class MutexHolds {
 public:
  MutexHolds(size_t limit, int64_t lease_ns) : limit_(limit), lease_ns_(lease_ns) {}

  // 0: denied.
  uint64_t Acquire(std::string_view key, int64_t now_ns) {
    return map_.With(key, [&](Key& held) -> uint64_t {
      const auto ended = [&](const Lease& lease) { return lease.end_ns <= now_ns; };
      held.leases.erase(std::remove_if(held.leases.begin(), held.leases.end(), ended),
                        held.leases.end());
      if (held.leases.size() >= limit_) {
        return 0;
      }
      held.leases.push_back({++held.last_number, now_ns + lease_ns_});
      return held.last_number;
    });
  }

  bool Release(std::string_view key, uint64_t number, int64_t now_ns) {
    return map_.With(key, [&](Key& held) {
      const auto found = std::find_if(held.leases.begin(), held.leases.end(),
                                      [&](const Lease& lease) { return lease.number == number; });
      if (found == held.leases.end() || found->end_ns <= now_ns) {
        return false;
      }
      held.leases.erase(found);
      return true;
    });
  }

 private:
  struct Lease {
    uint64_t number;
    int64_t end_ns;
  };

  struct Key {
    uint64_t last_number = 0;
    absl::InlinedVector<Lease, 2> leases;  // most keys need no more memory than their own
  };

  size_t limit_;
  int64_t lease_ns_;
  ShardedMap<Key> map_;
};

// At most `limit` in any window: a deque of stamps per key.
class MutexLog {
 public:
  MutexLog(size_t limit, int64_t window_ns) : limit_(limit), window_ns_(window_ns) {}

  bool Check(std::string_view key, int64_t now_ns) {
    return map_.With(key, [&](std::deque<int64_t>& stamps) {
      while (!stamps.empty() && stamps.front() + window_ns_ <= now_ns) {
        stamps.pop_front();
      }
      if (stamps.size() >= limit_) {
        return false;
      }
      stamps.push_back(now_ns);
      return true;
    });
  }

 private:
  size_t limit_;
  int64_t window_ns_;
  ShardedMap<std::deque<int64_t>> map_;
};

}  // namespace weir::bench
