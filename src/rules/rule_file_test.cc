// What a rule file may say, and what is said about one that does not.
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/rules.h"

#include "rules/test_rules.h"
#include "rules/yaml_reader.h"

namespace weir::rules {
namespace {

// All findings of a text that must be refused.
std::string Refused(std::string_view text) {
  const RuleParse parse = RuleSet::Parse(text, "f");
  EXPECT_EQ(parse.rules, nullptr) << text;
  return Messages(parse);
}

// All findings of a text that is taken.
std::string Warned(std::string_view text) {
  const RuleParse parse = RuleSet::Parse(text, "f");
  EXPECT_NE(parse.rules, nullptr) << Messages(parse);
  return Messages(parse);
}

void ExpectRefused(std::string_view text, std::string_view where, std::string_view what) {
  const std::string messages = Refused(text);
  EXPECT_NE(messages.find(std::string("f:") + std::string(where) + ": error: "), std::string::npos)
      << text << "\n"
      << messages;
  EXPECT_NE(messages.find(what), std::string::npos) << text << "\n" << messages;
}

TEST(RuleFile, EveryErrorSaysWhereWhatAndWhatIsExpected) {
  ExpectRefused("rules:\n  - name: a\n    per: ip\n    limt: 5/min\n", "4:5",
                R"(the key "limt" is not known; did you mean "limit"?)");
  ExpectRefused("rules:\n  - name: a\n    per: ip\n    limit: 5/mn\n", "4:12",
                R"(did you mean "min"?)");
  ExpectRefused("rules:\n  - name: a\n    per: ip\n    limit: 0/min\n", "4:12", "use block: true");
  ExpectRefused("rules: [{name: a, limit: 5/min}]", "1:9", "no per; expected");
  ExpectRefused("rules: [{name: a, per: ip}]", "1:9", "no limit; expected");
  ExpectRefused("rules: [{per: ip, limit: 5/min}]", "1:9", "without a name");
  ExpectRefused("rules: [{name: a b, per: ip, limit: 5/min}]", "1:16", "expected letters");
  ExpectRefused("rules: {}", "1:8", "expected a list");
  ExpectRefused("rles: []", "1:1", R"(did you mean "rules"?)");
  ExpectRefused("- a", "1:1", "expected a mapping");
  ExpectRefused("rules: [{name: a, per: ip, limit: 1/s, when: {method: {prefx: x}}}]", "1:56",
                R"(did you mean "prefix"?)");
  ExpectRefused("rules: [{name: a, per: ip, limit: 1/s, when: {x: {regex: 'a('}}}]", "1:58",
                "regular expression of RE2");
  ExpectRefused("rules: [{name: a, per: ip, limit: 1/s, when: {path: '/a/*.png'}}]", "1:53",
                "use path: {glob: ...}");
  ExpectRefused("rules: [{name: a, per: ip, limit: 1/s, when: {path: 'a'}}]", "1:53",
                "begins with \"/\"");
  ExpectRefused("rules: [{name: a, per: 'path:id', limit: 1/s, when: {path: /x}}]", "1:24",
                "not every path of the rule has a {id}");
  ExpectRefused("rules: [{name: a, per: ip, limit: {free: 1/s}, by: tier}]", "1:35",
                "a table without \"default\"");
  ExpectRefused("rules: [{name: a, per: ip, limit: {default: 1/s}}]", "1:35", "no \"by\"");
  ExpectRefused("rules: [{name: a, per: ip, limit: 1/s, by: tier}]", "1:44", "multipliers");
  ExpectRefused("rules: [{name: a, per: ip, limit: 1/s, expires: soon}]", "1:49", "2027-01-31");
  ExpectRefused("rules: [{name: a, per: ip, limit: 1/s, canary: 10}]", "1:48", "10% or 0.5%");
  ExpectRefused("rules: [{name: a, per: ip, limit: 1/s, shadow: maybe}]", "1:48", "true or false");
  ExpectRefused("rules: [{name: a, per: ip, limit: 1/s, headers: hiden}]", "1:49",
                R"(did you mean "hidden"?)");
  ExpectRefused("rules: [{name: a, per: ip, limit: 1/s, priority: 1e9}]", "1:50",
                "whole number from");
  ExpectRefused("rules: [{name: a, per: ip, limit: 1/s, limits: [2/s]}]", "1:48", "one of the two");
  ExpectRefused("rules: [{name: a, per: ip, limit: 1/s, unlimited: true}]", "1:35", "contradict");
  ExpectRefused("rules: []\nblock: [10.0.0.1/8]", "2:9", "without bits beyond its length");
  ExpectRefused("rules: []\noverrides: [{rule: pln, key: a, limit: 1/s}]", "2:20",
                "expected the name of a rule");
  ExpectRefused("rules: []\ntiers: {gold: fivefold}", "2:15", "expected a factor");
  ExpectRefused("rules: [{name: a, per: ip, limit: 1/s}, {name: a, per: ip, limit: 1/s}]", "1:48",
                "that of another rule");
  ExpectRefused("rules: []\nrules: []", "2:1", "is there twice");
  ExpectRefused("rules: [{name: &x a}]", "1:16", "anchor");
  ExpectRefused("rules: [{name: !!str a}]", "1:16", "tags are not allowed");
  ExpectRefused("rules: [", "1:1", "not YAML");
}

TEST(RuleFile, AllErrorsAreReported) {
  const std::string messages = Refused(R"(
rules:
  - {name: a, per: ip, limit: nonsense, shaddow: true}
  - {name: b, limit: 1/s}
  - {name: c, per: ip}
block: [nowhere]
)");
  for (const char* part : {"f:3:31: error: rule \"a\"", "\"shaddow\"", "rule \"b\": no per",
                           "rule \"c\": no limit", "\"nowhere\""}) {
    EXPECT_NE(messages.find(part), std::string::npos) << part << "\n" << messages;
  }
}

TEST(RuleFile, AnEmptySetMustBeMeant) {
  EXPECT_NE(Refused("").find("no rules; expected rules:"), std::string::npos);
  EXPECT_NE(Refused("block: []").find("no rules"), std::string::npos);
  EXPECT_EQ(Warned("rules: []"), "");
}

TEST(RuleFile, JsonIsYaml) {
  TestRules at(R"({"rules": [{"name": "a", "when": {"user": "absent"}, "per": ["ip", "path"],
                              "limit": "1/min", "priority": 3, "shadow": false}]})");
  EXPECT_EQ(at.Keys({{"ip", "192.0.2.1"}, {"path", "/x"}}), "a=192.0.2.1|/x");
  EXPECT_EQ(at.Keys({{"ip", "192.0.2.1"}, {"path", "/x"}, {"user", "u"}}), "");
}

TEST(RuleFile, DocumentsAndFilesAddUp) {
  const auto rules = MustParse(
      "rules: [{name: a, per: ip, limit: 1/s}]\n---\nrules: [{name: b, per: user, limit: 1/s}]\n");
  ASSERT_EQ(rules->rules().size(), 2U);
  EXPECT_EQ(rules->rules()[1].name, "b");

  const std::string first = testing::TempDir() + "/first.yaml";
  const std::string second = testing::TempDir() + "/second.yaml";
  std::ofstream(first) << "rules: [{name: a, per: ip, limit: 1/s}]\n";
  std::ofstream(second) << "rules: [{name: b, per: ip, limit: bad}]\n";
  const std::vector<std::string> paths = {first, second};
  const RuleParse parse = RuleSet::Load(paths);
  ASSERT_EQ(parse.issues.size(), 1U);
  EXPECT_EQ(parse.issues[0].file, second);
  EXPECT_NE(Messages(RuleSet::Load(testing::TempDir() + "/none.yaml")).find("cannot be read"),
            std::string::npos);
}

TEST(RuleFile, LintSeesWhatIsProbablyNotMeant) {
  const auto expect = [](std::string_view text, std::string_view what) {
    EXPECT_NE(Warned(text).find(what), std::string::npos) << text << "\n" << Warned(text);
  };
  expect("rules: [{name: a, per: request_id, limit: 1/s}]", "another one for each request");
  expect("rules: [{name: a, per: 'header:X-Request-Id', limit: 1/s}]", "for each request");
  expect("rules: [{name: a, block: true}]", "matches everything and refuses it");
  expect("rules: [{name: a, per: all, limit: 1/s}]", "counts everybody together");
  expect("rules: [{name: a, per: user, limit: 1/s, when: {user: absent}}]", "can never match");
  expect("rules: [{name: a, per: ip, limit: 1/s}, {name: b, per: ip, limit: 2/s}]",
         "same conditions");
  expect(
      "rules: [{name: a, per: ip, limit: 1/s, on-missing: shared, priority: 1}, "
      "{name: b, per: ip, limit: 2/s, when: {path: /x}}]",
      "takes every request");
  expect(
      "rules: [{name: a, per: ip, limit: 1/s, priority: 1, when: {path: '/api/**'}}, "
      "{name: b, per: ip, limit: 2/s, when: {path: ['/api/x', '/api/{id}/y'], method: GET}}]",
      R"(rule "b": it can never match: "a" comes before it in their group and matches all)");
  expect("rules: [{name: a, per: ip, limit: 1/s, canary: 0%}]", "can never match");
  expect("rules: [{name: a, per: ip, limit: 1/s, when: {x: {regex: '.*'}}}]", "matches everything");
  expect("rules: [{name: a, per: ip, limit: 1/s, when: {path: '/**'}}]", "matches every path");
  expect("rules: [{name: a, per: api-key, limit: 1/s}]", R"(did you mean "api_key"?)");
  expect("rules: [{name: a, per: ip, limit: 1/s, durable: true}]", "does not outlive");
  EXPECT_EQ(Warned("rules: [{name: a, per: ip, limit: 1/s}]"), "");
  // A part of what the later rule is for is left to it.
  EXPECT_EQ(Warned("rules: [{name: a, per: ip, limit: 1/s, priority: 1, "
                   "when: {path: '/api/**', method: [GET, HEAD]}}, "
                   "{name: b, per: ip, limit: 2/s, when: {path: /api/x, method: [GET, POST]}}, "
                   "{name: c, per: ip, limit: 2/s, when: {path: [/api/y, /web], method: GET}}]"),
            "");
  EXPECT_NE(Refused("rules: [{name: a, per: ip, limit: 0/min}]").find("use block: true"),
            std::string::npos);
}

TEST(RuleFile, LintComparesWithWhatIsRunning) {
  const auto running = MustParse(
      "rules: [{name: a, per: ip, limit: 1000/min}, "
      "{name: b, per: user, limit: 1/s}]");
  const auto candidate = MustParse("rules: [{name: a, per: ip, limit: 1/min}]");
  const auto issues = LintAgainst(*running, *candidate);
  ASSERT_EQ(issues.size(), 2U);
  EXPECT_NE(issues[0].message.find("1000/min shrinks to 1/min"), std::string::npos);
  EXPECT_EQ(issues[1].rule, "b");
  EXPECT_TRUE(LintAgainst(*candidate, *candidate).empty());
}

TEST(RuleFile, LimitsAreErrorsAndNotAborts) {
  std::string regexes = "rules:\n";
  std::string groups = "rules:\n";
  std::string attributes = "rules:\n";
  for (int i = 0; i < 300; ++i) {
    const std::string n = std::to_string(i);
    regexes += "  - {name: r" + n + ", per: ip, limit: 1/s, when: {x: {regex: 'a+" + n + "'}}}\n";
    groups += "  - {name: r" + n + ", group: g" + n + ", per: ip, limit: 1/s}\n";
    attributes += "  - {name: r" + n + ", per: ip, limit: 1/s, when: {a" + n + ": x}}\n";
  }
  EXPECT_NE(Refused(regexes).find("more than 256 regular expressions"), std::string::npos);
  EXPECT_NE(Refused(groups).find("more than 64 groups"), std::string::npos);
  EXPECT_NE(Refused(attributes).find("more than 256 different attributes"), std::string::npos);
  std::string charges = "rules:\n";
  for (int i = 0; i < 9; ++i) {
    charges += "  - {name: r" + std::to_string(i) + ", group: g" + std::to_string(i) +
               ", per: ip, limits: [1/s, 2/min, 3/h, 4/day, 5/s, 6/s, 7/s, 8/s]}\n";
  }
  EXPECT_NE(Refused(charges).find("could meet 72 quotas"), std::string::npos);
}

// Text that is small and stands for much, or that a parser would take long over.
TEST(RuleFile, BombsAreRefused) {
  const auto repeat = [](std::string_view part, size_t bytes) {
    std::string text;
    while (text.size() < bytes) {
      text += part;
    }
    return text;
  };
  constexpr size_t kMost = size_t{4} << 20;
  std::string laughs = "a: &a [lol]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    laughs += std::string(1, c) + ": &" + c + " [*" + char(c - 1) + ",*" + char(c - 1) + "]\n";
  }
  std::string nested = "rules: ";
  for (int i = 0; i < 40; ++i) {
    nested += "\n" + std::string(static_cast<size_t>(i) + 1, ' ') + "a:";
  }
  for (const std::string& bomb : {laughs,
                                  repeat("[", kMost),
                                  repeat("{", kMost),
                                  repeat("{a: ", kMost),
                                  repeat("- ", kMost),
                                  repeat("? ", kMost),
                                  repeat("[\n", kMost),
                                  repeat("[a,", kMost),
                                  repeat("a,\n", kMost + 9),
                                  repeat(",", 1000),
                                  repeat(",", kMost),
                                  repeat(":", kMost),
                                  repeat("\"", kMost),
                                  repeat("&a ", kMost),
                                  repeat("*a ", kMost),
                                  repeat("!", kMost),
                                  repeat("%A b\n", 9000),
                                  repeat("---\n", 9000),
                                  repeat("a", kMost),
                                  repeat(" ", kMost),
                                  repeat("\n", kMost),
                                  std::string(1000, '\0'),
                                  std::string(kMost + 1, ' '),
                                  nested,
                                  repeat("\xff", 9999),
                                  repeat("]", 9999),
                                  repeat("'", 9999),
                                  repeat("|", 9999),
                                  repeat("<<: 1\n", 9999),
                                  std::string("8: &x [*x]")}) {
    EXPECT_EQ(RuleSet::Parse(bomb).rules, nullptr) << bomb.substr(0, 40);
  }
}

// Whatever a cut leaves is refused, or is a set of its own; nothing crashes.
TEST(RuleFile, CutAtEveryByteItIsRefusedOrWhole) {
  const std::string text = R"(tiers: {premium: 5x}
rules:
  - name: a
    when: {method: [GET, HEAD], path: "/users/{id}", header:X-A: {glob: "a*b"}}
    per: [ip, "path:id"]
    limit: 10/min
    by: tier
  - {name: b, per: user | ip, limits: [1/s, 100/h], min-gap: 2s, expires: 2030-01-01}
block: [10.0.0.0/8, {user: x}]
overrides: [{rule: b, key: user=y, limit: 3/s}]
)";
  size_t whole = 0;
  for (size_t size = 0; size <= text.size(); ++size) {
    const RuleParse parse = RuleSet::Parse(std::string_view(text).substr(0, size));
    if (parse.rules == nullptr) {
      EXPECT_FALSE(parse.issues.empty());
      continue;
    }
    ++whole;
    TestRules at(parse.rules);
    EXPECT_NE(at.Ask({{"ip", "192.0.2.1"}, {"method", "GET"}, {"path", "/users/7"}}), "");
  }
  EXPECT_GT(whole, 1U);
}

TEST(RuleFile, TheVersionIsThatOfTheText) {
  const std::string text = "rules: [{name: a, per: ip, limit: 1/s}]";
  EXPECT_EQ(MustParse(text)->version(), MustParse(text)->version());
  EXPECT_NE(MustParse(text)->version(), MustParse(text + " ")->version());
}

TEST(RuleFile, TheSchemaIsPartOfTheLibrary) {
  EXPECT_NE(RuleSchema().find("\"on-store-failure\""), std::string_view::npos);
}

}  // namespace
}  // namespace weir::rules
