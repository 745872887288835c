// A queue without an event loop: the decision says when to start, the caller waits as it likes, and
// whoever gives up hands its place back.
#include <cstdio>

#include "weir/limiter.h"

int main() {
  weir::ManualClock clock;  // so that the example need not wait
  auto quota = weir::Quota::Parse("10/s burst 21 queue");
  auto limiter = weir::Limiter::Create(*quota, {.clock = &clock});
  std::printf("nobody waits longer than %lld ms\n",
              static_cast<long long>(quota->longest_wait().count() / 1'000'000));
  weir::Receipt receipt;
  for (int i = 1; i <= 3; ++i) {
    const weir::Decision d = limiter->Check("printer", {.receipt = &receipt});
    std::printf("job %d starts in %lld ms\n", i,
                static_cast<long long>(d.start_after().count() / 1'000'000));
  }
  limiter->GiveBack(receipt);  // the third has changed its mind
  const weir::Decision d = limiter->Check("printer");
  std::printf("the next takes its place, in %lld ms\n",
              static_cast<long long>(d.start_after().count() / 1'000'000));
  return d.start_after() == std::chrono::milliseconds(200) ? 0 : 1;
}
