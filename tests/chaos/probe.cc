#include "tests/chaos/probe.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>

#include "weir/time.h"

namespace weir::chaos {

namespace {

constexpr int64_t kStep = kMs;
constexpr int64_t kWorthNoting = kMs;
constexpr int64_t kLong = 5 * kMs;

}  // namespace

int64_t NowNs() {
  return SystemClock().Now().time_since_epoch().count();
}

void WaitUntil(int64_t instant_ns) {
  for (int64_t left = instant_ns - NowNs(); left > 0; left = instant_ns - NowNs()) {
    const timespec time{.tv_sec = left / kSecond, .tv_nsec = left % kSecond};
    ::ppoll(nullptr, 0, &time, nullptr);
  }
}

void WaitFor(int64_t ns) {
  WaitUntil(NowNs() + ns);
}

Probe::Probe() {
  const size_t processors = std::max(1U, std::thread::hardware_concurrency());
  for (size_t i = 0; i < processors; ++i) {
    threads_.emplace_back([this, i] { Run(i); });
  }
}

Probe::~Probe() {
  ends_ = true;
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void Probe::Run(size_t processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  ::sched_setaffinity(0, sizeof one, &one);  // where that is forbidden, it probes where it runs
  while (!ends_) {
    const int64_t due = NowNs() + kStep;
    WaitUntil(due);
    const int64_t now = NowNs();
    if (now - due >= kWorthNoting) {
      const std::lock_guard lock(mutex_);
      stalls_.push_back({due, now});
    }
  }
}

void Probe::Clear() {
  const std::lock_guard lock(mutex_);
  stalls_.clear();
}

int64_t Probe::StalledNs(int64_t begin_ns, int64_t end_ns) const {
  std::vector<Stall> within;
  {
    const std::lock_guard lock(mutex_);
    for (const Stall& stall : stalls_) {
      if (stall.end_ns > begin_ns && stall.begin_ns < end_ns) {
        within.push_back({std::max(stall.begin_ns, begin_ns), std::min(stall.end_ns, end_ns)});
      }
    }
  }
  std::sort(within.begin(), within.end(),
            [](const Stall& a, const Stall& b) { return a.begin_ns < b.begin_ns; });
  int64_t sum = 0;
  int64_t reached = begin_ns;
  for (const Stall& stall : within) {
    sum += std::max<int64_t>(0, stall.end_ns - std::max(stall.begin_ns, reached));
    reached = std::max(reached, stall.end_ns);
  }
  return sum;
}

Probe::Summary Probe::Sum() const {
  const std::lock_guard lock(mutex_);
  Summary summary;
  for (const Stall& stall : stalls_) {
    const int64_t took = stall.end_ns - stall.begin_ns;
    summary.stalls += took > kLong ? 1 : 0;
    summary.longest_ns = std::max(summary.longest_ns, took);
  }
  return summary;
}

}  // namespace weir::chaos
