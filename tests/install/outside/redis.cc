// An outside user's limit that processes share. There is no Redis here: this process's share
// decides.
#include <cstdio>

#include <weir/redis.h>

int main() {
  auto store = weir::RedisStore::Create({.url = "redis://127.0.0.1:1", .start_wait = {}});
  if (!store) {
    std::puts(store.error().message.c_str());
    return 1;
  }
  auto limiter = weir::RedisLimiter::Create(*weir::Quota::Parse("2/h burst 2"), *store, "outside");
  for (int i = 0; i < 3; ++i) {
    const weir::Decision decision = limiter->Check("user:1");
    std::printf("%s remaining=%u\n", decision.allowed() ? "allowed" : "denied", decision.remaining);
  }
}
