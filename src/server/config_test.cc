#include "server/config.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::server {
namespace {

using Names = std::vector<std::string>;

constexpr size_t kMiB = size_t{1} << 20;

ServerConfig WithMemory(size_t bytes) {
  ServerConfig config;
  config.memory_bytes = bytes;
  return config;
}

TEST(ServerConfig, MemoryIsOneBudgetForTheProcess) {
  ServerConfig config = WithMemory(64 * kMiB);
  EXPECT_EQ(config.ShareMemory().rules, 64 * kMiB);
  EXPECT_EQ(config.ShareMemory().rls, 0U);
  config.grpc = {"127.0.0.1:0"};
  EXPECT_EQ(config.ShareMemory().rules, 32 * kMiB);
  EXPECT_EQ(config.ShareMemory().rls, 32 * kMiB);
  config.grpc.clear();
  config.grpc_on_http = true;
  EXPECT_EQ(config.ShareMemory().rls, 32 * kMiB);
}

TEST(ServerConfig, WhereOnlyEnvoyAsksItsCountersHaveNearlyAll) {
  ServerConfig config = WithMemory(64 * kMiB + 7);
  config.http.clear();
  config.resp.clear();
  config.envoy.emplace();
  const ServerConfig::MemoryShares shares = config.ShareMemory();
  EXPECT_EQ(shares.rules, 4 * kMiB);
  EXPECT_EQ(shares.rules + shares.rls, config.memory_bytes);
}

TEST(ServerConfig, IsNotOpenToOtherMachinesWhereThatIsUnsafe) {
  ServerConfig config;
  config.http = {"0.0.0.0:0"};
  EXPECT_TRUE(config.Validate());
  config.admin = {"0.0.0.0:0"};
  EXPECT_FALSE(config.Validate());
  EXPECT_FALSE(config.MayExpose("admin", "a socket"));
  config.admin_token = "token";
  EXPECT_TRUE(config.Validate());
  config.test_clock = "clock";
  EXPECT_FALSE(config.Validate());
  config.http = config.resp = config.admin = {"127.0.0.1:0"};
  EXPECT_TRUE(config.Validate());
  EXPECT_FALSE(config.MayExpose("http", "a socket"));
}

TEST(ServerConfig, NamesOfClientsAreForAllFrontsOrForOne) {
  const Names names = {"a.test", "grpc=b.test", "spiffe://mesh/x=y", "http=spiffe://mesh/z"};
  EXPECT_EQ(ServerConfig::NamesFor(names, "grpc"),
            (Names{"a.test", "b.test", "spiffe://mesh/x=y"}));
  EXPECT_EQ(ServerConfig::NamesFor(names, "http"),
            (Names{"a.test", "spiffe://mesh/x=y", "spiffe://mesh/z"}));
  EXPECT_EQ(ServerConfig::NamesFor({"http=a.test"}, "grpc"), Names{});
}

}  // namespace
}  // namespace weir::server
