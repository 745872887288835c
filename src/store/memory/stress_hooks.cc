#include "store/memory/stress_hooks.h"

#include <sched.h>

#include <utility>

#include "base/spin_lock.h"

namespace weir::store {

std::atomic<Mutant> planted_mutant{Mutant::kNone};

namespace {

thread_local uint64_t delay_state = 0;
thread_local TestPoint interrupted_point{};
thread_local std::function<void()> interruption;

void Delay() {
  delay_state = delay_state * 6364136223846793005U + 1442695040888963407U;
  const uint64_t bits = delay_state >> 32;
  if (bits % 64 != 0) {
    return;
  }
  for (uint64_t i = 0; i < bits / 64 % 128; ++i) {
    base::CpuRelax();
  }
  // Rarely: on a busy machine it takes milliseconds to get the processor back.
  if ((bits >> 16) % 16 == 0) {
    sched_yield();
  }
}

}  // namespace

void InterruptAt(TestPoint point, std::function<void()> action) {
  interrupted_point = point;
  interruption = std::move(action);
}

bool Interrupted() {
  return !interruption;
}

void DelayThisThread(uint64_t seed) {
  delay_state = seed | 1;
}

void ReachTestPoint(TestPoint point) noexcept {
  if (interruption && point == interrupted_point) {
    const uint64_t identity = early_identity;
    std::exchange(interruption, nullptr)();
    early_identity = identity;
  }
  if (delay_state != 0) {
    Delay();
  }
}

}  // namespace weir::store
