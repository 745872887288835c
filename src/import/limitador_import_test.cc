// limitador's limits as rules.
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "import/cel.h"
#include "import/test_import.h"

namespace weir::import {
namespace {

constexpr Format kFormat = Format::kLimitador;

TEST(LimitadorImport, AppliesAllLimitsThatHoldAndCountsFromTheFirstHit) {
  const Imported imported = MustImport(R"(
- namespace: shop
  name: posts
  max_value: 3
  seconds: 60
  conditions:
    - "descriptors[0]['req.method'] == 'POST'"
  variables:
    - descriptors[0].user_id
- namespace: shop
  max_value: 5
  seconds: 3600
  conditions: ["req.method == POST"]
  variables: [user_id]
)",
                                       kFormat);
  EXPECT_TRUE(imported.findings.empty()) << WriteReport(imported);
  const auto rules = Running(imported, kFormat);
  const std::vector<Attribute> post = {{"req.method", "POST"}, {"user_id", "alice"}};
  rules->clock.Advance(std::chrono::seconds(59));  // windows do not begin with the minute
  EXPECT_EQ(Passed(*rules, post, 9), 3);
  rules->clock.Advance(std::chrono::seconds(59));
  EXPECT_EQ(Passed(*rules, post, 9), 0);
  rules->clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Passed(*rules, post, 9), 2) << "the hour has five";
  EXPECT_EQ(Passed(*rules, {{"req.method", "GET"}, {"user_id", "alice"}}, 9), 9);
  EXPECT_EQ(Passed(*rules, {{"req.method", "POST"}}, 9), 9) << "nothing to count by";
}

TEST(LimitadorImport, ExceptsWhatIsNotMeant) {
  const Imported imported = MustImport(
      "- {namespace: n, max_value: 1, seconds: 10, conditions: [\"descriptors[0].a != 'x' && "
      "!(descriptors[0].b.startsWith('int') || has(descriptors[0].c))\"], variables: []}\n",
      kFormat);
  EXPECT_EQ(Count(imported, Carry::kDropped), 0U) << WriteReport(imported);
  const auto rules = Running(imported, kFormat);
  EXPECT_EQ(Passed(*rules, {{"a", "x"}, {"b", "ext"}}, 3), 3);
  EXPECT_EQ(Passed(*rules, {{"a", "y"}, {"b", "internal"}}, 3), 3);
  EXPECT_EQ(Passed(*rules, {{"a", "y"}, {"b", "ext"}, {"c", "1"}}, 3), 3);
  EXPECT_EQ(Passed(*rules, {{"b", "ext"}}, 3), 3) << "what is compared is not there";
  EXPECT_EQ(Passed(*rules, {{"a", "y"}, {"b", "ext"}}, 3), 1);
}

TEST(LimitadorImport, KnowsTheComparisonsOfCel) {
  const CelAttribute same = [](const std::string& name, size_t) { return name; };
  const auto read = [&](std::string_view text) { return ReadCelCondition(text, same); };
  EXPECT_EQ(read("descriptors[0].m in ['GET', \"PUT\"]"),
            Only({"m", {{Match::kExact, "GET"}, {Match::kExact, "PUT"}}}));
  EXPECT_EQ(read("m == 'GET' || m == 'PUT'"), read("descriptors[0]['m'] in ['GET','PUT']"));
  EXPECT_EQ(read("'x' in descriptors[0]"), Only({"x", {{Match::kPresent, ""}}}));
  EXPECT_EQ(read("\"a\\\"b\" == x"), Only({"x", {{Match::kExact, "a\"b"}}}));
  EXPECT_EQ(read("a.b.contains('x')"), Only({"a.b", {{Match::kContains, "x"}}}));
  EXPECT_EQ(read("true"), Always());
  for (const char* wrong : {"", "a ==", "a == b c", "a < 5", "size(a) == 1", "(a == 'b'", "a == 'b",
                            "descriptors == 'x'", "descriptors[0] == 'x'", "a in [b]", "has(a"}) {
    EXPECT_THROW((void)read(wrong), CelRefused) << wrong;
  }
}

TEST(LimitadorImport, SaysWhatItCannotCarry) {
  const Imported imported = MustImport(R"(- namespace: a
  max_value: 3
  seconds: 60
  conditions: ["descriptors[0].size > 5"]
  variables: []
- namespace: b
  max_value: 0
  seconds: 60
  conditions: ["descriptors[1].x == 'y'"]
  variables: []
  policy: odd
)",
                                       kFormat);
  EXPECT_TRUE(Says(imported, Carry::kDropped, 4, "at byte"));
  EXPECT_TRUE(Says(imported, Carry::kApproximated, 9, "descriptors[1]"));
  EXPECT_TRUE(Says(imported, Carry::kDropped, 11, "policy"));
  const auto rules = Running(imported, kFormat);
  EXPECT_EQ(Passed(*rules, {{"namespace", "b"}, {"x", "y"}}, 3), 0);
  EXPECT_EQ(Passed(*rules, {{"namespace", "a"}, {"x", "y"}}, 3), 3);
}

TEST(LimitadorImport, RefusesWhatIsNoLimitsFile) {
  const auto message = [](std::string_view text) {
    const std::vector<Source> sources = {{"l.yaml", std::string(text)}};
    return MessageOf(Import(sources, kFormat, {}));
  };
  EXPECT_EQ(message("- namespace: a\n  max_value: many\n  seconds: 1\n"),
            "l.yaml:2:14: error: max_value: found \"many\"; expected a whole number");
  EXPECT_NE(message("- {namespace: a, max_value: 1}\n").find("l.yaml:1:3: error: a limit without"),
            std::string::npos);
  EXPECT_NE(message("5"), "");
  EXPECT_NE(message("- [1\n"), "");
}

// Whatever the conditions are, the rules that come of it are good ones, and say what they say.
TEST(LimitadorImport, DecidesByTheConditionsOfRandomLimits) {
  std::mt19937 random(7);
  const auto up = [&](size_t to) {
    return std::uniform_int_distribution<size_t>(0, to - 1)(random);
  };
  constexpr std::string_view kNames[] = {"a", "b", "c"};
  constexpr std::string_view kTexts[] = {"x", "y", "xyz"};
  int refused = 0;
  for (int round = 0; round < 150; ++round) {
    struct Part {
      std::string_view name, text;
      size_t kind;
    };
    std::vector<Part> parts(1 + up(3));
    std::string condition;
    for (Part& part : parts) {
      part = {kNames[up(3)], kTexts[up(3)], up(4)};
      constexpr std::string_view kForms[] = {" == 'T'", " != 'T'", ".startsWith('T')",
                                             ".endsWith('T')"};
      std::string form(kForms[part.kind]);
      form.replace(form.find('T'), 1, part.text);
      condition +=
          (condition.empty() ? "" : " && ") + ("descriptors[0]." + std::string(part.name)) + form;
    }
    const Imported imported =
        MustImport("- {namespace: n, max_value: 0, seconds: 10, conditions: [\"" + condition +
                       "\"], variables: []}\n",
                   kFormat);
    if (Count(imported, Carry::kDropped) != 0) {
      continue;  // two patterns of one attribute, or a condition that never holds
    }
    const auto rules = Running(imported, kFormat);
    for (int i = 0; i < 20; ++i) {
      std::vector<Attribute> request;
      for (const std::string_view name : kNames) {
        if (up(4) != 0) {
          request.push_back({name, kTexts[up(3)]});
        }
      }
      bool holds = true;
      for (const Part& part : parts) {
        const auto found = std::find_if(request.begin(), request.end(), [&](const Attribute& one) {
          return one.name == part.name;
        });
        const std::string_view value = found == request.end() ? "" : found->value;
        holds = holds && !value.empty() &&
                (part.kind == 0   ? value == part.text
                 : part.kind == 1 ? value != part.text
                 : part.kind == 2 ? value.starts_with(part.text)
                                  : value.ends_with(part.text));
      }
      ASSERT_EQ(rules->limiter->Check(request).allowed(), !holds) << condition << "\n"
                                                                  << YamlOf(imported, kFormat);
      refused += holds ? 1 : 0;
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace weir::import
