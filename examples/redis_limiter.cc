// One limit for all processes that run this at the same time, through Redis.
//
//   ./redis_limiter redis://localhost
//
// Without Redis it goes on with this process's share of the limit, and says so.
#include <cstdio>

#include "weir/redis.h"

int main(int argc, char** argv) {
  weir::RedisOptions options;
  options.url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379";
  options.fleet_secret = "the same on every node";
  options.nodes = 2;  // how many processes share the limit
  options.start_wait = std::chrono::milliseconds(100);
  options.on_event = [](const weir::RedisEvent& event) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(event.text.size()), event.text.data());
  };
  auto store = weir::RedisStore::Create(options);
  if (!store) {
    std::fprintf(stderr, "%s\n", store.error().message.c_str());
    return 1;
  }
  auto limiter = weir::RedisLimiter::Create(*weir::Quota::Parse("10/min burst 4"), *store, "demo");
  if (!limiter) {
    std::fprintf(stderr, "%s\n", limiter.error().message.c_str());
    return 1;
  }
  for (int i = 1; i <= 6; ++i) {
    const weir::Decision decision = limiter->Check("user:42");
    std::printf("request %d: %s, decided by %s\n", i, decision.allowed() ? "allowed" : "denied",
                decision.basis == weir::Basis::kLocal    ? "this node's share"
                : decision.basis == weir::Basis::kCached ? "a denial that it remembers"
                                                         : "Redis");
  }
}
