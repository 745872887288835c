// The exact oracle of one concurrency key: every hold that was ever taken, looked through each
// time. Shares no code with src/algorithm. Times are nanoseconds of the test's clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weir::testing {

class HoldOracle {
 public:
  struct Held {
    uint64_t units;
    int64_t end;  // the lease ends here, at a whole microsecond
    bool released = false;
  };

  static int64_t EndOf(int64_t now, int64_t lease) { return (now + lease + 999) / 1000 * 1000; }

  [[nodiscard]] uint64_t LiveUnits(int64_t now) const {
    uint64_t units = 0;
    for (const Held& held : holds_) {
      units += IsLive(held, now) ? held.units : 0;
    }
    return units;
  }

  [[nodiscard]] bool Fits(int64_t now, uint64_t cost, uint64_t limit) const {
    return LiveUnits(now) + cost <= limit;
  }

  [[nodiscard]] uint64_t Remaining(int64_t now, uint64_t limit) const {
    const uint64_t live = LiveUnits(now);
    return live >= limit ? 0 : limit - live;
  }

  // Returns a handle for Release and Renew.
  size_t Take(int64_t now, uint64_t units, int64_t lease) {
    holds_.push_back({units, EndOf(now, lease)});
    return holds_.size() - 1;
  }

  // Whether this is what ended it.
  bool Release(size_t handle, int64_t now) {
    const bool live = IsLive(holds_[handle], now);
    holds_[handle].released = true;
    return live;
  }

  bool Renew(size_t handle, int64_t now, int64_t lease) {
    Held& held = holds_[handle];
    if (!IsLive(held, now)) {
      return false;
    }
    held.end = std::max(held.end, EndOf(now, lease));
    return true;
  }

  // The first instant at which the cost fits if nobody releases: now, or the end of some lease.
  // REQUIRES: cost <= limit.
  [[nodiscard]] int64_t FirstFit(int64_t now, uint64_t cost, uint64_t limit) const {
    std::vector<int64_t> instants = {now};
    for (const Held& held : holds_) {
      if (IsLive(held, now)) {
        instants.push_back(held.end);
      }
    }
    std::sort(instants.begin(), instants.end());
    return *std::find_if(instants.begin(), instants.end(),
                         [&](int64_t at) { return Fits(at, cost, limit); });
  }

  // When the last lease ends; now if nothing is held.
  [[nodiscard]] int64_t LastEnd(int64_t now) const {
    int64_t last = now;
    for (const Held& held : holds_) {
      last = IsLive(held, now) ? std::max(last, held.end) : last;
    }
    return last;
  }

 private:
  static bool IsLive(const Held& held, int64_t now) { return !held.released && now < held.end; }

  std::vector<Held> holds_;
};

}  // namespace weir::testing
