// Charge first, give back if the work did not happen.
#include <cstdio>

#include "weir/limiter.h"

namespace {

bool CallUpstream(int attempt) {
  return attempt % 2 == 0;
}

}  // namespace

int main() {
  auto limiter = weir::Limiter::Create(*weir::Quota::Parse("100/h fixed-window"));
  if (!limiter) {
    std::puts(limiter.error().message.c_str());
    return 1;
  }
  for (int attempt = 0; attempt < 4; ++attempt) {
    weir::Receipt receipt;
    if (!limiter->Check("tenant:7", {.cost = 10, .receipt = &receipt}).allowed()) {
      break;
    }
    if (!CallUpstream(attempt)) {
      std::printf("attempt %d failed: %u units given back\n", attempt, limiter->GiveBack(receipt));
    }
  }
  std::printf("%u of 100 left\n", limiter->Check("tenant:7", 0).remaining);
  return 0;
}
