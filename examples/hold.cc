// At most so many at the same time, and a lock whose late holder is told apart.
#include <cstdint>
#include <cstdio>

#include "weir/limiter.h"

namespace {

// What a lock protects: it refuses whoever comes with a smaller number than it has seen.
struct Resource {
  uint64_t largest_fence = 0;

  bool Write(uint64_t fence) {
    if (fence < largest_fence) {
      return false;
    }
    largest_fence = fence;
    return true;
  }
};

}  // namespace

int main() {
  weir::ManualClock clock;
  auto limiter = weir::Limiter::Create(*weir::Quota::Parse("concurrency 1 lease 30s"),
                                       {.budget_bytes = 1 << 20, .clock = &clock});
  if (!limiter) {
    std::puts(limiter.error().message.c_str());
    return 1;
  }
  {
    const weir::ScopedHold hold(*limiter, limiter->Acquire("report"));
    const weir::Acquired second = limiter->Acquire("report");
    std::printf("first %s, second %s, again in %lld s at the latest\n", hold ? "in" : "out",
                second.allowed() ? "in" : "out",
                static_cast<long long>(second.decision.retry_after.count() / 1'000'000'000));
  }
  Resource resource;
  const weir::Acquired paused = limiter->Acquire("report");
  clock.Advance(std::chrono::seconds(31));  // longer than its lease, and it does not know
  const weir::Acquired next = limiter->Acquire("report");
  std::printf("the next holder is %s\n", next.allowed() ? "in" : "out");
  std::printf("its write is %s\n", resource.Write(next.hold.fence()) ? "taken" : "refused");
  std::printf("the late one's is %s\n", resource.Write(paused.hold.fence()) ? "taken" : "refused");
  std::printf("the late one's release does %s\n",
              limiter->Release(paused.hold) ? "something" : "nothing");
  return 0;
}
