#include "envoy/environment.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace weir::envoy {
namespace {

Environment Of(std::map<std::string, std::string, std::less<>> variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(Environment, TheReferenceShowsTheSameTable) {
  std::ifstream file("docs/reference/envoy.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  size_t rows = 0;
  for (size_t at = text.find("\n| `"); at != std::string::npos; at = text.find("\n| `", at + 1)) {
    rows += text[at + 5] >= 'A' && text[at + 5] <= 'Z' ? 1 : 0;
  }
  EXPECT_EQ(rows, Variables().size());
  std::set<std::string_view> names;
  for (const Variable& variable : Variables()) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    const std::string value(variable.default_value);
    const std::string row = "\n| `" + std::string(variable.name) + "` | " +
                            (value.empty() ? "" : "`" + value + "`") + " | " +
                            std::string(ToString(variable.treatment)) + " | " +
                            std::string(variable.remark) + " |\n";
    EXPECT_NE(text.find(row), std::string::npos) << row;
  }
}

TEST(Environment, DefaultsAreThoseOfTheOriginalButForTheDebugPort) {
  const auto settings = ReadEnvironment(Of({}));
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->grpc_port, 8081);
  EXPECT_EQ(settings->debug_host, "127.0.0.1");
  EXPECT_EQ(settings->runtime.path(), "/srv/runtime_data/current/config");
  EXPECT_TRUE(settings->notes.empty());
  EXPECT_FALSE(IsForEnvoy(Of({{"PORT", "80"}, {"LOG_LEVEL", "debug"}})));
  EXPECT_TRUE(IsForEnvoy(Of({{"RUNTIME_ROOT", "/data"}})));
}

TEST(Environment, WhatUsersSetIsRead) {
  const auto settings = ReadEnvironment(Of({{"RUNTIME_ROOT", "/data"},
                                            {"RUNTIME_SUBDIRECTORY", "ratelimit"},
                                            {"RUNTIME_WATCH_ROOT", "false"},
                                            {"RUNTIME_IGNOREDOTFILES", "true"},
                                            {"REDIS_SOCKET_TYPE", "tcp"},
                                            {"REDIS_URL", "redis:6379"},
                                            {"NEAR_LIMIT_RATIO", "0.5"},
                                            {"GRPC_MAX_CONNECTION_AGE", "1h30m"},
                                            {"LIMIT_RESPONSE_HEADERS_ENABLED", "1"},
                                            {"EXTRA_TAGS", "env:prod,zone:a"},
                                            {"LOG_LEVEL", "Debug"},
                                            {"STATSD_PORT", ""},
                                            {"TRACING_ENABLED", "true"}}));
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->runtime.path(), "/data/ratelimit/config");
  EXPECT_TRUE(settings->runtime.ignore_dot_files);
  EXPECT_EQ(settings->service.near_limit_ratio, 0.5);
  EXPECT_EQ(settings->grpc_max_connection_age, std::chrono::minutes(90));
  EXPECT_TRUE(settings->service.response_headers);
  EXPECT_EQ(settings->extra_tags.size(), 2U);
  EXPECT_EQ(settings->statsd_port, 8125);
  EXPECT_EQ(settings->redis_url, "redis://redis:6379");
  ASSERT_EQ(settings->notes.size(), 2U) << "one line for each without effect";
}

TEST(Environment, WhereRedisIsBecomesOneUrl) {
  const auto url = [](std::map<std::string, std::string, std::less<>> variables) {
    const auto settings = ReadEnvironment(Of(std::move(variables)));
    return settings ? settings->redis_url : settings.error().message;
  };
  EXPECT_EQ(url({}), "");
  EXPECT_EQ(url({{"REDIS_URL", "/run/redis.sock"}}), "unix:///run/redis.sock");
  EXPECT_EQ(url({{"REDIS_URL", "a:1"},
                 {"REDIS_SOCKET_TYPE", "tcp"},
                 {"REDIS_AUTH", "me:p@ss word"},
                 {"REDIS_TIMEOUT", "20ms"}}),
            "redis://a:1?user=me&password=p%40ss%20word&timeout=20ms");
  EXPECT_EQ(url({{"REDIS_URL", "a:1,b:2"}, {"REDIS_TYPE", "CLUSTER"}, {"REDIS_TLS", "true"}}),
            "rediss+cluster://a:1,b:2");
  EXPECT_EQ(url({{"REDIS_URL", "mymaster,a:1,b:2"},
                 {"REDIS_TYPE", "sentinel"},
                 {"REDIS_SENTINEL_AUTH", "x"}}),
            "redis+sentinel://a:1,b:2/mymaster?sentinel-password=x");
  EXPECT_EQ(url({{"REDIS_URL", "a:1"},
                 {"REDIS_SOCKET_TYPE", "tcp"},
                 {"REDIS_TLS", "1"},
                 {"REDIS_TLS_CACERT", "/ca.pem"},
                 {"REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", "true"}}),
            "rediss://a:1?ca=/ca.pem&verify=no");
  EXPECT_EQ(url({{"REDIS_URL", "a"}, {"REDIS_TYPE", "RING"}}).substr(0, 11), "REDIS_TYPE:");
  EXPECT_EQ(url({{"REDIS_URL", "a"}, {"REDIS_SOCKET_TYPE", "udp"}}).substr(0, 18),
            "REDIS_SOCKET_TYPE:");
  EXPECT_EQ(url({{"REDIS_URL", "a"}, {"REDIS_TIMEOUT", "soon"}}).substr(0, 14), "REDIS_TIMEOUT:");
  EXPECT_EQ(url({{"REDIS_URL", "alone"}, {"REDIS_TYPE", "SENTINEL"}}).substr(0, 10), "REDIS_URL:");
}

TEST(Environment, ANameOfClientsNeedsTheirAuthority) {
  const auto notes = [](std::map<std::string, std::string, std::less<>> variables) {
    const auto settings = ReadEnvironment(Of(std::move(variables)));
    EXPECT_TRUE(settings.ok());
    EXPECT_EQ(settings->grpc_client_san, "envoy.test");
    return settings->notes.size();
  };
  EXPECT_EQ(notes({{"GRPC_CLIENT_TLS_SAN", "envoy.test"}}), 1U);
  EXPECT_EQ(notes({{"GRPC_CLIENT_TLS_SAN", "envoy.test"}, {"GRPC_CLIENT_TLS_CACERT", "ca.pem"}}),
            0U);
}

TEST(Environment, WhatIsWrongIsNamed) {
  const auto error = [](const char* name, const char* value) {
    const auto settings = ReadEnvironment(Of({{name, value}}));
    return settings.ok() ? std::string() : settings.error().message;
  };
  EXPECT_EQ(error("PORT", "http"), "PORT: found \"http\"; expected a port, 0 to 65535");
  EXPECT_EQ(error("SHADOW_MODE", "yes"), "SHADOW_MODE: found \"yes\"; expected true or false");
  EXPECT_NE(error("BACKEND_TYPE", "memcache").find("weir counts in its own memory"),
            std::string::npos);
  EXPECT_NE(error("CONFIG_TYPE", "GRPC_XDS_SOTW").find("FILE only"), std::string::npos);
  EXPECT_NE(error("REDIS_POOL_ON_EMPTY_BEHAVIOR", "CREATE"), "");
  EXPECT_NE(error("GRPC_MAX_CONNECTION_AGE", "tomorrow"), "");
  EXPECT_NE(error("NEAR_LIMIT_RATIO", "2"), "");
  EXPECT_NE(error("GRPC_SERVER_USE_TLS", "true"), "");
}

TEST(RuntimeDirectory, ReadsAConfigMapThroughItsLinks) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(::testing::TempDir()) / "weir_runtime_directory_test";
  fs::remove_all(root);
  const fs::path config = root / "sub" / "config";
  fs::create_directories(config / "..2026_11_16" / "x");
  fs::create_directories(config / "more");
  const auto write = [](const fs::path& path) { std::ofstream(path) << "domain: d\n"; };
  write(config / "..2026_11_16" / "a.yaml");
  write(config / ".hidden.yaml");
  write(config / "README.md");
  write(config / "more" / "b.yml");
  fs::create_directory_symlink("..2026_11_16", config / "..data");
  fs::create_symlink("..data/a.yaml", config / "a.yaml");
  RuntimeDirectory directory{.root = root.string(), .subdirectory = "sub"};
  const auto names = [&directory] {
    std::string all;
    const auto files = directory.Read();
    for (const ConfigFile& file : *files) {
      all += file.name + " ";
    }
    return all;
  };
  EXPECT_EQ(names(), "config..hidden.yaml config.a.yaml config.more.b.yml ");
  directory.ignore_dot_files = true;
  EXPECT_EQ(names(), "config.a.yaml config.more.b.yml ");
  directory.subdirectory = "nowhere";
  EXPECT_EQ(names(), "");
  fs::remove_all(root);
}

}  // namespace
}  // namespace weir::envoy
