// Time as weir sees it: typed, injected, never a double.
//
// A Timestamp belongs to the limiter's own monotonic time base and cannot be mixed up with wall
// time. Most programs never touch this header: `limiter.Check(key)` reads the clock itself. Tests
// pass a ManualClock and move it by hand:
//
//   weir::ManualClock clock;
//   auto limiter = weir::Limiter::Create(quota, {.clock = &clock});
//   clock.Advance(std::chrono::seconds(5));
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace weir {

using Duration = std::chrono::nanoseconds;

// A tag, not a clock: it has no now(), so a Timestamp can only come from a Clock.
struct LimiterClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<LimiterClock>;
  static constexpr bool is_steady = true;
};

using Timestamp = std::chrono::time_point<LimiterClock, Duration>;
using WallTime = std::chrono::sys_time<Duration>;

// Where a limiter gets its time. Implementations must be callable from any thread.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  // Monotonic time; decides every rate. A step back counts as no time passed.
  [[nodiscard]] virtual Timestamp Now() const noexcept = 0;
  // Wall time; decides calendar periods and where epoch-aligned windows begin.
  [[nodiscard]] virtual WallTime WallNow() const noexcept = 0;
};

// The machine's own clocks. This is what a limiter uses unless told otherwise.
[[nodiscard]] const Clock& SystemClock() noexcept;

// A clock that moves only when told. Both faces move together unless one is set by itself.
class ManualClock final : public Clock {
 public:
  ManualClock() = default;
  explicit ManualClock(WallTime wall) : wall_ns_(wall.time_since_epoch().count()) {}

  [[nodiscard]] Timestamp Now() const noexcept override {
    return Timestamp(Duration(now_ns_.load(std::memory_order_relaxed)));
  }

  [[nodiscard]] WallTime WallNow() const noexcept override {
    return WallTime(Duration(wall_ns_.load(std::memory_order_relaxed)));
  }

  // Relaxed throughout: the value stands alone, nothing else is published with it.
  void Advance(Duration by) noexcept {
    now_ns_.fetch_add(by.count(), std::memory_order_relaxed);
    wall_ns_.fetch_add(by.count(), std::memory_order_relaxed);
  }

  void SetNow(Timestamp now) noexcept {
    now_ns_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }

  void SetWall(WallTime wall) noexcept {
    wall_ns_.store(wall.time_since_epoch().count(), std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> now_ns_{0};
  std::atomic<int64_t> wall_ns_{0};
};

}  // namespace weir
