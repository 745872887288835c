#include "redis/options.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "testing/temporary_folder.h"

namespace weir::redis {
namespace {

Options Good(const std::string& url) {
  Result<Options> options = Options::Parse(url);
  EXPECT_TRUE(options) << url << ": " << (options ? "" : options.error().message);
  return options ? *options : Options{};
}

std::string Bad(const std::string& url) {
  Result<Options> options = Options::Parse(url);
  EXPECT_FALSE(options) << url;
  return options ? "" : options.error().message;
}

TEST(OptionsTest, ASingleServer) {
  const Options options = Good("redis://cache.example");
  EXPECT_EQ(options.topology, Topology::kSingle);
  ASSERT_EQ(options.addresses.size(), 1U);
  EXPECT_EQ(options.addresses[0].ToText(), "cache.example:6379");
  EXPECT_FALSE(options.tls.enabled);
  EXPECT_EQ(options.timeout, std::chrono::milliseconds(10));
  EXPECT_EQ(options.in_flight_max, 128U);
}

TEST(OptionsTest, UserPasswordPortAndDatabase) {
  const Options options = Good("rediss://al%40ice:s%3Ae%25c@[::1]:7000/3");
  EXPECT_EQ(options.user, "al@ice");
  EXPECT_EQ(options.password.Reveal(), "s:e%c");
  EXPECT_EQ(options.addresses[0].ToText(), "[::1]:7000");
  EXPECT_EQ(options.database, 3U);
  EXPECT_TRUE(options.tls.enabled);
  EXPECT_TRUE(options.tls.verify);
  EXPECT_EQ(options.ToText(), "rediss://[::1]:7000/3");
}

TEST(OptionsTest, APasswordAlone) {
  const Options options = Good("redis://:p@ss@h");
  EXPECT_EQ(options.user, "");
  EXPECT_EQ(options.password.Reveal(), "p@ss");
  EXPECT_EQ(options.addresses[0].host, "h");
}

TEST(OptionsTest, AUnixSocket) {
  const Options options = Good("unix:///run/redis.sock?db=2");
  EXPECT_EQ(options.addresses[0].ToText(), "unix:/run/redis.sock");
  EXPECT_EQ(options.database, 2U);
}

TEST(OptionsTest, SentinelsClustersAndLists) {
  const Options sentinel =
      Good("redis+sentinel://:pw@s1,s2:5000/mymaster/4?sentinel-password=other&sentinel-user=u");
  EXPECT_EQ(sentinel.topology, Topology::kSentinel);
  EXPECT_EQ(sentinel.addresses[0].port, 26379);
  EXPECT_EQ(sentinel.addresses[1].port, 5000);
  EXPECT_EQ(sentinel.master_name, "mymaster");
  EXPECT_EQ(sentinel.database, 4U);
  EXPECT_EQ(sentinel.sentinel_password.Reveal(), "other");
  EXPECT_EQ(sentinel.ToText(), "redis+sentinel://s1:26379,s2:5000/mymaster/4");
  EXPECT_EQ(Good("rediss+cluster://a,b,c").topology, Topology::kCluster);
  EXPECT_EQ(Good("redis+list://a,b,c:1").addresses.size(), 3U);
}

TEST(OptionsTest, ParametersAfterTheQuestionMark) {
  const Options options = Good(
      "rediss://h?timeout=2ms&connect-timeout=3s&connections=4&in-flight=64&name=node-1"
      "&ca=/a&cert=/b&key=/c&server-name=redis.internal&verify=yes");
  EXPECT_EQ(options.timeout, std::chrono::milliseconds(2));
  EXPECT_EQ(options.connect_timeout, std::chrono::seconds(3));
  EXPECT_EQ(options.connections, 4U);
  EXPECT_EQ(options.in_flight_max, 64U);
  EXPECT_EQ(options.client_name, "node-1");
  EXPECT_EQ(options.tls.ca_file, "/a");
  EXPECT_EQ(options.tls.certificate_file, "/b");
  EXPECT_EQ(options.tls.key_file, "/c");
  EXPECT_EQ(options.tls.server_name, "redis.internal");
}

TEST(OptionsTest, APasswordFromAFile) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/secret";
  std::ofstream(path) << "hunter2\n";
  EXPECT_EQ(Good("redis://h?password-file=" + path).password.Reveal(), "hunter2");
  EXPECT_NE(Bad("redis://h?password-file=" + path + ".none").find("cannot be read"),
            std::string::npos);
}

TEST(OptionsTest, ErrorsNameWhatWasFoundAndWhatIsExpected) {
  EXPECT_NE(Bad("localhost:6379").find("no scheme"), std::string::npos);
  EXPECT_NE(Bad("http://h").find("unknown scheme 'http'"), std::string::npos);
  EXPECT_NE(Bad("redis://").find("no host"), std::string::npos);
  EXPECT_NE(Bad("redis://:6379").find("no host"), std::string::npos);
  EXPECT_NE(Bad("redis://h:0").find("no port from 1"), std::string::npos);
  EXPECT_NE(Bad("redis://h:99999").find("no port from 1"), std::string::npos);
  EXPECT_NE(Bad("redis://::1").find("brackets"), std::string::npos);
  EXPECT_NE(Bad("redis://[::1").find("without ]"), std::string::npos);
  EXPECT_NE(Bad("redis://h/x").find("'x' is not the number"), std::string::npos);
  EXPECT_NE(Bad("redis://a,b").find("redis+cluster://"), std::string::npos);
  EXPECT_NE(Bad("redis+list://a,a").find("twice"), std::string::npos);
  EXPECT_NE(Bad("redis+sentinel://a,b").find("no name of a master"), std::string::npos);
  EXPECT_NE(Bad("redis+cluster://a/1").find("only database 0"), std::string::npos);
  EXPECT_NE(Bad("redis://alice@h").find("without a password"), std::string::npos);
  EXPECT_NE(Bad("redis://h?timeout=10").find("1ms to 60s"), std::string::npos);
  EXPECT_NE(Bad("redis://h?connections=0").find("from 1 to 16"), std::string::npos);
  EXPECT_NE(Bad("redis://h?colour=blue").find("unknown parameter 'colour'"), std::string::npos);
  EXPECT_NE(Bad("redis://h?timeout").find("not name=value"), std::string::npos);
  EXPECT_NE(Bad("redis://h?ca=/a").find("rediss://"), std::string::npos);
  EXPECT_NE(Bad("rediss://h?cert=/a").find("go together"), std::string::npos);
  EXPECT_NE(Bad("unix://relative").find("absolute path"), std::string::npos);
  EXPECT_NE(Bad("redis://h?name=%zz").find("not name=value"), std::string::npos);
}

TEST(OptionsTest, NoErrorShowsAPassword) {
  for (const std::string url :
       {"redis://u:hunter2@h:0", "http://u:hunter2@h", "redis://u:hunter2@",
        "redis://u:hunter2@a,b", "redis://u:hunter2@h/x", "redis://h?password=hunter2&timeout=1",
        "redis://u:hunter2%@h", "redis://h?sentinel-password=hunter2&x=1"}) {
    EXPECT_EQ(Bad(url).find("hunter2"), std::string::npos) << url;
  }
  EXPECT_EQ(Good("redis://u:hunter2@h").ToText().find("hunter2"), std::string::npos);
}

}  // namespace
}  // namespace weir::redis
