#include "redis/client_test.h"
#include "redis/slots.h"

namespace weir::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::RedisCluster;
using testing::RedisProcess;

constexpr Duration kEasy = seconds(5);

TEST_F(ClientTest, AClusterIsFoundFromOneNodeAndReshardedUnderLoad) {
  RedisCluster cluster(3);
  Make("redis+cluster://" + cluster.node(1).address());
  ASSERT_TRUE(Until([&] { return client->ready(); }));
  EXPECT_EQ(client->status().nodes.size(), 3U);
  constexpr size_t kCrowd = 64;
  Tally tally;
  Crowd crowd(context, *client, kCrowd, tally, kEasy);
  ASSERT_TRUE(Until([&] { return tally.good > 1000; }));
  // Slots of the crowd's own keys go round, under way for some calls each.
  for (size_t i = 0; i < 30; ++i) {
    const uint16_t slot = SlotOf(Crowd::KeyOf(i % kCrowd));
    size_t from = 0;
    for (size_t node = 0; node < 3; ++node) {
      const std::string count =
          cluster.node(node).Ask({"CLUSTER", "COUNTKEYSINSLOT", std::to_string(slot)});
      from = count != "0" ? node : from;
    }
    const uint64_t before = tally.good;
    cluster.MoveSlot(slot, from, (from + 1) % 3,
                     [&] { EXPECT_TRUE(Until([&] { return tally.good > before + 300; })); });
    EXPECT_TRUE(Until([&] { return tally.good > before + 600; }));
  }
  crowd.Stop();
  EXPECT_TRUE(Until([&] { return crowd.busy() == 0; }));
  EXPECT_EQ(tally.failed, 0U) << tally.last_text;
  EXPECT_EQ(tally.mismatched, 0U);
  for (size_t i = 0; i < kCrowd; ++i) {
    EXPECT_EQ(Ask({"GET", Crowd::KeyOf(i)}), std::to_string(crowd.books()[i].answered));
  }
  uint64_t redirects = 0;
  for (const NodeStatus& node : client->status().nodes) {
    redirects += node.redirects;
  }
  EXPECT_GT(redirects, 0U);
}

TEST_F(ClientTest, AMasterOfAClusterDiesAndItsReplicaTakesOver) {
  RedisCluster cluster(3, 1);
  Make("redis+cluster://" + cluster.node(0).address() + "," + cluster.node(1).address());
  ASSERT_TRUE(Until([&] { return client->ready(); }));
  Tally tally;
  Crowd crowd(context, *client, 32, tally, milliseconds(500));
  ASSERT_TRUE(Until([&] { return tally.good > 1000; }));
  cluster.node(2).Kill();
  ASSERT_TRUE(Until([&] { return tally.failed > 0; }));
  EXPECT_TRUE(Until([&] { return client->ready(); }));
  uint64_t good = tally.good;
  EXPECT_TRUE(Until([&] { return tally.good > good + 1000; }));
  const uint64_t failed = tally.failed;
  good = tally.good;
  EXPECT_TRUE(Until([&] { return tally.good > good + 1000; }));
  EXPECT_EQ(tally.failed, failed);
  EXPECT_EQ(tally.mismatched, 0U);
  crowd.Stop();
  EXPECT_TRUE(Until([&] { return crowd.busy() == 0; }));
}

TEST_F(ClientTest, SentinelsTellTheMasterAndItsSuccessor) {
  RedisProcess first({});
  RedisProcess second({.config = {"replicaof 127.0.0.1 " + std::to_string(first.port()),
                                  "repl-diskless-sync-delay 0"}});
  std::vector<std::unique_ptr<RedisProcess>> sentinels;
  std::string hosts;
  for (int i = 0; i < 3; ++i) {
    const std::string port = std::to_string(first.port());
    sentinels.push_back(std::make_unique<RedisProcess>(
        RedisProcess::Options{.config = {"sentinel monitor mymaster 127.0.0.1 " + port + " 2",
                                         "sentinel down-after-milliseconds mymaster 1000",
                                         "sentinel failover-timeout mymaster 3000"},
                              .sentinel = true}));
    hosts += (i == 0 ? "" : ",") + sentinels.back()->address();
  }
  const auto knows_all = [&](const std::unique_ptr<RedisProcess>& sentinel) {
    const std::string text = sentinel->Ask({"SENTINEL", "MASTER", "mymaster"});
    return text.find("num-slaves 1 ") != std::string::npos &&
           text.find("num-other-sentinels 2 ") != std::string::npos;
  };
  ASSERT_TRUE(Until([&] { return std::all_of(sentinels.begin(), sentinels.end(), knows_all); }));
  Make("redis+sentinel://" + hosts + "/mymaster");
  ASSERT_TRUE(Until([&] { return client->ready(); }));
  EXPECT_EQ(client->status().nodes.at(0).address, first.address());
  EXPECT_EQ(Ask({"SET", "k", "v"}), "OK");
  first.Kill();
  EXPECT_TRUE(Until([&] {
    const Status status = client->status();
    return status.ready && status.nodes.at(0).address == second.address();
  }));
  EXPECT_EQ(Ask({"SET", "k", "w"}), "OK");
  EXPECT_EQ(second.Ask({"GET", "k"}), "w");
}

}  // namespace
}  // namespace weir::redis
