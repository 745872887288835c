#include "apps/weir/top/snapshot.h"

#include <string>

#include <gtest/gtest.h>

namespace weir::top {
namespace {

constexpr std::string_view kMetrics =
    "# HELP weir_build_info The version of weir, as a label.\n"
    "# TYPE weir_build_info gauge\n"
    "weir_build_info{version=\"0.1.0\"} 1\n"
    "weir_decisions_total{rule=\"a \\\"b\\\\\\n\",outcome=\"allowed\"} 10\n"
    "weir_decisions_total{rule=\"a \\\"b\\\\\\n\",outcome=\"denied\"} 3\n"
    "weir_decisions_total{rule=\"login\",outcome=\"refused\"} 1\n"
    "weir_decisions_total{rule=\"login\",outcome=\"shadow_denied\"} 7\n"
    "weir_request_duration_seconds_bucket{protocol=\"http\",le=\"+Inf\"} 5e+06\n"
    "weir_connections_open 4\n"
    "weir_store_slots 1000\n"
    "weir_store_slots_live 250\n"
    "weir_rules_up_to_date 0\n";

TEST(Snapshot, ReadsTheCountersOfEachRule) {
  const auto snapshot = ReadMetrics(kMetrics);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(snapshot->version, "0.1.0");
  EXPECT_EQ(snapshot->connections, 4U);
  EXPECT_EQ(snapshot->slots, 1000U);
  EXPECT_EQ(snapshot->live_slots, 250U);
  EXPECT_FALSE(snapshot->rules_up_to_date);
  ASSERT_EQ(snapshot->rules.size(), 2U);
  const RuleSnapshot* const odd = snapshot->Find("a \"b\\\n");
  ASSERT_NE(odd, nullptr);
  EXPECT_EQ(odd->allowed, 10U);
  EXPECT_EQ(odd->denied, 3U);
  EXPECT_EQ(odd->decisions(), 13U);
  const RuleSnapshot* const login = snapshot->Find("login");
  ASSERT_NE(login, nullptr);
  EXPECT_EQ(login->refused, 1U);
  EXPECT_EQ(login->shadow_denied, 7U);
  EXPECT_EQ(snapshot->Find("none"), nullptr);
}

TEST(Snapshot, RefusesLinesThatAreNoneOfTheFormat) {
  for (const std::string bad : {"weir", "weir_x", "weir_x{", "weir_x{a} 1", "weir_x{a=\"b} 1",
                                "weir_x{a=\"b\" 1", "weir_x{a=\"b\"}1", "weir_x 1 2x", "{} 1"}) {
    const auto snapshot = ReadMetrics(std::string(kMetrics) + bad + "\n");
    ASSERT_FALSE(snapshot) << bad;
    EXPECT_NE(snapshot.error().message.find("Prometheus"), std::string::npos) << bad;
  }
}

TEST(Snapshot, SaysThatSomebodyElseAnswered) {
  const auto snapshot = ReadMetrics("go_goroutines 12\n");
  ASSERT_FALSE(snapshot);
  EXPECT_NE(snapshot.error().message.find("not the admin address of weir?"), std::string::npos);
}

TEST(Snapshot, AddsTheTopKeys) {
  auto snapshot = ReadMetrics(kMetrics);
  ASSERT_TRUE(snapshot);
  const auto read =
      ReadTopKeys(R"({"rules":[{"rule":"login","keys":[)"
                  R"({"key":"192.0.2.1","cut":true,"count":9,"denied":4,"error":1},)"
                  R"({"key":"\u00e9","cut":false,"count":2,"denied":0,"error":0}]}]})",
                  *snapshot);
  ASSERT_TRUE(read) << read.error().message;
  const RuleSnapshot* const login = snapshot->Find("login");
  ASSERT_EQ(login->keys.size(), 2U);
  EXPECT_EQ(login->keys[0].key, "192.0.2.1");
  EXPECT_TRUE(login->keys[0].cut);
  EXPECT_FALSE(login->keys[1].cut);
  EXPECT_EQ(login->keys[0].count, 9U);
  EXPECT_EQ(login->keys[0].denied, 4U);
  EXPECT_EQ(login->keys[0].error, 1U);
}

TEST(Snapshot, RefusesTopKeysOfAnotherShape) {
  for (const std::string bad :
       {"", "[]", "{}", R"({"rules":1})", R"({"rules":[{"rule":"a"}]})",
        R"({"rules":[{"rule":"a","keys":[{"key":"b","count":1,"denied":0,"error":0}]}]})",
        R"({"rules":[{"rule":"a","keys":)"
        R"([{"key":"b","cut":false,"count":-1,"denied":0,"error":0}]}]})"}) {
    Snapshot snapshot;
    const auto read = ReadTopKeys(bad, snapshot);
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().message.rfind("/v1/top: ", 0), 0U) << read.error().message;
  }
}

}  // namespace
}  // namespace weir::top
