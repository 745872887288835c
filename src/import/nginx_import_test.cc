// nginx's limits as rules.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "import/nginx_config.h"
#include "import/nginx_key.h"
#include "import/test_import.h"

namespace weir::import {
namespace {

constexpr Format kFormat = Format::kNginx;

constexpr std::string_view kShop = R"(
http {
  limit_req_zone $binary_remote_addr zone=all:10m rate=1r/s;
  limit_req_zone $http_x_api_key zone=keys:10m rate=60r/m;
  limit_req_zone "$binary_remote_addr$request_uri" zone=pages:10m rate=1r/s;
  limit_req_status 429;
  server {
    server_name shop.example *.shop.example;
    limit_req zone=all burst=4 nodelay;
    location = /health { limit_req zone=keys burst=1 nodelay; }
    location /api/ {
      limit_req zone=all burst=1 nodelay;
      limit_req zone=keys burst=2 nodelay;
      location /api/free/ { limit_req zone=pages; }
    }
    location ~* \.(jpg|png)$ { limit_req zone=pages burst=1 nodelay; }
  }
  server { server_name other.example; }
}
)";

TEST(NginxImport, ChoosesThePlaceAsNginxDoes) {
  const Imported imported = MustImport(kShop, kFormat);
  EXPECT_EQ(Count(imported, Carry::kDropped), 0U) << WriteReport(imported);
  const auto passed = [&](std::string_view host, std::string_view path, std::string_view key) {
    const auto rules = Running(imported, kFormat);
    return Passed(*rules,
                  {{"ip", "192.0.2.1"}, {"host", host}, {"path", path}, {"header:x-api-key", key}},
                  20);
  };
  EXPECT_EQ(passed("shop.example", "/", "k"), 5);
  EXPECT_EQ(passed("www.SHOP.example:443", "/x?y", ""), 5);
  EXPECT_EQ(passed("other.example", "/", "k"), 20);
  EXPECT_EQ(passed("shop.example", "/health", "k"), 2)
      << "another zone, and not that of the server";
  EXPECT_EQ(passed("shop.example", "/health?x", "k"), 2);
  EXPECT_EQ(passed("shop.example", "/healthy", "k"), 5);
  EXPECT_EQ(passed("shop.example", "/api/x", "k"), 2);
  EXPECT_EQ(passed("shop.example", "/api/x", ""), 2);
  EXPECT_EQ(passed("shop.example", "/api/free/x", "k"), 1);
  EXPECT_EQ(passed("shop.example", "/a/B.JPG?size=1", "k"), 2);
  EXPECT_EQ(passed("shop.example", "/a.jpg/x", "k"), 5);
}

TEST(NginxImport, CountsPlacesOfOneLimitTogether) {
  const Imported imported = MustImport(R"(
limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;
limit_req_status 429;
location /x/ { limit_req zone=a burst=5 nodelay; }
location = /login { limit_req zone=a burst=5 nodelay; }
)",
                                       kFormat);
  EXPECT_TRUE(imported.findings.empty()) << WriteReport(imported);
  const auto rules = Running(imported, kFormat);
  EXPECT_EQ(Passed(*rules, {{"ip", "192.0.2.1"}, {"path", "/login"}}, 3), 3);
  EXPECT_EQ(Passed(*rules, {{"ip", "192.0.2.1"}, {"path", "/x/y"}}, 9), 3);
  EXPECT_EQ(Passed(*rules, {{"ip", "192.0.2.1"}, {"path", "/y"}}, 9), 9);
}

TEST(NginxImport, KnowsWhoIsCountedByMapAndGeo) {
  const Imported imported = MustImport(R"(
geo $limited { default 1; 10.0.0.0/8 0; 192.0.2.0/24 0; }
map $limited $limit_key { 0 ""; 1 $binary_remote_addr; }
map $http_user_agent $bots { default ""; "~*bot" $binary_remote_addr; }
limit_req_zone $limit_key zone=a:1m rate=1r/s;
limit_req_zone $bots zone=b:1m rate=1r/s;
limit_req_status 429;
limit_req zone=a burst=3 nodelay;
limit_req zone=b;
)",
                                       kFormat);
  EXPECT_TRUE(imported.findings.empty()) << WriteReport(imported);
  const auto rules = Running(imported, kFormat);
  EXPECT_EQ(Passed(*rules, {{"ip", "10.1.2.3"}}, 9), 9);
  EXPECT_EQ(Passed(*rules, {{"ip", "192.0.2.3"}}, 9), 9);
  EXPECT_EQ(Passed(*rules, {{"ip", "198.51.100.1"}}, 9), 4);
  EXPECT_EQ(Passed(*rules, {{"ip", "10.1.2.3"}, {"header:user-agent", "NiceBot/1"}}, 9), 1);
}

TEST(NginxImport, LooksOnInADryRun) {
  const Imported imported = MustImport(R"(
limit_req_zone $remote_addr zone=a:1m rate=1r/s;
limit_req_status 429;
limit_req zone=a;
location /dry/ { limit_req_dry_run on; }
)",
                                       kFormat);
  const auto rules = Running(imported, kFormat);
  EXPECT_EQ(Passed(*rules, {{"ip", "192.0.2.1"}, {"path", "/dry/x"}}, 9), 9);
  EXPECT_EQ(Passed(*rules, {{"ip", "192.0.2.1"}, {"path", "/"}}, 9), 1);
}

TEST(NginxImport, SaysWhatItCannotCarry) {
  const Imported imported = MustImport(R"(limit_req_zone $binary_remote_addr zone=a:1m rate=10r/s;
limit_conn_zone $server_name zone=c:1m;
include other.conf;
include mime.types;
limit_req zone=a burst=20 delay=8;
limit_req zone=gone;
limit_rate 10k;
limit_req_log_level warn;
limit_conn c 5;
)",
                                       kFormat);
  EXPECT_TRUE(Says(imported, Carry::kDropped, 3, "include other.conf"));
  EXPECT_FALSE(Says(imported, Carry::kDropped, 4, "include"));
  EXPECT_TRUE(Says(imported, Carry::kDropped, 6, "no limit_req_zone"));
  EXPECT_TRUE(Says(imported, Carry::kDropped, 7, "limit_rate"));
  EXPECT_TRUE(Says(imported, Carry::kDropped, 8, "limit_req_log_level"));
  EXPECT_TRUE(Says(imported, Carry::kApproximated, 5, "503"));
  EXPECT_TRUE(Says(imported, Carry::kApproximated, 9, "hold"));
  const std::string yaml = YamlOf(imported, kFormat);
  EXPECT_NE(yaml.find("limit: 10/s burst 21 queue after 9\n"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("limit: concurrency 5 lease 10min\n"), std::string::npos) << yaml;
}

TEST(NginxImport, RefusesWhatNginxRefusesWithLineAndColumn) {
  const auto message = [](std::string_view text) {
    const std::vector<Source> sources = {{"n.conf", std::string(text)}};
    return MessageOf(Import(sources, kFormat, {}));
  };
  EXPECT_EQ(message("http {\n  server {\n"), "n.conf:2:3: error: \"server\" has no } at its end");
  EXPECT_EQ(message("a b\n"), "n.conf:2:1: error: the text ends within \"a\"; expected ; or {");
  EXPECT_EQ(message("}\n"), "n.conf:1:1: error: found } without its {");
  EXPECT_EQ(
      message("\n limit_req_zone $x zone=a:1m rate=10;"),
      "n.conf:2:2: error: limit_req_zone: found rate=10; expected one such as 10r/s or 30r/m");
  EXPECT_NE(message("limit_req burst=1;").find("expected zone=NAME"), std::string::npos);
  EXPECT_NE(message("limit_req zone=a odd;").find("found \"odd\""), std::string::npos);
  EXPECT_NE(message("a \"b"), "");
  EXPECT_NE(message(std::string(200, 'a') + std::string(100, '{')), "");
}

TEST(NginxImport, MakesRegularExpressionsWhole) {
  EXPECT_EQ(WholeRegex("^/a", false, true), "(?s)(?:/a)[^?#]*(?:[?#].*)?");
  EXPECT_EQ(WholeRegex("\\.php$", true, true), "(?is)[^?#]*(?:\\.php)(?:[?#].*)?");
  EXPECT_EQ(WholeRegex("a|b$", false, true), "(?s).*(?:a|b$).*");
}

// nginx's own arithmetic: thousandths of a request, milliseconds.
class LeakyBucket {
 public:
  LeakyBucket(int64_t rate, int64_t burst) : rate_(rate), burst_(burst) {}

  bool Ask(int64_t now_ms) {
    if (!known_) {
      known_ = true;
      last_ms_ = now_ms;
      return true;
    }
    const int64_t excess = std::max<int64_t>(excess_ - rate_ * (now_ms - last_ms_) + 1000, 0);
    if (excess > burst_ * 1000) {
      return false;
    }
    excess_ = excess;
    last_ms_ = now_ms;
    return true;
  }

 private:
  int64_t rate_, burst_;
  int64_t excess_ = 0;
  int64_t last_ms_ = 0;
  bool known_ = false;
};

TEST(NginxImport, AdmitsWhatNginxsLeakyBucketAdmits) {
  std::mt19937 random(11);
  const auto up = [&](int64_t to) {
    return std::uniform_int_distribution<int64_t>(0, to - 1)(random);
  };
  int denied = 0;
  for (int round = 0; round < 60; ++round) {
    const int64_t rate = int64_t{1} << up(4);
    const int64_t burst = up(6);
    const std::string_view kModes[] = {"", " nodelay", " delay=2"};
    const Imported imported = MustImport(
        "limit_req_zone $remote_addr zone=a:1m rate=" + std::to_string(rate) +
            "r/s;\nlimit_req_status 429;\nlimit_req zone=a burst=" + std::to_string(burst) +
            std::string(kModes[up(3)]) + ";\n",
        kFormat);
    const auto rules = Running(imported, kFormat);
    LeakyBucket bucket(rate, burst);
    int64_t now_ms = 0;
    for (int i = 0; i < 200; ++i) {
      const int64_t step = up(3) == 0 ? up(3000 / rate) : up(10);
      now_ms += step;
      rules->clock.Advance(std::chrono::milliseconds(step));
      const bool admitted =
          rules->limiter->Check(std::vector<Attribute>{{"ip", "192.0.2.1"}}).allowed();
      ASSERT_EQ(admitted, bucket.Ask(now_ms)) << "round " << round << ", request " << i << "\n"
                                              << YamlOf(imported, kFormat);
      denied += admitted ? 0 : 1;
    }
  }
  EXPECT_GT(denied, 1000);
}

// Whatever stands in a configuration, what comes of it is a rule file (Import makes sure) or a
// message.
TEST(NginxImport, MakesRulesOfPiecesInAnyOrder) {
  std::mt19937 random(5);
  const auto up = [&](size_t to) {
    return std::uniform_int_distribution<size_t>(0, to - 1)(random);
  };
  constexpr std::string_view kPieces[] = {"limit_req zone=a burst=3;",
                                          "limit_req zone=b nodelay;",
                                          "limit_req_dry_run on;",
                                          "limit_conn c 3;",
                                          "server { server_name x .y.z ~^w; ",
                                          "server { ",
                                          "location /a { ",
                                          "location ~ ^/b(c|d)$ { ",
                                          "location = /e { ",
                                          "location ^~ /f { ",
                                          "}",
                                          "}",
                                          "}"};
  int made = 0;
  for (int round = 0; round < 300; ++round) {
    std::string text =
        "limit_req_zone $remote_addr zone=a:1m rate=1r/s; limit_req_zone $uri$arg_x zone=b:1m "
        "rate=9r/m; limit_conn_zone $host zone=c:1m;\n";
    int open = 0;
    for (size_t n = up(15); n > 0; --n) {
      const std::string_view piece = kPieces[up(std::size(kPieces))];
      open += piece.find('{') != std::string_view::npos ? 1 : piece == "}" ? -1 : 0;
      if (open < 0) {
        open = 0;
        continue;
      }
      text += std::string(piece) + "\n";
    }
    text += std::string(static_cast<size_t>(open), '}');
    made += MustImport(text, kFormat).rules.empty() ? 0 : 1;
  }
  EXPECT_GT(made, 100);
}

}  // namespace
}  // namespace weir::import
