#include "envoy/rls_service.h"

#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "envoy/rls_json.h"
#include "envoy/rls_stats.h"

namespace weir::envoy {
namespace {

using std::chrono::seconds;
using Entries = std::initializer_list<Entry>;

// A service on a clock of its own, 5 seconds into a minute.
class RlsServiceTest : public ::testing::Test {
 protected:
  void Start(RlsOptions options = {}) {
    options.clock = &clock_;
    options.memory_bytes = size_t{4} << 20;
    service_ = *RlsService::Create(options);
  }

  Result<void> Load(std::string yaml) {
    return service_->Load(std::vector<ConfigFile>{{"a.yaml", std::move(yaml)}});
  }

  const Response& Ask(std::initializer_list<Entries> descriptors, uint32_t hits = 1) {
    RequestBuffer buffer;
    buffer.Begin("d", hits);
    for (const Entries& entries : descriptors) {
      buffer.AddDescriptor();
      for (const Entry& entry : entries) {
        buffer.AddEntry(entry.key, entry.value);
      }
    }
    service_->ShouldRateLimit(buffer.request(), response_);
    return response_;
  }

  bool Passes(Entries entries, uint32_t hits = 1) {
    return Ask({entries}, hits).overall_code == Code::kOk;
  }

  uint64_t Stat(const std::string& name) {
    return service_->stats().Counters()["ratelimit.service." + name];
  }

  ManualClock clock_{WallTime(seconds(1'700'000'045))};
  std::unique_ptr<RlsService> service_;
  Response response_;
};

constexpr const char* kTwo =
    "domain: d\ndescriptors:\n"
    "- key: a\n  rate_limit: {unit: hour, requests_per_unit: 2}\n"
    "- key: b\n  rate_limit: {unit: hour, requests_per_unit: 3, name: bee}\n";

TEST_F(RlsServiceTest, RefusedHitsAreCountedUnlessAllOrNothing) {
  Start();
  ASSERT_TRUE(Load(kTwo).ok());
  for (int i = 0; i < 3; ++i) {
    Ask({{{"a", "x"}}, {{"b", "x"}}});
  }
  EXPECT_EQ(response_.overall_code, Code::kOverLimit);
  EXPECT_EQ(response_.statuses[1].limit_remaining, 0U);
  EXPECT_EQ(response_.statuses[1].current_limit.name, "bee");

  Start({.all_or_nothing = true});
  ASSERT_TRUE(Load(kTwo).ok());
  for (int i = 0; i < 9; ++i) {
    Ask({{{"a", "x"}}, {{"b", "x"}}});
  }
  EXPECT_EQ(response_.overall_code, Code::kOverLimit);
  EXPECT_EQ(response_.statuses[1].code, Code::kOk);
  EXPECT_EQ(response_.statuses[1].limit_remaining, 1U);
  EXPECT_TRUE(Passes({{"b", "x"}}));
  EXPECT_FALSE(Passes({{"b", "x"}}));
}

TEST_F(RlsServiceTest, AllOrNothingSeesOneKeyTwice) {
  Start({.all_or_nothing = true});
  ASSERT_TRUE(Load(kTwo).ok());
  EXPECT_TRUE(Passes({{"a", "x"}}));
  EXPECT_EQ(Ask({{{"a", "x"}}, {{"a", "x"}}}).overall_code, Code::kOverLimit);
  EXPECT_TRUE(Passes({{"a", "x"}}));  // nothing was taken for the one before
  EXPECT_FALSE(Passes({{"a", "x"}}));
}

TEST_F(RlsServiceTest, CountsOutliveAReloadAndANewLimit) {
  Start();
  ASSERT_TRUE(Load(kTwo).ok());
  Ask({{{"a", "x"}}}, 2);
  ASSERT_TRUE(
      Load("domain: d\ndescriptors:\n- key: a\n  rate_limit: {unit: hour, requests_per_unit: 5}\n")
          .ok());
  EXPECT_EQ(Ask({{{"a", "x"}}}).statuses[0].limit_remaining, 2U);
  EXPECT_FALSE(Load("domain: d\ndescriptors:\n- key: ''\n").ok());
  EXPECT_EQ(Ask({{{"a", "x"}}}).statuses[0].limit_remaining, 1U);
  EXPECT_EQ(Stat("config_load_error"), 1U);
  EXPECT_EQ(Stat("config_load_success"), 2U);
  EXPECT_EQ(service_->DumpConfig(),
            "d.a: unit=HOUR requests_per_unit=5, shadow_mode: false, quota_mode: false\n");
}

TEST_F(RlsServiceTest, WindowsBeginAtTheEpoch) {
  Start();
  ASSERT_TRUE(
      Load(
          "domain: d\ndescriptors:\n- key: a\n  rate_limit: {unit: minute, requests_per_unit: 1}\n")
          .ok());
  EXPECT_EQ(Ask({{{"a", "x"}}}).statuses[0].duration_until_reset, seconds(55));
  EXPECT_FALSE(Passes({{"a", "x"}}));
  clock_.Advance(seconds(54) + std::chrono::milliseconds(999));
  EXPECT_FALSE(Passes({{"a", "x"}}));
  EXPECT_EQ(response_.statuses[0].duration_until_reset, seconds(1));
  clock_.Advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(Passes({{"a", "x"}}));
  EXPECT_EQ(response_.statuses[0].duration_until_reset, seconds(60));
}

TEST_F(RlsServiceTest, KeysAndValuesCollideUnlessStrict) {
  const std::string yaml =
      "domain: d\ndescriptors:\n"
      "- key: a_b\n  value: c\n  rate_limit: {unit: hour, requests_per_unit: 1}\n";
  Start();
  ASSERT_TRUE(Load(yaml).ok());
  EXPECT_TRUE(Passes({{"a", "b_c"}}));
  EXPECT_FALSE(Passes({{"a_b", "c"}}));  // the same counter, too
  Start();
  ASSERT_TRUE(Load("strict_matching: true\n" + yaml +
                   "- key: a\n  value: b_*\n  rate_limit: {unit: hour, requests_per_unit: 1}\n")
                  .ok());
  EXPECT_TRUE(Passes({{"a", "b_c"}}));
  EXPECT_TRUE(Passes({{"a_b", "c"}}));
  EXPECT_FALSE(Passes({{"a_b", "c"}}));
  EXPECT_TRUE(Passes({{"a_b", "d"}}));
}

TEST_F(RlsServiceTest, OwnAlgorithmsWindowsAndCalendars) {
  Start();
  ASSERT_TRUE(Load("domain: d\ndescriptors:\n"
                   "- key: bucket\n  rate_limit: {unit: second, requests_per_unit: 1, burst: 3}\n"
                   "- key: half\n  rate_limit: {window: 30s, requests_per_unit: 1}\n"
                   "- key: month\n  rate_limit: {calendar: month, time_zone: Asia/Tokyo,\n"
                   "    requests_per_unit: 1}\n"
                   "- key: log\n  rate_limit: {unit: minute, requests_per_unit: 1,\n"
                   "    algorithm: sliding-log}\n")
                  .ok());
  EXPECT_TRUE(Passes({{"bucket", "x"}}, 3));
  EXPECT_FALSE(Passes({{"bucket", "x"}}));
  clock_.Advance(seconds(1));
  EXPECT_TRUE(Passes({{"bucket", "x"}}));
  EXPECT_TRUE(Passes({{"half", "x"}}));
  EXPECT_FALSE(Passes({{"half", "x"}}));
  EXPECT_EQ(response_.statuses[0].duration_until_reset, seconds(24));
  clock_.Advance(seconds(24));
  EXPECT_TRUE(Passes({{"half", "x"}}));
  EXPECT_TRUE(Passes({{"log", "x"}}));
  clock_.Advance(seconds(59));
  EXPECT_FALSE(Passes({{"log", "x"}}));
  clock_.Advance(seconds(1));
  EXPECT_TRUE(Passes({{"log", "x"}}));
  EXPECT_TRUE(Passes({{"month", "x"}}));
  EXPECT_FALSE(Passes({{"month", "x"}}));
  clock_.Advance(std::chrono::hours(24 * 31));
  EXPECT_TRUE(Passes({{"month", "x"}}));
}

TEST_F(RlsServiceTest, OwnFieldsThatContradictAreRefusedAndKeepTheFileOut) {
  Start();
  for (const char* const limit :
       {"{unit: minute, window: 30s, requests_per_unit: 1}", "{window: 30s, requests_per_unit: 0}",
        "{window: thirty, requests_per_unit: 1}", "{calendar: moon, requests_per_unit: 1}",
        "{unit: day, time_zone: UTC, requests_per_unit: 1}",
        "{unit: day, algorithm: tocken-bucket, requests_per_unit: 1}",
        "{unlimited: true, burst: 3}", "{unit: day, requests_per_unit: 1, by: plan}",
        "{unit: day, requests_per_unit: 1, overrides: [{requests_per_unit: 3}]}"}) {
    const auto loaded =
        Load("domain: d\ndescriptors:\n- key: a\n  rate_limit: " + std::string(limit) + "\n");
    EXPECT_FALSE(loaded.ok()) << limit;
  }
  EXPECT_FALSE(service_->has_config());
  EXPECT_EQ(Load("domain: d\nwindow: 30s\n").error().message,
            "a.yaml: config error, unknown key 'window'");
}

TEST_F(RlsServiceTest, TiersAndOverrides) {
  Start();
  ASSERT_TRUE(Load("domain: d\ndescriptors:\n- key: plan\n  descriptors:\n  - key: user\n"
                   "    rate_limit:\n      unit: hour\n      requests_per_unit: 1\n      by: plan\n"
                   "      tiers: [{name: pro, requests_per_unit: 2}]\n"
                   "      overrides:\n"
                   "      - {value: acme, requests_per_unit: 3, expires: 2023-11-15}\n"
                   "      - {value: root, unlimited: true}\n")
                  .ok());
  EXPECT_EQ(Ask({{{"plan", "free"}, {"user", "u"}}}).statuses[0].limit_remaining, 0U);
  EXPECT_EQ(Ask({{{"plan", "pro"}, {"user", "u"}}}).statuses[0].limit_remaining, 1U);
  EXPECT_EQ(Ask({{{"plan", "pro"}, {"user", "acme"}}}).statuses[0].limit_remaining, 2U);
  EXPECT_EQ(Ask({{{"plan", "pro"}, {"user", "root"}}}).statuses[0].limit_remaining, 4294967295U);
  clock_.Advance(std::chrono::hours(24 * 2));
  EXPECT_EQ(Ask({{{"plan", "pro"}, {"user", "acme"}}}).statuses[0].current_limit.requests_per_unit,
            2U);
}

TEST_F(RlsServiceTest, AQuotaThatChangesKeepsItsDebts) {
  Start();
  const auto yaml = [](int burst) {
    return "domain: d\ndescriptors:\n- key: a\n  rate_limit: {unit: hour, requests_per_unit: 10, "
           "burst: " +
           std::to_string(burst) + "}\n";
  };
  ASSERT_TRUE(Load(yaml(4)).ok());
  EXPECT_TRUE(Passes({{"a", "x"}}, 4));
  EXPECT_FALSE(Passes({{"a", "x"}}));
  ASSERT_TRUE(Load(yaml(6)).ok());
  EXPECT_TRUE(Passes({{"a", "x"}}, 2));
  EXPECT_FALSE(Passes({{"a", "x"}}));
}

TEST_F(RlsServiceTest, HeadersSpeakOfTheLastOneOverItsLimit) {
  Start({.response_headers = true, .reset_header = "X-Reset"});
  ASSERT_TRUE(Load(kTwo).ok());
  Ask({{{"a", "x"}}, {{"b", "x"}}});
  ASSERT_EQ(response_.response_headers_to_add.size(), 3U);
  EXPECT_EQ(response_.response_headers_to_add[0].value, "2");
  EXPECT_EQ(response_.response_headers_to_add[1].value, "1");
  EXPECT_EQ(response_.response_headers_to_add[2].key, "X-Reset");
  Ask({{{"a", "x"}}, {{"b", "x"}}}, 9);
  EXPECT_EQ(response_.response_headers_to_add[0].value, "3");
}

TEST_F(RlsServiceTest, DynamicMetadataTellsWhatWasAskedAndWhoPassed) {
  Start({.response_dynamic_metadata = true});
  ASSERT_TRUE(Load("domain: d\ndescriptors:\n"
                   "- key: a\n  rate_limit: {unit: hour, requests_per_unit: 1}\n"
                   "  metadata: {service: {name: one}, kept: 1}\n"
                   "- key: b\n  rate_limit: {unit: hour, requests_per_unit: 0}\n"
                   "  metadata: {service: {name: two}}\n")
                  .ok());
  Ask({{{"a", "x"}}, {{"b", "y"}}}, 1);
  std::string text;
  AppendJson(text, response_.dynamic_metadata);
  EXPECT_EQ(text, R"({"domain":"d","descriptors":[{"entries":["a=x"]},{"entries":["b=y"]}],)"
                  R"("hitsAddend":1,"metadata":{"service":{"name":"one"},"kept":1}})");
}

TEST_F(RlsServiceTest, StatisticsUnderTheirNames) {
  Start({.local_cache = true});
  ASSERT_TRUE(Load("domain: d\ndescriptors:\n- key: ip\n  value_to_metric: true\n"
                   "  rate_limit: {unit: hour, requests_per_unit: 1}\n")
                  .ok());
  for (int i = 0; i < 3; ++i) {
    Ask({{{"ip", "192.0.2.1:80"}}});
  }
  RequestBuffer other;
  other.Begin("nobody");
  other.AddDescriptor();
  service_->ShouldRateLimit(other.request(), response_);
  service_->stats().CountCall("ShouldRateLimit", std::chrono::microseconds(70));
  EXPECT_EQ(Stat("rate_limit.d.ip_192_0_2_1_80.total_hits"), 3U);
  EXPECT_EQ(Stat("rate_limit.d.ip_192_0_2_1_80.over_limit"), 2U);
  EXPECT_EQ(Stat("rate_limit.d.ip_192_0_2_1_80.over_limit_with_local_cache"), 1U);
  EXPECT_EQ(Stat("rate_limit.nobody.domain_not_found"), 1U);
  const std::string metrics = service_->stats().Prometheus();
  EXPECT_NE(metrics.find("ratelimit_service_rate_limit_over_limit{domain=\"d\","
                         "key1=\"ip_192_0_2_1_80\"} 2\n"),
            std::string::npos);
  EXPECT_NE(metrics.find("ratelimit_service_total_requests{grpc_method=\"ShouldRateLimit\"} 1\n"),
            std::string::npos);
  StatsdReport report({.dog_statsd = true, .extra_tags = {{"env", "test"}}});
  const auto lines = report.Next(service_->stats());
  EXPECT_NE(std::find(lines.begin(), lines.end(),
                      "ratelimit_server.ShouldRateLimit.response_time:0.1|ms|#env:test"),
            lines.end());
  EXPECT_TRUE(report.Next(service_->stats()).empty());
}

TEST_F(RlsServiceTest, AFullTableCountsOnAndDeniesNobodyElse) {
  Start({.memory_bytes = 1});
  service_ = *RlsService::Create({.memory_bytes = size_t{512} << 10, .clock = &clock_});
  ASSERT_TRUE(Load(kTwo).ok());
  for (int i = 0; i < 100'000; ++i) {
    Ask({{{"a", std::to_string(i)}}});
  }
  int passed = 0;
  for (int i = 0; i < 20; ++i) {
    passed += Passes({{"a", "the last"}}) ? 1 : 0;
  }
  EXPECT_LE(passed, 2);  // never more than the limit
}

TEST_F(RlsServiceTest, AnOverrideWithoutAUnitIsAnError) {
  Start();
  ASSERT_TRUE(Load(kTwo).ok());
  RequestBuffer buffer;
  buffer.Begin("d");
  buffer.AddDescriptor().limit = {5, Unit::kUnknown};
  buffer.AddEntry("a", "x");
  service_->ShouldRateLimit(buffer.request(), response_);
  EXPECT_EQ(response_.failure, Failure::kRequest);
  EXPECT_EQ(Stat("call.should_rate_limit.service_error"), 1U);
}

TEST_F(RlsServiceTest, NothingIsLostWhenManyCountWhileFilesChange) {
  Start();
  ASSERT_TRUE(Load(kTwo).ok());
  constexpr int kThreads = 2;
  constexpr int kEach = 5000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      RequestBuffer buffer;
      buffer.Begin("d");
      buffer.AddDescriptor();
      buffer.AddEntry("a", "x");
      Response response;
      for (int n = 0; n < kEach; ++n) {
        service_->ShouldRateLimit(buffer.request(), response);
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(Load(kTwo).ok());
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(Stat("rate_limit.d.a.total_hits"), uint64_t{kThreads} * kEach);
  EXPECT_EQ(Stat("rate_limit.d.a.within_limit"), 2U);
}

TEST_F(RlsServiceTest, JsonInAndOut) {
  Start();
  ASSERT_TRUE(Load(kTwo).ok());
  RlsJsonReader reader;
  ASSERT_TRUE(reader.Read(R"({"domain": "d", "descriptors": [{"entries": [{"key": "b",
      "value": "x"}], "hitsAddend": "2"}], "hits_addend": 7, })") == false);
  ASSERT_TRUE(reader.Read(R"({"domain": "d", "descriptors": [{"entries": [{"key": "b",
      "value": "x"}], "hitsAddend": "2"}, {"entries": [{"key": "q"}], "limit": null}],
      "hits_addend": 7.0})"))
      << reader.error();
  service_->ShouldRateLimit(reader.request(), response_);
  std::string text;
  AppendJson(text, response_);
  EXPECT_EQ(text, R"({"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"name":"bee",)"
                  R"("requestsPerUnit":3,"unit":"HOUR"},"limitRemaining":1,)"
                  R"("durationUntilReset":"2755s"},{"code":"OK"}]})");
  EXPECT_EQ(HttpStatusOf(response_, false), 200);
  for (const char* const bad :
       {"", "[]", "{", R"({"domain": 1})", R"({"domian": "d"})", R"({"domain": "d"} x)",
        R"({"domain": "d", "domain": "e"})", R"({"hitsAddend": -1})", R"({"hitsAddend": 1.5})",
        R"({"hitsAddend": 4294967296})", R"({"descriptors": [null]})",
        R"({"descriptors": [{"limit": {"unit": "FORTNIGHT"}}]})"}) {
    EXPECT_FALSE(reader.Read(bad)) << bad;
    EXPECT_FALSE(reader.error().empty()) << bad;
  }
}

}  // namespace
}  // namespace weir::envoy
