// weir/redis.h.
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "weir/redis.h"

#include "base/key_hash.h"
#include "shared/fleet_store.h"

namespace weir {

namespace {

// Alike on every node; what keeps keys apart from those who guess is the fleet's secret.
uint64_t ScopeOf(std::string_view name) noexcept {
  constexpr uint64_t kSeed = 0x6c696d69746572;
  return base::HashKeySeeded(name, kSeed);
}

struct AsyncCheck {
  std::string key;
  SharedAsk ask;
  SharedRequest request;
  std::function<void(const Decision&)> done;
};

}  // namespace

Result<std::shared_ptr<SharedStore>> RedisStore::Create(const RedisOptions& options) {
  auto store = shared::FleetStore::Create(options);
  if (!store) {
    return store.error();
  }
  return std::shared_ptr<SharedStore>(std::move(*store));
}

Result<RedisLimiter> RedisLimiter::Create(const Quota& quota, std::shared_ptr<SharedStore> store,
                                          std::string_view name, OnStoreFailure on_failure) {
  if (store == nullptr) {
    return Error::Invalid("store: none given; make one with RedisStore::Create");
  }
  const auto bound = store->Bind(quota, ScopeOf(name));
  if (!bound) {
    return bound.error();
  }
  return RedisLimiter(std::move(store), *bound, on_failure);
}

Decision RedisLimiter::Check(std::string_view key, Cost cost) noexcept {
  SharedAsk ask{.quota = bound_, .key = key, .cost = cost, .on_failure = on_failure_};
  SharedRequest request{.asks = {&ask, 1}};
  store_->Decide(request);
  return ask.decision;
}

void RedisLimiter::CheckThen(std::string_view key, Cost cost,
                             std::function<void(const Decision&)> done) {
  auto* const check = new AsyncCheck;  // its own until it is told, which happens once
  check->key = key;
  check->ask = {.quota = bound_, .key = check->key, .cost = cost, .on_failure = on_failure_};
  check->request.asks = {&check->ask, 1};
  check->done = std::move(done);
  store_->DecideThen(check->request, [check] {
    const std::unique_ptr<AsyncCheck> told(check);
    told->done(told->ask.decision);
  });
}

}  // namespace weir
