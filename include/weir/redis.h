// Limits that many processes share, through Redis.
//
//   auto store = weir::RedisStore::Create({.url = "redis://localhost", .nodes = 3});
//   auto limiter = weir::RedisLimiter::Create(*weir::Quota::Parse("100/min"), *store, "api");
//   if (!limiter->Check("user:42").allowed()) return TooManyRequests();
//
// Redis may be absent, slow or failing, at the start too: a check never waits longer than the
// deadline, and then the failure policy decides (rule_set.h, OnStoreFailure). Decision::basis says
// which it was. The same store serves rules (RuleLimiterOptions::shared).
//
// Link weir::redis. Every call may be made from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weir/decision.h"
#include "weir/quota.h"
#include "weir/result.h"
#include "weir/rule_set.h"
#include "weir/shared_store.h"
#include "weir/time.h"

namespace weir {

// Something changed between us and a node of Redis: it is away, or back. Told once for each change.
struct RedisEvent {
  bool trouble = false;    // false: it is over, or it is only news
  std::string_view node;   // its address
  std::string_view cause;  // a short name: "refused", "password"
  std::string_view text;   // one line: what, where, why, and what to do about it
};

struct RedisOptions {
  // redis://, rediss://, unix://, redis+sentinel://, redis+cluster://, redis+list://: see
  // docs/reference/redis.md.
  std::string url = "redis://localhost:6379";
  Duration timeout{};  // of one call. Zero: what the URL says, or 10 ms
  // Any text, the same on every node of a fleet. Keys are stored under digests made with it.
  std::string fleet_secret{};
  // Of this fleet: while the store is away each node admits this part of every limit.
  uint32_t nodes = 1;
  // For what this process remembers of keys: 64 bytes each.
  size_t memory_bytes = size_t{16} << 20;
  // How long a denial is remembered here, so that who asks again costs Redis nothing; what other
  // nodes give back or reset is noticed after this time. Zero: not at all.
  Duration denial_memory = std::chrono::seconds(1);
  // How long the store remembers a request's id (SharedRequest::id).
  Duration id_memory = std::chrono::minutes(1);
  // Create waits this long for Redis to be there; without it, it goes on all the same.
  Duration start_wait = std::chrono::milliseconds(500);
  // A Redis that forgets keys when its memory is full grants fresh limits to whoever it forgot, so
  // it is refused unless this is set.
  bool allow_eviction = false;
  const Clock* clock = nullptr;  // nullptr: SystemClock(). Must outlive the store.
  // Called from a loop's thread; must not block and must not use the store.
  std::function<void(const RedisEvent&)> on_event{};
};

class RedisStore {
 public:
  // Fails for options that are not allowed, and for a Redis that evicts. Not for one that is away.
  static Result<std::shared_ptr<SharedStore>> Create(const RedisOptions& options);
};

class RedisLimiter {
 public:
  // `name` keeps the keys of one limiter apart from those of another; nodes that share a limit
  // give it the same one.
  static Result<RedisLimiter> Create(const Quota& quota, std::shared_ptr<SharedStore> store,
                                     std::string_view name,
                                     OnStoreFailure on_failure = OnStoreFailure::kLocal);

  // Blocks for a round trip.
  Decision Check(std::string_view key, Cost cost = 1) noexcept;
  // `done` is called once, from a thread of the store, soon. It must not block.
  void CheckThen(std::string_view key, Cost cost, std::function<void(const Decision&)> done);

  [[nodiscard]] const Quota& quota() const noexcept { return bound_->quota; }

 private:
  RedisLimiter(std::shared_ptr<SharedStore> store, const SharedQuota* bound,
               OnStoreFailure on_failure)
      : store_(std::move(store)), bound_(bound), on_failure_(on_failure) {}

  std::shared_ptr<SharedStore> store_;
  const SharedQuota* bound_;
  OnStoreFailure on_failure_;
};

}  // namespace weir
