// HAProxy's stick tables as rules.
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "import/haproxy_condition.h"
#include "import/test_import.h"

namespace weir::import {
namespace {

constexpr Format kFormat = Format::kHaproxy;

TEST(HaproxyImport, RefusesAboveTheRateOfWhatIsTracked) {
  const Imported imported = MustImport(R"(
frontend web
  bind :80
  stick-table type ip size 1m expire 30s store http_req_rate(10s),conn_cur
  acl api path_beg /api/
  acl office src 10.0.0.0/8 192.0.2.7
  acl fast sc_http_req_rate(0) gt 4
  http-request allow if { path /health }
  http-request track-sc0 src
  http-request track-sc1 hdr(X-Api-Key) table keys if api
  http-request deny deny_status 429 if fast !office
  http-request deny deny_status 429 if api { sc1_http_req_rate(keys) ge 3 }
backend keys
  stick-table type string len 64 size 1m expire 1h store http_req_rate(1m)
)",
                                       kFormat);
  EXPECT_EQ(Count(imported, Carry::kDropped), 0U) << WriteReport(imported);
  const auto passed = [&](std::string_view ip, std::string_view path, std::string_view key) {
    const auto rules = Running(imported, kFormat);
    return Passed(*rules, {{"ip", ip}, {"path", path}, {"header:x-api-key", key}}, 20);
  };
  EXPECT_EQ(passed("198.51.100.1", "/", ""), 4);
  EXPECT_EQ(passed("10.2.3.4", "/", ""), 20);
  EXPECT_EQ(passed("192.0.2.7", "/", ""), 20);
  EXPECT_EQ(passed("198.51.100.1", "/health?x=1", ""), 20);
  EXPECT_EQ(passed("198.51.100.1", "/api/x", "k"), 2);
  EXPECT_EQ(passed("198.51.100.1", "/apix", "k"), 4);
  const std::string yaml = YamlOf(imported, kFormat);
  EXPECT_NE(yaml.find("limit: 4/10s sliding-window\n"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("limit: 2/1min sliding-window\n"), std::string::npos) << yaml;
  EXPECT_TRUE(Says(imported, Carry::kApproximated, 11, "counts refused requests too"));
}

TEST(HaproxyImport, TakesEitherCounterOfALine) {
  const Imported imported = MustImport(R"(
stick-table type ip size 1m store http_req_rate(1s)
http-request track-sc0 src,ipmask(24,48)
http-request track-sc1 url_param(token)
http-request deny if { sc_http_req_rate(0) gt 9 } or { sc_http_req_rate(1) gt 2 } METH_PUT
http-request deny unless { sc_http_req_rate(0) le 50 }
)",
                                       kFormat);
  EXPECT_TRUE(Says(imported, Carry::kApproximated, 4, "query:token"));
  const std::string yaml = YamlOf(imported, kFormat);
  EXPECT_NE(yaml.find("limit: 2/1s sliding-window"), std::string::npos) << yaml;
  const auto rules = Running(imported, kFormat);
  EXPECT_EQ(Passed(*rules, {{"query:token", "t"}, {"method", "PUT"}}, 9), 2);
  EXPECT_EQ(Passed(*rules, {{"query:token", "t"}, {"method", "GET"}}, 9), 9);
}

TEST(HaproxyImport, LimitsConnectionsByHolds) {
  const Imported imported = MustImport(R"(frontend f
  stick-table type ip size 1m expire 30s store conn_cur
  tcp-request connection track-sc0 src
  tcp-request connection reject if { sc_conn_cur(0) gt 10 }
)",
                                       kFormat);
  EXPECT_NE(YamlOf(imported, kFormat).find("limit: concurrency 10 lease 10min\n"),
            std::string::npos);
  EXPECT_TRUE(Says(imported, Carry::kApproximated, 4, "conn_cur"));
  EXPECT_TRUE(Says(imported, Carry::kApproximated, 4, "reject"));
}

TEST(HaproxyImport, SaysWhatItCannotCarry) {
  const Imported imported = MustImport(R"(frontend f
  stick-table type ip size 1m store gpc0,http_req_rate(10s),http_err_rate(10s) peers mine
  http-request track-sc0 src
  http-request deny if { sc_get_gpc0(0) gt 0 }
  http-request deny if { sc_http_err_rate(0) gt 5 }
  http-request deny if { sc_http_req_rate(2) gt 5 }
  http-request deny if { sc_http_req_rate(0) gt 5 } { ssl_fc }
  http-request deny if { sc_http_req_rate(0) gt 5 } unknown
  http-request set-header X-Slow 1 if { sc_http_req_rate(0) gt 5 }
  http-request deny if { path /admin }
  http-request track-sc0 hdr(x)
  http-request tarpit if { sc_http_req_rate(0) gt 5 }
)",
                                       kFormat);
  EXPECT_TRUE(Says(imported, Carry::kApproximated, 2, "peers"));
  EXPECT_TRUE(Says(imported, Carry::kDropped, 4, "get_gpc0"));
  EXPECT_TRUE(Says(imported, Carry::kDropped, 5, "http_err_rate"));
  EXPECT_TRUE(Says(imported, Carry::kDropped, 6, "nothing is tracked as sc2"));
  EXPECT_TRUE(Says(imported, Carry::kDropped, 7, "ssl_fc"));
  EXPECT_TRUE(Says(imported, Carry::kDropped, 8, "there is no acl \"unknown\""));
  EXPECT_TRUE(Says(imported, Carry::kDropped, 9, "only what refuses"));
  EXPECT_TRUE(Says(imported, Carry::kDropped, 11, "tracked already"));
  EXPECT_TRUE(Says(imported, Carry::kApproximated, 12, "tarpit"));
  EXPECT_EQ(Count(imported, Carry::kDropped), 7U) << WriteReport(imported);
  EXPECT_EQ(imported.rules.size(), 1U);
}

TEST(HaproxyImport, RefusesWhatIsWrongWithItsLine) {
  const auto message = [](std::string_view text) {
    const std::vector<Source> sources = {{"h.cfg", std::string(text)}};
    return MessageOf(Import(sources, kFormat, {}));
  };
  EXPECT_EQ(message("listen x\n  acl a path \"/x\n"),
            "h.cfg:2:16: error: a text without its closing quote");
  EXPECT_NE(
      message("stick-table type ip store http_req_rate(ten)").find("h.cfg:1: error: stick-table"),
      std::string::npos);
}

TEST(HaproxyImport, ReadsConditionsOfEveryKind) {
  HaproxyConditions conditions;
  const auto read = [&](std::vector<std::string> words) { return conditions.Read(words, false); };
  EXPECT_EQ(read({"{", "path_beg", "/a", "/b", "}"}),
            Only({"path", {{Match::kPrefix, "/a"}, {Match::kPrefix, "/b"}}}));
  EXPECT_EQ(read({"{", "path", "-m", "beg", "/a", "}"}), read({"{", "path_beg", "/a", "}"}));
  EXPECT_EQ(read({"{", "hdr(Host)", "-i", "x.y", "}"}), Only({"host", {{Match::kExact, "x.y"}}}));
  EXPECT_EQ(read({"{", "req.hdr(X)", "-m", "found", "}"}),
            Only({"header:x", {{Match::kPresent, ""}}}));
  EXPECT_EQ(read({"METH_POST", "or", "{", "method", "PUT", "}"}),
            Only({"method", {{Match::kExact, "POST"}, {Match::kExact, "PUT"}}}));
  EXPECT_EQ(read({"!", "{", "src", "10.0.0.0/8", "}"}), Not(read({"{", "src", "10.0.0.0/8", "}"})));
  EXPECT_EQ(read({"TRUE"}), Always());
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {"{", "path"}, {"{", "}"}, {"{", "src", "x", "}"}, {"{", "path", "-f", "file", "}"}}) {
    EXPECT_THROW((void)read(wrong), HaproxyRefused);
  }
}

// Whatever the lines are, what comes of them is a rule file: Import makes sure of it.
TEST(HaproxyImport, MakesRulesOfLinesInAnyOrder) {
  std::mt19937 random(3);
  const auto up = [&](size_t to) {
    return std::uniform_int_distribution<size_t>(0, to - 1)(random);
  };
  constexpr std::string_view kConditions[] = {"{ sc_http_req_rate(0) gt 3 }",
                                              "{ sc1_http_req_rate lt 9 }",
                                              "a",
                                              "!a",
                                              "{ path_beg /x }",
                                              "{ hdr(x) -m found }",
                                              "or",
                                              "METH_GET",
                                              "!{ src 10.0.0.0/8 }",
                                              "{ path_end .php }",
                                              "unknown"};
  constexpr std::string_view kActions[] = {
      "http-request deny",           "http-request track-sc0 src", "http-request allow",
      "http-request track-sc1 path", "tcp-request content reject", "acl a path_sub /y"};
  size_t rules = 0;
  for (int round = 0; round < 300; ++round) {
    std::string text =
        "listen l\nstick-table type ip size 1 store http_req_rate(10s)\n"
        "http-request track-sc0 src\nhttp-request track-sc1 path\n";
    for (size_t n = up(12); n > 0; --n) {
      text += kActions[up(std::size(kActions))];
      text += up(2) == 0 ? " if" : " unless";
      for (size_t m = 1 + up(4); m > 0; --m) {
        text += " " + std::string(kConditions[up(std::size(kConditions))]);
      }
      text += "\n";
    }
    rules += MustImport(text, kFormat).rules.size();
  }
  EXPECT_GT(rules, 20U);
}

}  // namespace
}  // namespace weir::import
