#include "server/fleet.h"

#include <chrono>
#include <utility>

#include "weir/redis.h"

#include "server/log.h"
#include "shared/fleet_store.h"

namespace weir::server {

namespace {

void Tell(const RedisEvent& event) {
  Log(event.trouble ? LogLevel::kError : LogLevel::kInfo, event.text,
      {{"node", event.node}, {"cause", event.cause}});
}

}  // namespace

Result<std::shared_ptr<shared::FleetStore>> OpenFleet(const ServerConfig& config) {
  if (config.redis.empty()) {
    return std::shared_ptr<shared::FleetStore>();
  }
  RedisOptions options;
  options.url = config.redis;
  options.timeout = std::chrono::microseconds(config.redis_timeout_us);
  options.fleet_secret = config.fleet_secret;
  options.nodes = config.fleet_nodes;
  options.allow_eviction = config.redis_allow_eviction;
  options.on_event = Tell;
  auto store = shared::FleetStore::Create(options);
  if (!store) {
    return Error{store.error().code, "--redis: " + store.error().message};
  }
  Log(LogLevel::kInfo, "limits are counted in Redis, together with all who count there",
      {{"redis", (*store)->ToText()}, {"fleet_nodes", config.fleet_nodes}});
  if (config.fleet_secret.empty()) {
    Log(LogLevel::kWarning,
        "no --fleet-secret-file: whoever can write to this Redis can tell which key is whose");
  }
  return store;
}

void Join(net::Loop& loop, shared::FleetStore* store) {
  if (store == nullptr) {
    return;
  }
  loop.LetSessionsWait();
  loop.Post([&loop, store] {
    if (const Result<void> attached = store->Attach(loop.context()); !attached) {
      // Then its questions go by the store's own loop, which is slower and not wrong.
      Log(LogLevel::kError, "a loop has no way of its own to Redis",
          {{"why", attached.error().message}});
      return;
    }
    loop.OnStop([store] { store->Detach(); });
  });
}

}  // namespace weir::server
