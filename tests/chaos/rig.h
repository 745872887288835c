// What the rows stand on: a real Redis Cluster of three masters with a replica each, and three
// stores on it, which are three nodes of a fleet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weir/redis.h"

#include "shared/fleet_store.h"
#include "testing/fault_proxy.h"
#include "testing/redis_process.h"

namespace weir::chaos {

inline constexpr size_t kMasters = 3;
inline constexpr size_t kNodes = 3;  // of weir
inline constexpr int64_t kNodeTimeoutMs = 2000;
// For rows that judge counts: a machine that stands still for a moment is no fault of theirs.
inline constexpr Duration kPatientTimeout = std::chrono::seconds(5);
inline constexpr uint64_t kPatientCrowd = 60;

class Rig {
 public:
  // kProxied: the Cluster names a fault proxy wherever it would name a node.
  enum class Way : uint8_t { kDirect, kProxied };
  explicit Rig(Way way = Way::kDirect);

  [[nodiscard]] testing::RedisCluster& cluster() noexcept { return cluster_; }
  [[nodiscard]] testing::RedisProcess& redis(size_t index) { return cluster_.node(index); }
  [[nodiscard]] const std::vector<std::unique_ptr<testing::FaultProxy>>& proxies() const noexcept {
    return proxies_;
  }

  // All nodes as a client finds them; straight to them, or by the proxies.
  [[nodiscard]] std::string url() const;
  [[nodiscard]] RedisOptions options() const;
  // Ready when this returns.
  [[nodiscard]] std::shared_ptr<shared::FleetStore> Open(const RedisOptions& options) const;
  [[nodiscard]] std::vector<std::shared_ptr<shared::FleetStore>> OpenFleet(
      const RedisOptions& options) const;

  // Asks each of the six.
  void AskAll(const std::vector<std::string>& command);
  [[nodiscard]] bool IsMaster(size_t index);
  // Every node agrees with every other, all slots are served and replicas follow.
  [[nodiscard]] bool IsWell();

 private:
  void PutProxiesBetween();

  testing::RedisCluster cluster_;
  std::vector<std::unique_ptr<testing::FaultProxy>> proxies_;
};

[[nodiscard]] std::vector<shared::FleetStore*> Pointers(
    const std::vector<std::shared_ptr<shared::FleetStore>>& stores);

// Names of `count` keys whose slots lie in [first, last] for this quota.
[[nodiscard]] std::vector<std::string> KeysInSlots(const SharedQuota& quota, size_t count,
                                                   uint16_t first, uint16_t last);
// The same for all slots that a master has at first.
[[nodiscard]] std::vector<std::string> KeysOfMaster(const SharedQuota& quota, size_t count,
                                                    size_t master);

}  // namespace weir::chaos
