#include "tests/chaos/rig.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "redis/slots.h"
#include "shared/fleet_quota.h"
#include "store/redis/key_name.h"
#include "tests/shared/store_testing.h"

namespace weir::chaos {

namespace {

constexpr const char* kSecret = "chaos";
constexpr size_t kSlotCount = 16384;

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "chaos: %s\n", what);
  std::exit(2);
}

}  // namespace

Rig::Rig(Way way)
    : cluster_(kMasters, 1,
               {"cluster-node-timeout " + std::to_string(kNodeTimeoutMs),
                // Else the slots of one lost master take all the others along.
                "cluster-require-full-coverage no"}) {
  if (way == Way::kProxied) {
    PutProxiesBetween();
  }
}

void Rig::PutProxiesBetween() {
  for (size_t i = 0; i < cluster_.size(); ++i) {
    proxies_.push_back(std::make_unique<testing::FaultProxy>(
        testing::FaultProxy::Options{.upstream = redis(i).address(), .port = 0, .seed = i + 1}));
    redis(i).Ask({"CONFIG", "SET", "cluster-announce-port", std::to_string(proxies_[i]->port())});
  }
  const bool told = shared::Eventually([this] {
    for (size_t i = 0; i < cluster_.size(); ++i) {
      const std::string slots = redis(i).Ask({"CLUSTER", "SLOTS"});
      for (size_t master = 0; master < kMasters; ++master) {
        if (slots.find(" " + std::to_string(proxies_[master]->port()) + " ") == std::string::npos) {
          return false;
        }
      }
    }
    return true;
  });
  if (!told) {
    Die("the Cluster does not name the proxies");
  }
}

std::string Rig::url() const {
  std::string url = "redis+cluster://";
  const std::vector<uint16_t> ports = cluster_.ports();
  for (size_t i = 0; i < ports.size(); ++i) {
    const uint16_t port = proxies_.empty() ? ports[i] : proxies_[i]->port();
    url += (i == 0 ? "" : ",") + ("127.0.0.1:" + std::to_string(port));
  }
  return url;
}

RedisOptions Rig::options() const {
  return {.url = url(),
          .fleet_secret = kSecret,
          .nodes = kNodes,
          .start_wait = std::chrono::seconds(10)};
}

std::shared_ptr<shared::FleetStore> Rig::Open(const RedisOptions& options) const {
  auto store = shared::FleetStore::Create(options);
  if (!store) {
    Die(store.error().message.c_str());
  }
  // A first question for each master, so that scripts are there.
  const SharedQuota* const quota = shared::Bound(**store, "1000/s burst 1000", 999);
  for (size_t master = 0; master < kMasters; ++master) {
    const std::string key = KeysOfMaster(*quota, 1, master).front();
    if (!shared::Eventually(
            [&] { return shared::AskOne(**store, quota, key).basis == Basis::kStore; })) {
      Die("a store does not reach the Cluster");
    }
  }
  return *store;
}

std::vector<std::shared_ptr<shared::FleetStore>> Rig::OpenFleet(const RedisOptions& options) const {
  std::vector<std::shared_ptr<shared::FleetStore>> stores;
  for (size_t i = 0; i < kNodes; ++i) {
    stores.push_back(Open(options));
  }
  return stores;
}

void Rig::AskAll(const std::vector<std::string>& command) {
  for (size_t i = 0; i < cluster_.size(); ++i) {
    redis(i).Ask(command);
  }
}

bool Rig::IsMaster(size_t index) {
  return redis(index).Ask({"ROLE"}).starts_with("master");
}

bool Rig::IsWell() {
  size_t masters = 0;
  for (size_t i = 0; i < cluster_.size(); ++i) {
    const std::string info = redis(i).Ask({"CLUSTER", "INFO"});
    const std::string nodes = redis(i).Ask({"CLUSTER", "NODES"});
    const std::string replication = redis(i).Ask({"INFO", "replication"});
    const bool master = replication.find("role:master") != std::string::npos;
    masters += master ? 1 : 0;
    if (info.find("cluster_state:ok") == std::string::npos ||
        info.find("cluster_slots_ok:16384") == std::string::npos ||
        nodes.find("fail") != std::string::npos ||
        replication.find(master ? "connected_slaves:1" : "master_link_status:up") ==
            std::string::npos) {
      return false;
    }
  }
  return masters == kMasters;
}

std::vector<shared::FleetStore*> Pointers(
    const std::vector<std::shared_ptr<shared::FleetStore>>& stores) {
  std::vector<shared::FleetStore*> pointers;
  for (const auto& store : stores) {
    pointers.push_back(store.get());
  }
  return pointers;
}

std::vector<std::string> KeysInSlots(const SharedQuota& quota, size_t count, uint16_t first,
                                     uint16_t last) {
  const auto& own = static_cast<const shared::FleetQuota&>(quota);
  const script::KeySecret secret(kSecret);
  std::vector<std::string> keys;
  for (uint64_t number = 0; keys.size() < count; ++number) {
    std::string key = "user:" + std::to_string(number);
    const script::Digest digest = secret.Of(own.scope, own.plan.kind(), key);
    const uint16_t slot = redis::SlotOf(script::KeyName::OfState(digest));
    if (slot >= first && slot <= last) {
      keys.push_back(std::move(key));
    }
  }
  return keys;
}

std::vector<std::string> KeysOfMaster(const SharedQuota& quota, size_t count, size_t master) {
  return KeysInSlots(quota, count, static_cast<uint16_t>(kSlotCount * master / kMasters),
                     static_cast<uint16_t>(kSlotCount * (master + 1) / kMasters - 1));
}

}  // namespace weir::chaos
