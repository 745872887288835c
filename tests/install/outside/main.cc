#include <cstdio>

#include "weir/limiter.h"

int main() {
  auto limiter = weir::Limiter::Create(*weir::Quota::Parse("2/h burst 2"));
  for (int i = 0; i < 3; ++i) {
    const weir::Decision decision = limiter->Check("user:42");
    std::printf("%s remaining=%u\n", decision.allowed() ? "allowed" : "denied", decision.remaining);
  }
}
