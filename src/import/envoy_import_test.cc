// Files of envoyproxy/ratelimit as rules: what is carried, and that it decides as src/envoy does.
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "envoy/rls_service.h"
#include "import/test_import.h"

namespace weir::import {
namespace {

TEST(EnvoyImport, TakesTheMostSpecificLimitOfEachLevel) {
  const Imported imported = MustImport(R"(
domain: edge
descriptors:
  - key: remote_address
    rate_limit: {unit: minute, requests_per_unit: 3}
  - key: remote_address
    value: 50.0.0.5
    rate_limit: {unit: second, requests_per_unit: 0}
  - key: message_type
    value: marketing
    descriptors:
      - key: to_number
        rate_limit: {unit: day, requests_per_unit: 2}
)",
                                       Format::kEnvoy);
  EXPECT_EQ(Count(imported, Carry::kDropped), 0U);
  const auto rules = Running(imported, Format::kEnvoy);
  EXPECT_EQ(Passed(*rules, {{"ip", "192.0.2.1"}}, 5), 3);
  EXPECT_EQ(Passed(*rules, {{"ip", "192.0.2.2"}}, 5), 3);
  EXPECT_EQ(Passed(*rules, {{"ip", "50.0.0.5"}}, 5), 0);
  EXPECT_EQ(Passed(*rules, {{"message_type", "marketing"}, {"to_number", "1"}}, 5), 2);
  EXPECT_EQ(Passed(*rules, {{"message_type", "alert"}, {"to_number", "1"}}, 5), 5);
}

TEST(EnvoyImport, SaysWhatCouldNotBeCarriedAndWhere) {
  const Imported imported = MustImport(R"(domain: d
descriptors:
  - key: a
    detailed_metric: true
    rate_limit: {unit: hour, requests_per_unit: 3}
  - key: b*
    value: c
    rate_limit: {unit: hour, requests_per_unit: 3}
  - key: q1
    quota_mode: true
    rate_limit: {unit: hour, requests_per_unit: 1}
  - key: q2
    quota_mode: true
    metadata: {x: y}
    rate_limit: {unit: hour, requests_per_unit: 1}
  - key: odd key
    rate_limit: {unit: month, requests_per_unit: 1}
)",
                                       Format::kEnvoy);
  EXPECT_TRUE(Says(imported, Carry::kDropped, 3, "detailed_metric"));
  EXPECT_TRUE(Says(imported, Carry::kDropped, 6, "a key that is a pattern"));
  EXPECT_TRUE(Says(imported, Carry::kDropped, 9, "quota_mode"));
  EXPECT_TRUE(Says(imported, Carry::kDropped, 12, "metadata"));
  EXPECT_TRUE(Says(imported, Carry::kCarried, 16, "is the attribute \"odd_key\""));
  EXPECT_TRUE(Says(imported, Carry::kApproximated, 1, "counts what it refuses"));
  const std::string yaml = YamlOf(imported, Format::kEnvoy);
  EXPECT_NE(yaml.find("# in:9: dropped: quota_mode"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("1/30d fixed-window"), std::string::npos) << yaml;
  EXPECT_NE(WriteReport(imported).find("in:3: carried: key a, 3 per hour is the rule a"),
            std::string::npos)
      << WriteReport(imported);
}

TEST(EnvoyImport, RefusesWhatTheDropInRefusesWithItsWords) {
  const std::vector<Source> bad = {{"a.yaml", "domain: d\ndescriptors:\n  - key: a\n    odd: 1\n"}};
  const auto imported = Import(bad, Format::kEnvoy, {});
  ASSERT_FALSE(imported.ok());
  EXPECT_EQ(imported.error().message, "a.yaml: config error, unknown key 'odd'");
  const std::vector<Source> twice = {{"a.yaml", "domain: d\n"}, {"b.yaml", "domain: d\n"}};
  EXPECT_FALSE(Import(twice, Format::kEnvoy, {}).ok());
  EXPECT_TRUE(Import(twice, Format::kEnvoy, {.attributes = {}, .merge_domains = true}).ok());
}

TEST(EnvoyImport, CarriesOurOwnAlgorithmsTiersAndOverrides) {
  const Imported imported = MustImport(R"(
domain: d
all_or_nothing: true
descriptors:
  - key: plan
    descriptors:
      - key: user
        rate_limit:
          requests_per_unit: 2
          window: 30s
          algorithm: sliding-log
          by: plan
          tiers: [{name: pro, requests_per_unit: 4}, {name: staff, unlimited: true}]
          overrides: [{value: alice, requests_per_unit: 1}]
)",
                                       Format::kEnvoy);
  EXPECT_EQ(imported.findings.size(), 0U) << WriteReport(imported);
  const auto rules = Running(imported, Format::kEnvoy);
  EXPECT_EQ(Passed(*rules, {{"plan", "free"}, {"user", "bob"}}, 9), 2);
  EXPECT_EQ(Passed(*rules, {{"plan", "pro"}, {"user", "bob"}}, 9), 4);
  EXPECT_EQ(Passed(*rules, {{"plan", "staff"}, {"user", "bob"}}, 9), 9);
  EXPECT_EQ(Passed(*rules, {{"plan", "pro"}, {"user", "alice"}}, 9), 1);
}

TEST(EnvoyImport, TellsDomainsApartByAnAttribute) {
  const std::vector<Source> sources = {
      {"a", "domain: a\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1}}]"},
      {"b", "domain: b\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 2}}]"}};
  const auto imported = Import(sources, Format::kEnvoy, {});
  ASSERT_TRUE(imported.ok()) << MessageOf(imported);
  const auto rules = Running(*imported, Format::kEnvoy);
  EXPECT_EQ(Passed(*rules, {{"domain", "a"}, {"k", "v"}}, 5), 1);
  EXPECT_EQ(Passed(*rules, {{"domain", "b"}, {"k", "v"}}, 5), 2);
  EXPECT_EQ(Passed(*rules, {{"k", "v"}}, 5), 5);
}

TEST(EnvoyImport, HasRoomForMoreSequencesThanGroupsWhereTheyExcludeOneAnother) {
  std::string text = "domain: d\ndescriptors:\n";
  for (int i = 0; i < 100; ++i) {
    text += "  - {key: route_id, value: r" + std::to_string(i) + ", descriptors: [{key: k" +
            std::to_string(i) + ", rate_limit: {unit: day, requests_per_unit: 1}}]}\n";
  }
  const Imported imported = MustImport(text, Format::kEnvoy);
  EXPECT_EQ(Count(imported, Carry::kDropped), 0U) << WriteReport(imported);
  const auto rules = Running(imported, Format::kEnvoy);
  EXPECT_EQ(Passed(*rules, {{"route_id", "r99"}, {"k99", "v"}}, 5), 1);
  std::string many = "domain: d\ndescriptors:\n";
  for (int i = 0; i < 100; ++i) {
    many +=
        "  - {key: k" + std::to_string(i) + ", rate_limit: {unit: day, requests_per_unit: 1}}\n";
  }
  EXPECT_EQ(Count(MustImport(many, Format::kEnvoy), Carry::kDropped), 36U);
}

// Random files, asked random questions: the imported rules say what src/envoy says.
class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  std::string File() {
    return "domain: d\nall_or_nothing: true\ndescriptors:\n" + Descriptors(1, "  ");
  }

  size_t Up(size_t to) { return std::uniform_int_distribution<size_t>(0, to - 1)(random_); }

  static constexpr std::string_view kKeys[] = {"a", "b", "c", "path"};
  static constexpr std::string_view kValues[] = {"x", "y", "xy", "/x?q", "present"};

 private:
  std::string Descriptors(int depth, const std::string& indent) {
    std::string text;
    for (size_t n = 1 + Up(3); n > 0; --n) {
      text += indent + "- key: " + std::string(kKeys[Up(4)]) + "\n";
      constexpr std::string_view kPatterns[] = {"\"x*\"", "\"*y\"", "\"*\"", "\"/x?*\"",
                                                "\"*x*y*\""};
      const size_t kind = Up(3);
      const bool wild = kind == 2;
      if (kind != 0) {
        text += indent + "  value: " + std::string(wild ? kPatterns[Up(5)] : kValues[Up(5)]) + "\n";
      }
      if (Up(3) != 0) {
        text += Limit(indent + "  ");
      }
      text += wild && Up(2) == 0 ? indent + "  share_threshold: true\n" : "";
      text += Up(5) == 0 ? indent + "  shadow_mode: true\n" : "";
      if (depth < 3 && Up(2) == 0) {
        text += indent + "  descriptors:\n" + Descriptors(depth + 1, indent + "    ");
      }
    }
    return text;
  }

  std::string Limit(const std::string& indent) {
    if (Up(8) == 0) {
      return indent + "rate_limit: {unlimited: true}\n";
    }
    constexpr std::string_view kUnits[] = {"second", "minute", "HOUR", "day", "week", "month"};
    std::string text = indent + "rate_limit:\n" + indent + "  unit: " + std::string(kUnits[Up(6)]) +
                       "\n" + indent + "  requests_per_unit: " + std::to_string(Up(5)) + "\n";
    const size_t name = Up(6);
    text += name < 3 ? indent + "  name: n" + std::to_string(name) + "\n" : "";
    if (name > 3) {
      text += indent + "  replaces: [{name: n" + std::to_string(Up(3)) + "}]\n";
    }
    return text;
  }

  std::mt19937 random_;
};

// A descriptor for every sequence of what the request has.
void AddDescriptors(const std::vector<Attribute>& request, std::vector<size_t>& chosen,
                    envoy::RequestBuffer& buffer) {
  if (!chosen.empty()) {
    buffer.AddDescriptor();
    for (const size_t i : chosen) {
      buffer.AddEntry(request[i].name, request[i].value);
    }
  }
  for (size_t i = 0; i < request.size() && chosen.size() < 3; ++i) {
    if (std::find(chosen.begin(), chosen.end(), i) == chosen.end()) {
      chosen.push_back(i);
      AddDescriptors(request, chosen, buffer);
      chosen.pop_back();
    }
  }
}

TEST(EnvoyImport, DecidesAsTheOriginalOnRandomFilesAndRequests) {
  int compared = 0;
  int refused = 0;
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    Generator generate(seed);
    const std::string file = generate.File();
    const std::vector<Source> sources = {{"in", file}};
    ManualClock clock(rules::kTestStart);
    auto service = envoy::RlsService::Create({.memory_bytes = size_t{1} << 20, .clock = &clock});
    ASSERT_TRUE(service.ok());
    const std::vector<envoy::ConfigFile> files = {{"in", file}};
    const bool accepted = (*service)->Load(files).ok();
    const auto imported = Import(sources, Format::kEnvoy, {});
    ASSERT_EQ(imported.ok(), accepted) << MessageOf(imported) << file;
    bool exact = accepted;
    for (const Finding& finding : accepted ? imported->findings : std::vector<Finding>()) {
      exact = exact && (finding.carry == Carry::kCarried ||
                        finding.what.find("meets both") != std::string::npos ||
                        finding.what.find("it is above too") != std::string::npos);
    }
    if (!exact) {
      continue;
    }
    const auto rules = Running(*imported, Format::kEnvoy);
    for (int i = 0; i < 60; ++i) {
      std::vector<Attribute> request;
      for (const std::string_view key : Generator::kKeys) {
        if (generate.Up(2) == 0) {
          request.push_back({key, Generator::kValues[generate.Up(5)]});
        }
      }
      const Duration step = std::chrono::seconds(generate.Up(4) == 0 ? generate.Up(40) : 0);
      clock.Advance(step);
      rules->clock.Advance(step);
      envoy::RequestBuffer buffer;
      buffer.Begin("d");
      std::vector<size_t> chosen;
      AddDescriptors(request, chosen, buffer);
      if (request.empty()) {
        continue;
      }
      envoy::Response response;
      (*service)->ShouldRateLimit(buffer.request(), response);
      ASSERT_EQ(response.failure, envoy::Failure::kNone) << response.error;
      const bool passes = response.overall_code == envoy::Code::kOk;
      std::string asked;
      for (const Attribute& attribute : request) {
        asked += std::string(attribute.name) + "=" + std::string(attribute.value) + " ";
      }
      ASSERT_EQ(rules->limiter->Check(request).allowed(), passes)
          << "seed " << seed << ", request " << i << ": " << asked << "\n"
          << file << YamlOf(*imported, Format::kEnvoy);
      ++compared;
      refused += passes ? 0 : 1;
    }
  }
  EXPECT_GT(compared, 1500);
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace weir::import
