// Charge an estimate first, settle with what it came to: 20,000 tokens an hour for each tenant.
#include <cstdint>
#include <cstdio>

#include "weir/limiter.h"

namespace {

// A model that is asked for at most `most` tokens and says afterwards how many it made.
uint32_t Generate(int request, uint32_t most) {
  return request % 3 == 0 ? most / 10 : most - 500;
}

}  // namespace

int main() {
  auto limiter =
      weir::Limiter::Create(*weir::Quota::Parse("20000/h sliding-window"), {.record_percent = 5});
  if (!limiter) {
    std::puts(limiter.error().message.c_str());
    return 1;
  }
  constexpr uint32_t kMost = 4000;
  for (int request = 0; request < 8; ++request) {
    const weir::Reserved got = limiter->Reserve("tenant:7", kMost);
    if (!got.allowed()) {
      std::printf("request %d: only %u tokens left\n", request, got.decision.remaining);
      break;
    }
    const uint32_t used = Generate(request, kMost);
    const weir::Settlement settled = limiter->Settle(got.reservation, used);
    std::printf("request %d: used %u, %u given back, %u left\n", request, used, settled.given_back,
                settled.decision.remaining);
    // The answer was lost on its way and the caller settles again: it counts once.
    if (limiter->Settle(got.reservation, used).settled()) {
      return 1;
    }
  }
  return 0;
}
