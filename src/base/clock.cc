// The one place that reads the machine's clocks.
#include <ctime>

#include "weir/time.h"

namespace weir {

namespace {

int64_t ReadNs(clockid_t id) noexcept {
  timespec time{};
  clock_gettime(id, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

class MachineClock final : public Clock {
 public:
  [[nodiscard]] Timestamp Now() const noexcept override {
    return Timestamp(Duration(ReadNs(CLOCK_MONOTONIC)));
  }

  [[nodiscard]] WallTime WallNow() const noexcept override {
    return WallTime(Duration(ReadNs(CLOCK_REALTIME)));
  }
};

}  // namespace

const Clock& SystemClock() noexcept {
  static const MachineClock clock;
  return clock;
}

}  // namespace weir
