// The shared store on the topologies besides one server: a master that Sentinels name, a list of
// plain instances, a Cluster whose master dies.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "testing/fault_proxy.h"
#include "tests/shared/store_testing.h"

namespace weir::shared {
namespace {

using testing::RedisCluster;
using testing::RedisProcess;

constexpr const char* kSlow = "100/day burst 100";  // nothing refills while a test runs

bool IsAnsweredByTheStore(FleetStore& store, std::string_view key) {
  return AskOne(store, Bound(store, kSlow), key, {.cost = 0}).basis == Basis::kStore;
}

uint32_t Left(FleetStore& store, std::string_view key) {
  Decision decision;
  EXPECT_TRUE(Eventually([&] {
    decision = AskOne(store, Bound(store, kSlow), key, {.cost = 0});
    return decision.basis == Basis::kStore;
  }));
  return decision.remaining;
}

// A master with a replica, and three Sentinels that watch them.
class Watched {
 public:
  Watched() {
    for (int i = 0; i < 3; ++i) {
      const std::string port = std::to_string(first.port());
      sentinels_.push_back(std::make_unique<RedisProcess>(
          RedisProcess::Options{.config = {"sentinel monitor mymaster 127.0.0.1 " + port + " 2",
                                           "sentinel down-after-milliseconds mymaster 1000",
                                           "sentinel failover-timeout mymaster 3000"},
                                .sentinel = true}));
    }
    const auto knows_all = [](const std::unique_ptr<RedisProcess>& sentinel) {
      const std::string text = sentinel->Ask({"SENTINEL", "MASTER", "mymaster"});
      return text.find("num-slaves 1 ") != std::string::npos &&
             text.find("num-other-sentinels 2 ") != std::string::npos;
    };
    EXPECT_TRUE(
        Eventually([&] { return std::all_of(sentinels_.begin(), sentinels_.end(), knows_all); }));
  }

  [[nodiscard]] std::string url() const {
    std::string hosts;
    for (const auto& sentinel : sentinels_) {
      hosts += (hosts.empty() ? "" : ",") + sentinel->address();
    }
    return "redis+sentinel://" + hosts + "/mymaster";
  }

  RedisProcess first{{}};
  RedisProcess second{{.config = {"replicaof 127.0.0.1 " + std::to_string(first.port()),
                                  "repl-diskless-sync-delay 0"}}};

 private:
  std::vector<std::unique_ptr<RedisProcess>> sentinels_;
};

TEST(StoreTopology, ASuccessorThatSentinelsNameGoesOnWhereTheMasterWas) {
  Watched redis;
  RedisOptions options = Patient(redis.url());
  options.nodes = 2;
  const auto one = Open(options);
  const auto other = Open(options);
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(AskOne(*one, Bound(*one, kSlow), "k").basis, Basis::kStore);
    ASSERT_EQ(AskOne(*other, Bound(*other, kSlow), "k").basis, Basis::kStore);
  }
  ASSERT_EQ(redis.first.Ask({"WAIT", "1", "10000"}), "1");  // the replica has it all
  redis.first.Kill();
  EXPECT_TRUE(Eventually([&] { return !IsAnsweredByTheStore(*one, "k"); }));
  // Half of the 40 that were left. Of those whose question was sent nobody knows what became of it.
  uint32_t admitted = 0;
  uint32_t unsure = 0;
  for (int i = 0; i < 20; ++i) {
    StoreTrouble trouble = StoreTrouble::kNone;
    const Decision decision = AskOne(*one, Bound(*one, kSlow), "k", {.trouble = &trouble});
    EXPECT_TRUE(decision.allowed());
    admitted += decision.allowed() ? 1 : 0;
    unsure += trouble == StoreTrouble::kTimeout ? 1 : 0;
  }
  // Exact again, by both, and what was admitted meanwhile is counted.
  const auto is_counted = [&] {
    const uint32_t charged = 40U - Left(*one, "k");
    return charged <= admitted && charged + unsure >= admitted;
  };
  EXPECT_TRUE(Eventually(is_counted)) << Left(*one, "k") << " left, " << admitted
                                      << " admitted meanwhile, " << unsure << " without a reply";
  EXPECT_EQ(Left(*other, "k"), Left(*one, "k"));
  EXPECT_TRUE(Eventually([&] { return one->Nodes().at(0).address == redis.second.address(); }));
}

TEST(StoreTopology, AListOfInstancesIsExactAndOneOfThemMayDie) {
  std::vector<std::unique_ptr<RedisProcess>> instances;
  std::string hosts;
  for (int i = 0; i < 3; ++i) {
    instances.push_back(std::make_unique<RedisProcess>(RedisProcess::Options{}));
    hosts += (hosts.empty() ? "" : ",") + instances.back()->address();
  }
  const auto one = Open(Patient("redis+list://" + hosts));
  const auto other = Open(Patient("redis+list://" + hosts));
  constexpr int kKeys = 60;
  uint64_t admitted = 0;
  for (int round = 0; round < 4; ++round) {
    for (int key = 0; key < kKeys; ++key) {
      FleetStore& store = round % 2 == 0 ? *one : *other;
      const Decision decision = AskOne(store, Bound(store, "3/day burst 3"), std::to_string(key));
      EXPECT_EQ(decision.basis, Basis::kStore);
      admitted += decision.allowed() ? 1 : 0;
    }
  }
  EXPECT_EQ(admitted, 3U * kKeys);
  for (const auto& instance : instances) {
    EXPECT_GT(std::stoi(instance->Ask({"DBSIZE"})), kKeys / 10);
  }
  // Whose each key is, by who has one more with it.
  const SharedQuota* const quota = Bound(*one, kSlow, 2);
  std::vector<bool> lost(kKeys);
  size_t kept = 0;
  for (int key = 0; key < kKeys; ++key) {
    const std::string before = instances[1]->Ask({"DBSIZE"});
    ASSERT_EQ(AskOne(*one, quota, std::to_string(key)).basis, Basis::kStore);
    lost[static_cast<size_t>(key)] = instances[1]->Ask({"DBSIZE"}) != before;
    kept += lost[static_cast<size_t>(key)] ? 0 : 1;
  }
  ASSERT_GT(kept, 0U);
  ASSERT_LT(kept, static_cast<size_t>(kKeys));
  instances[1]->Kill();
  // Its keys are decided here, those of the others there, from the first question on.
  const auto count_local = [&](bool of_lost) {
    size_t local = 0;
    for (int key = 0; key < kKeys; ++key) {
      if (lost[static_cast<size_t>(key)] == of_lost) {
        local += AskOne(*one, quota, std::to_string(key)).basis == Basis::kLocal ? 1 : 0;
      }
    }
    return local;
  };
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(count_local(false), 0U);
    EXPECT_EQ(count_local(true), kKeys - kept);
  }
  instances[1]->Restart();
  EXPECT_TRUE(Eventually([&] { return count_local(true) == 0; }));
}

// What became of a charge is found out where its key is, whoever else is away.
TEST(StoreTopology, AChargeWhoseReplyIsLostIsUndoneAlthoughAnotherInstanceIsDead) {
  RedisProcess dead({});
  RedisProcess redis({});
  testing::FaultProxy proxy({.upstream = redis.address()});
  const auto store = Open(
      Patient("redis+list://" + dead.address() + ",127.0.0.1:" + std::to_string(proxy.port())));
  const SharedQuota* const quota = Bound(*store, kSlow);
  std::string key;
  for (int i = 0; redis.Ask({"DBSIZE"}) == "0"; ++i) {
    key = std::to_string(i);
    ASSERT_TRUE(AskOne(*store, quota, key).allowed());
  }
  dead.Kill();
  proxy.Set({.drop_share = 1});
  const AskOptions lost{.cost = 10, .on_failure = OnStoreFailure::kDeny, .id = "lost"};
  EXPECT_EQ(AskOne(*store, quota, key, lost).basis, Basis::kClosed);
  proxy.Set({});
  EXPECT_TRUE(Eventually([&] { return Left(*store, key) == 99U; }));
  EXPECT_EQ(store->Stats().unsure_ids, 0U);
}

TEST(StoreTopology, SeveralQuotasOnAListAreChargedAllOrNone) {
  RedisProcess first({});
  RedisProcess second({});
  const auto store = Open(Patient("redis+list://" + first.address() + "," + second.address()));
  const SharedQuota* const wide = Bound(*store, kSlow, 1);
  const SharedQuota* const narrow = Bound(*store, "2/day burst 2", 2);
  // Of ten keys some are on one instance with the narrow quota's, some are not.
  for (int key = 0; key < 10; ++key) {
    const std::string name = std::to_string(key);
    int admitted = 0;
    for (int i = 0; i < 5; ++i) {
      SharedAsk asks[] = {{.quota = wide, .key = name}, {.quota = narrow, .key = name}};
      SharedRequest request{.asks = asks};
      store->Decide(request);
      admitted += asks[0].decision.allowed() && asks[1].decision.allowed() ? 1 : 0;
    }
    EXPECT_EQ(admitted, 2);
    EXPECT_TRUE(Eventually([&] { return Left(*store, name) == 98U; }));
  }
}

// What was written was replicated, so that the failover loses nothing: two nodes admit no more than
// the limit and, of keys whose master died, one burst. Those of other masters notice nothing.
TEST(StoreTopology, AClustersReplicaGoesOnWhereItsMasterWas) {
  RedisCluster cluster(3, 1, {"cluster-require-full-coverage no"});
  RedisOptions options = Patient("redis+cluster://" + cluster.node(0).address());
  options.nodes = 2;
  const std::shared_ptr<FleetStore> stores[] = {Open(options), Open(options)};
  constexpr size_t kKeys = 30;
  constexpr uint32_t kBurst = 100;  // of kSlow, which hardly refills
  std::vector<bool> lost(kKeys);
  for (size_t key = 0; key < kKeys; ++key) {
    const std::string before = cluster.node(1).Ask({"DBSIZE"});
    for (int i = 0; i < 10; ++i) {
      const auto& store = stores[i % 2];
      ASSERT_EQ(AskOne(*store, Bound(*store, kSlow), std::to_string(key)).basis, Basis::kStore);
    }
    lost[key] = cluster.node(1).Ask({"DBSIZE"}) != before;
  }
  ASSERT_EQ(cluster.node(1).Ask({"WAIT", "1", "10000"}), "1");
  cluster.node(1).Kill();
  std::vector<uint32_t> admitted(kKeys, 10);
  for (int round = 0; round < 60; ++round) {
    for (size_t key = 0; key < kKeys; ++key) {
      for (const auto& store : stores) {
        const Decision decision =
            AskOne(*store, Bound(*store, kSlow), std::to_string(key), {.cost = 2});
        admitted[key] += decision.charged;
        EXPECT_TRUE(lost[key] || decision.basis != Basis::kLocal) << key;
      }
    }
  }
  for (size_t key = 0; key < kKeys; ++key) {
    EXPECT_LE(admitted[key], lost[key] ? 2 * kBurst : kBurst) << key;
    EXPECT_GE(admitted[key], kBurst - 10) << key;
  }
  for (const auto& store : stores) {
    EXPECT_TRUE(Eventually([&] {
      for (size_t key = 0; key < kKeys; ++key) {
        if (AskOne(*store, Bound(*store, kSlow), std::to_string(key), {.cost = 0}).basis !=
            Basis::kStore) {
          return false;
        }
      }
      return true;
    }));
  }
}

}  // namespace
}  // namespace weir::shared
