// envoyproxy/ratelimit's own cases, held against ours: files accepted and refused, look-ups,
// counters, storage keys, sequences of calls, the rules of the overall code. Readers go by the
// format alone, so that more files of the same kind are more tests; each suite also has cases of
// our own, which run whether the outside files are there or not.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "envoy/descriptor_config.h"
#include "envoy/descriptor_file.h"
#include "envoy/rls_service.h"
#include "envoy/rls_stats.h"
#include "testing/twin.h"
#include "testing/vectors.h"
#include "tests/conformance/vector_documents.h"

namespace weir::envoy {
namespace {

using nlohmann::json;

// Documents that hold this list, whatever they are called.
std::vector<json> DocumentsWith(const char* list, std::string_view suite) {
  std::vector<json> documents;
  for (json& document : vectors::Documents()) {
    if (document.contains(list)) {
      documents.push_back(std::move(document));
    }
  }
  if (documents.empty()) {
    testing::SayNoOutsideData(suite);
  }
  return documents;
}

std::vector<ConfigFile> FilesOf(const json& list) {
  std::vector<ConfigFile> files;
  for (const json& file : list) {
    files.push_back({file.at("name"), file.at("yaml")});
  }
  return files;
}

// Texts that a request borrows, and the request.
class Question {
 public:
  explicit Question(const json& given, const std::string& unique = {}) : text_(given.dump()) {
    for (size_t at = text_.find("$U"); at != std::string::npos; at = text_.find("$U")) {
      text_.replace(at, 2, unique);
    }
    given_ = json::parse(text_);
    buffer_.Begin(given_.at("domain").get_ref<const std::string&>(),
                  given_.value("hits_addend", 0U));
    for (const json& descriptor : given_.at("descriptors")) {
      Descriptor& added = buffer_.AddDescriptor();
      if (const auto limit = descriptor.find("limit"); limit != descriptor.end()) {
        added.limit = {limit->at("requests_per_unit"),
                       ParseUnit(limit->at("unit").get<std::string>()).value()};
      }
      if (const auto hits = descriptor.find("hits_addend");
          hits != descriptor.end() && !hits->is_null()) {
        added.hits_addend = hits->get<uint64_t>();
      }
      for (const json& entry : descriptor.at("entries")) {
        buffer_.AddEntry(entry[0].get_ref<const std::string&>(),
                         entry[1].get_ref<const std::string&>());
      }
    }
  }

  const Request& request() { return buffer_.request(); }

 private:
  std::string text_;
  json given_;
  RequestBuffer buffer_;
};

json ToJson(const MetadataValue& value) {
  std::string text;
  AppendJson(text, value);
  return json::parse(text);
}

Result<std::unique_ptr<DescriptorConfig>> LoadConfig(const json& test) {
  std::vector<DescriptorFile> files;
  for (const ConfigFile& file : FilesOf(test.at("files"))) {
    auto read = ReadDescriptorFile(file.name, file.yaml);
    if (!read) {
      return read.error();
    }
    files.push_back(*std::move(read));
  }
  return DescriptorConfig::Load(
      files, {.merge_domain_configs = test.value("merge_domain_configs", false)});
}

void RunLoad(const json& test) {
  const json& expect = test.at("expect");
  const auto loaded = LoadConfig(test);
  ASSERT_EQ(loaded.ok(), expect.at("ok").get<bool>())
      << (loaded.ok() ? "" : loaded.error().message);
  if (expect.contains("error")) {
    EXPECT_EQ(loaded.error().message, expect["error"].get<std::string>());
  }
}

void CheckFound(const json& expect, const LookUp& found) {
  ASSERT_NE(found.rule, nullptr);
  const LimitRule& rule = *found.rule;
  EXPECT_EQ(rule.all.requests_per_unit,
            expect.value("requests_per_unit", rule.all.requests_per_unit));
  EXPECT_EQ(ToString(rule.unit), expect.value("unit", std::string(ToString(rule.unit))));
  EXPECT_EQ(rule.all.unlimited, expect.value("unlimited", false));
  EXPECT_EQ(rule.shadow_mode, expect.value("shadow_mode", rule.shadow_mode));
  EXPECT_EQ(rule.quota_mode, expect.value("quota_mode", rule.quota_mode));
  EXPECT_EQ(rule.name, expect.value("name", rule.name));
  EXPECT_EQ(found.stats_key, expect.value("stats_key", std::string(found.stats_key)));
  if (expect.contains("metadata")) {
    EXPECT_EQ(ToJson(rule.metadata), expect["metadata"]);
  }
  if (expect.contains("share_threshold_pattern")) {
    const json& patterns = expect["share_threshold_pattern"];
    EXPECT_EQ(found.shares, !patterns.is_null());
    for (size_t i = 0; i < patterns.size(); ++i) {
      EXPECT_EQ(found.share_patterns.at(i), patterns[i].get<std::string>());
    }
  }
}

void RunLookUp(const json& test) {
  const auto config = LoadConfig(test);
  ASSERT_TRUE(config.ok()) << config.error().message;
  const Domain* const domain = (*config)->FindDomain(test.at("domain").get<std::string>());
  const json& expect = test.at("expect");
  Question question(json{{"domain", test["domain"]},
                         {"descriptors", json::array({{{"entries", test.at("entries")}}})}});
  const std::span<const Entry> entries = question.request().descriptors[0].entries;
  if (test.contains("limit_override")) {
    EXPECT_EQ(domain == nullptr, expect.is_null());
    if (!expect.is_null()) {
      std::string path;
      AppendOverridePath(path, domain->name, entries);
      EXPECT_EQ(path, expect.at("stats_key").get<std::string>());
      EXPECT_EQ(test["limit_override"]["unit"], expect.at("unit"));
    }
    return;
  }
  LookUp found;
  if (domain != nullptr) {
    DescriptorConfig::Find(*domain, entries, found);
  }
  if (expect.is_null()) {
    EXPECT_EQ(found.rule, nullptr);
  } else {
    CheckFound(expect, found);
  }
}

void RunConfigCase(const json& test) {
  SCOPED_TRACE(test.at("id").get<std::string>());
  if (test.at("kind") == "load") {
    RunLoad(test);
  } else {
    ASSERT_EQ(test["kind"], "lookup");
    RunLookUp(test);
  }
}

// A service on a clock that stands at an instant.
struct Subject {
  explicit Subject(RlsOptions options, std::chrono::seconds unix_time)
      : clock(WallTime(unix_time)) {
    options.clock = &clock;
    options.memory_bytes = size_t{4} << 20;
    service = *RlsService::Create(options);
  }

  const Response& Ask(const json& request, const std::string& unique = {}) {
    Question question(request, unique);
    service->ShouldRateLimit(question.request(), response);
    return response;
  }

  uint64_t Stat(const std::string& name) {
    const auto counters = service->stats().Counters();
    const auto found = counters.find("ratelimit.service." + name);
    return found == counters.end() ? 0 : found->second;
  }

  ManualClock clock;
  std::unique_ptr<RlsService> service;
  Response response;
};

void RunCounter(const json& test) {
  Subject subject({.near_limit_ratio = test.at("near_limit_ratio")},
                  std::chrono::seconds(test.at("now_unix").get<int64_t>()));
  std::string yaml =
      "domain: domain\ndescriptors:\n- key: key\n  rate_limit: {unit: " +
      test.at("unit").get<std::string>() +
      ", requests_per_unit: " + std::to_string(test.at("limit").get<uint32_t>()) +
      "}\n  shadow_mode: " + (test.at("shadow_mode").get<bool>() ? "true" : "false") + "\n";
  ASSERT_TRUE(subject.service->Load(std::vector<ConfigFile>{{"a.yaml", yaml}}).ok());
  const auto ask = [&](uint64_t hits) -> const Response& {
    return subject.Ask(
        {{"domain", "domain"},
         {"descriptors", json::array({{{"entries", json::array({json::array({"key", "value"})})},
                                       {"hits_addend", hits}}})}});
  };
  ask(test.at("count_before").get<uint64_t>());
  const std::vector<std::string> names = {"total_hits", "over_limit", "near_limit", "within_limit",
                                          "shadow_mode"};
  std::vector<uint64_t> before;
  for (const std::string& name : names) {
    before.push_back(subject.Stat("rate_limit.domain.key." + name));
  }
  const DescriptorStatus& status = ask(test.at("hits").get<uint64_t>()).statuses.at(0);
  const json& expect = test.at("expect");
  EXPECT_EQ(ToString(status.code), expect.at("code").get<std::string>());
  EXPECT_EQ(status.limit_remaining, expect.at("limit_remaining").get<uint32_t>());
  EXPECT_EQ(status.duration_until_reset,
            std::chrono::seconds(expect.at("duration_until_reset_s").get<int64_t>()));
  for (size_t i = 0; expect.contains("stats_delta") && i < names.size(); ++i) {
    EXPECT_EQ(subject.Stat("rate_limit.domain.key." + names[i]) - before[i],
              expect["stats_delta"].at(names[i]).get<uint64_t>())
        << names[i];
  }
}

void RunStorageKey(const json& test) {
  Question question(json{{"domain", test.at("domain")},
                         {"descriptors", json::array({{{"entries", test.at("entries")}}})}});
  std::vector<std::string> patterns =
      test.value("share_threshold_pattern", std::vector<std::string>());
  const std::vector<std::string_view> views(patterns.begin(), patterns.end());
  std::string key;
  AppendCounterKey(key, test.at("prefix").get<std::string>(), question.request().domain,
                   question.request().descriptors[0].entries, views, false);
  const int64_t length = SecondsOf(*ParseUnit(test.at("unit").get<std::string>()));
  const auto now = test.at("now_unix").get<int64_t>();
  EXPECT_EQ(key + std::to_string(now - now % length), test.at("key").get<std::string>());
}

void CheckAnswer(const json& expect, const Response& response) {
  if (expect.contains("grpc_error")) {
    EXPECT_EQ(response.failure, Failure::kRequest);
    EXPECT_EQ(response.error, expect["grpc_error"].get<std::string>());
    return;
  }
  ASSERT_EQ(response.failure, Failure::kNone) << response.error;
  if (expect.at("overall_code") != "ANY") {
    EXPECT_EQ(ToString(response.overall_code), expect["overall_code"].get<std::string>());
  }
  if (!expect.contains("statuses")) {
    return;
  }
  ASSERT_EQ(response.statuses.size(), expect["statuses"].size());
  for (size_t i = 0; i < response.statuses.size(); ++i) {
    const json& wanted = expect["statuses"][i];
    const DescriptorStatus& status = response.statuses[i];
    EXPECT_EQ(ToString(status.code), wanted.at("code").get<std::string>());
    EXPECT_EQ(status.limit_remaining, wanted.at("limit_remaining").get<uint32_t>());
    EXPECT_EQ(status.has_limit, !wanted.at("current_limit").is_null());
    if (status.has_limit) {
      EXPECT_EQ(status.current_limit.requests_per_unit,
                wanted["current_limit"].at("requests_per_unit").get<uint32_t>());
      EXPECT_EQ(ToString(status.current_limit.unit),
                wanted["current_limit"].at("unit").get<std::string>());
    }
  }
}

// duration_until_reset is what is left of the unit, counted from the epoch.
void CheckReset(const Response& response, WallTime now) {
  for (const DescriptorStatus& status : response.statuses) {
    if (status.has_limit && status.duration_until_reset != Duration::zero()) {
      const std::chrono::seconds length(SecondsOf(status.current_limit.unit));
      EXPECT_EQ(status.duration_until_reset, length - now.time_since_epoch() % length);
    }
  }
}

// "over_limit for key rl.unspec_unspecified_value = 1"
void CheckMetric(const std::string& metric, Subject& subject) {
  std::istringstream words(metric);
  std::string name, of, word, key, equals;
  uint64_t value = 0;
  words >> name >> of >> word >> key >> equals >> value;
  ASSERT_TRUE(words && of + " " + word + " " + equals == "for key =") << metric;
  EXPECT_EQ(subject.Stat("rate_limit." + key + "." + name), value) << metric;
}

size_t RunSequence(const json& sequence) {
  RlsOptions options;
  if (const auto settings = sequence.find("settings"); settings != sequence.end()) {
    options.all_or_nothing = settings->value("stop_cache_key_increment_when_overlimit", false);
  }
  Subject subject(options, std::chrono::seconds(1'700'000'005));
  std::vector<ConfigFile> files = FilesOf(sequence.at("files"));
  if (!files.empty()) {
    EXPECT_TRUE(subject.service->Load(files).ok());
  }
  const auto without = [&](const std::string& name) {
    std::erase_if(files, [&](const ConfigFile& file) { return file.name == name; });
  };
  std::vector<Duration> saved;
  size_t calls = 0;
  uint64_t failed_loads = 0;
  for (const json& step : sequence.at("steps")) {
    SCOPED_TRACE(step.dump());
    if (step.contains("request")) {
      ++calls;
      CheckAnswer(step.at("expect"), subject.Ask(step["request"], "u1"));
      CheckReset(subject.response, subject.clock.WallNow());
      if (step.contains("save")) {
        saved.push_back(subject.response.statuses.at(0).duration_until_reset);
      }
    } else if (step.contains("write_config")) {
      without(step["write_config"].at("name").get<std::string>());
      files.push_back({step["write_config"].at("name"), step["write_config"].at("yaml")});
      failed_loads += static_cast<uint64_t>(!subject.service->Load(files).ok());
    } else if (step.contains("remove_config")) {
      without(step["remove_config"].get<std::string>());
      failed_loads += static_cast<uint64_t>(!subject.service->Load(files).ok());
    } else if (step.contains("sleep_ms") || step.contains("wait_ms")) {
      subject.clock.Advance(std::chrono::milliseconds(step.value("sleep_ms", int64_t{0}) +
                                                      step.value("wait_ms", int64_t{0})));
    } else {
      EXPECT_TRUE(step.contains("wait_reload")) << "a step without a reader";
    }
  }
  if (sequence.contains("relation")) {  // of the two that were saved
    EXPECT_LT(saved.at(1), saved.at(0));
  }
  if (sequence.contains("metric")) {
    CheckMetric(sequence["metric"], subject);
  }
  EXPECT_EQ(subject.Stat("config_load_error"), failed_loads);
  return calls;
}

void RunOverallRule(const json& rule) {
  Subject subject({.global_shadow_mode = rule.value("global_shadow", false)},
                  std::chrono::seconds(1'700'000'005));
  std::string yaml = "domain: d\ndescriptors:\n";
  json descriptors = json::array();
  for (size_t i = 0; i < rule.at("quota").size(); ++i) {
    const bool over = rule.at("over")[i];
    yaml += "- key: k" + std::to_string(i) +
            "\n  quota_mode: " + (rule["quota"][i].get<bool>() ? "true" : "false") +
            "\n  rate_limit: {unit: hour, requests_per_unit: " + (over ? "0" : "5") + "}\n";
    descriptors.push_back(
        {{"entries", json::array({json::array({"k" + std::to_string(i), "v"})})}});
  }
  ASSERT_TRUE(subject.service->Load(std::vector<ConfigFile>{{"a.yaml", yaml}}).ok());
  const Response& response = subject.Ask({{"domain", "d"}, {"descriptors", descriptors}});
  EXPECT_EQ(ToString(response.overall_code), rule.at("overall").get<std::string>());
  for (size_t i = 0; i < response.statuses.size(); ++i) {
    EXPECT_EQ(response.statuses[i].code == Code::kOverLimit, rule["over"][i].get<bool>());
  }
}

json Parsed(const char* text) {
  return json::parse(text);
}

json OneFile(std::string_view yaml) {
  return json::array({{{"name", "a.yaml"}, {"yaml", yaml}}});
}

json OwnConfig() {
  json aliases = Parsed(R"({"id": "own/aliases", "kind": "load", "expect": {"ok": true}})");
  aliases["files"] = OneFile(
      "domain: d\ndescriptors:\n- key: a\n  rate_limit: &r {unit: day, requests_per_unit: 1}\n"
      "- key: b\n  rate_limit: *r\n- key: c\n  rate_limit:\n    <<: *r\n"
      "    requests_per_unit: 2\n");
  json fraction = Parsed(R"({"id": "own/float", "kind": "load",
      "expect": {"ok": false, "error": "a.yaml: error checking config"}})");
  fraction["files"] = OneFile(
      "domain: d\ndescriptors:\n- key: a\n  rate_limit: {unit: day, requests_per_unit: 1.5}\n");
  json collision = Parsed(R"({"id": "own/collision", "kind": "lookup", "domain": "d",
      "entries": [["a", "b_c"]],
      "expect": {"requests_per_unit": 7, "unit": "DAY", "stats_key": "d.a_b_c"}})");
  collision["files"] = OneFile(
      "domain: d\ndescriptors:\n- key: a_b\n  value: c\n"
      "  rate_limit: {unit: day, requests_per_unit: 7}\n");
  return json::array({aliases, fraction, collision});
}

TEST(EnvoyVectors, FilesLoadAndLimitsAreFoundAsTheOriginalDoes) {
  for (const json& test : OwnConfig()) {
    RunConfigCase(test);
  }
  for (const vectors::Case& one :
       vectors::OutsideCases(vectors::Kind::kConfig, "envoy configuration")) {
    RunConfigCase(one.test);
  }
}

constexpr const char* kOwnCounters = R"([
  {"id": "own/week", "limit": 4294967295, "unit": "WEEK", "now_unix": 604801, "hits": 4294967295,
   "count_before": 0, "near_limit_ratio": 0.8, "shadow_mode": false,
   "expect": {"code": "OK", "limit_remaining": 0, "duration_until_reset_s": 604799}},
  {"id": "own/beyond", "limit": 4294967295, "unit": "YEAR", "now_unix": 31536000, "hits": 1,
   "count_before": 4294967295, "near_limit_ratio": 0.8, "shadow_mode": false,
   "expect": {"code": "OVER_LIMIT", "limit_remaining": 0, "duration_until_reset_s": 31536000}},
  {"id": "own/peek at the limit", "limit": 10, "unit": "MONTH", "now_unix": 2592059, "hits": 0,
   "count_before": 10, "near_limit_ratio": 0.8, "shadow_mode": false,
   "expect": {"code": "OK", "limit_remaining": 0, "duration_until_reset_s": 2591941}}
])";

TEST(EnvoyVectors, CountersGoAsTheirsDo) {
  json cases = Parsed(kOwnCounters);
  for (const vectors::Case& one :
       vectors::OutsideCases(vectors::Kind::kCounter, "envoy counters")) {
    cases.push_back(one.test);
  }
  for (const json& test : cases) {
    SCOPED_TRACE(test.at("id").get<std::string>());
    RunCounter(test);
  }
}

TEST(EnvoyVectors, CountersAreKeptUnderTheirKeys) {
  for (const json& document : DocumentsWith("storage_keys", "envoy storage keys")) {
    for (const json& test : document["storage_keys"]) {
      SCOPED_TRACE(test.at("id").get<std::string>());
      RunStorageKey(test);
    }
  }
}

json OwnSequence() {
  json asked = Parsed(R"({"domain": "d", "descriptors": [{"entries": [["k", "v"]]}]})");
  json overridden = asked;
  overridden["descriptors"][0]["limit"] = {{"requests_per_unit", 1}, {"unit", "DAY"}};
  json steps = json::array();
  steps.push_back({{"request", overridden}, {"expect", Parsed(R"({"overall_code": "OK",
      "statuses": [{"code": "OK", "limit_remaining": 0,
                    "current_limit": {"requests_per_unit": 1, "unit": "DAY"}}]})")}});
  steps.push_back({{"request", overridden}, {"expect", {{"overall_code", "OVER_LIMIT"}}}});
  steps.push_back({{"request", asked}, {"expect", Parsed(R"({"overall_code": "OK",
      "statuses": [{"code": "OK", "limit_remaining": 6,
                    "current_limit": {"requests_per_unit": 9, "unit": "DAY"}}]})")}});
  return {{"id", "own/override"},
          {"steps", steps},
          {"files", OneFile("domain: d\ndescriptors:\n- key: k\n  shadow_mode: true\n"
                            "  rate_limit: {unit: day, requests_per_unit: 9}\n")}};
}

TEST(EnvoyVectors, SequencesOfCallsAreAnsweredAsTheirsAre) {
  RunSequence(OwnSequence());
  for (const vectors::Case& one :
       vectors::OutsideCases(vectors::Kind::kSequence, "envoy sequences")) {
    SCOPED_TRACE(vectors::NameOf(one));
    EXPECT_GT(RunSequence(one.test), 0U);
  }
}

TEST(EnvoyVectors, TheOverallCodeFollowsItsRules) {
  RunOverallRule(Parsed(R"({"quota": [true], "over": [true], "overall": "OVER_LIMIT"})"));
  for (const json& document : DocumentsWith("overall_rules", "envoy overall codes")) {
    for (const json& rule : document["overall_rules"]) {
      SCOPED_TRACE(rule.dump());
      RunOverallRule(rule);
    }
  }
}

TEST(EnvoyVectors, HeadersTellOfTheDescriptorNearestItsLimit) {
  for (const json& document : DocumentsWith("response_headers", "envoy response headers")) {
    const json& headers = document.at("response_headers").at("example");
    Subject subject({.response_headers = true},
                    std::chrono::seconds(headers.at("now_unix").get<int64_t>()));
    const std::string yaml = "domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: " +
                             headers.at("unit").get<std::string>() + ", requests_per_unit: " +
                             std::to_string(headers.at("limit").get<uint32_t>()) + "}\n";
    ASSERT_TRUE(subject.service->Load(std::vector<ConfigFile>{{"a.yaml", yaml}}).ok());
    const uint32_t hits =
        headers.at("limit").get<uint32_t>() - headers.at("remaining").get<uint32_t>();
    subject.Ask(
        {{"domain", "d"},
         {"hits_addend", hits},
         {"descriptors", json::array({{{"entries", json::array({json::array({"k", "v"})})}}})}});
    ASSERT_EQ(subject.response.response_headers_to_add.size(), 3U);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(subject.response.response_headers_to_add[i].value,
                headers.at("values")[i].get<std::string>());
      EXPECT_EQ(subject.response.response_headers_to_add[i].key,
                document["response_headers"]["default_names"][i].get<std::string>());
    }
  }
}

}  // namespace
}  // namespace weir::envoy
