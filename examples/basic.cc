// One limit by key, in ten lines.
#include <cstdio>

#include "weir/limiter.h"

int main() {
  auto limiter = weir::Limiter::Create(*weir::Quota::Parse("5/s burst 3"));
  if (!limiter) {
    std::puts(limiter.error().message.c_str());
    return 1;
  }
  for (int i = 1; i <= 5; ++i) {
    const weir::Decision decision = limiter->Check("user:42");
    std::printf("request %d: %s, %u left\n", i, decision.allowed() ? "allowed" : "denied",
                decision.remaining);
  }
  return 0;
}
