// The compiled set finds what a slow one finds that follows the documented order word by word.
#include "rules/matcher.h"

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "rules/rule_set_state.h"
#include "rules/test_rules.h"
#include "testing/random.h"

namespace weir::rules {
namespace {

using testing::Random;

template <class List>
const std::string& Pick(Random& random, const List& list) {
  return list[random.Below(std::size(list))];
}

const std::vector<std::string> kWords = {"a", "b", "ab", "abc", "ba", "users", "x"};
const std::vector<std::string> kAttributes = {"user", "tier", "header:x-a", "method"};
const std::vector<std::string> kNetworks = {"10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24",
                                            "10.1.2.3/32"};
const std::vector<std::string> kAddresses = {"10.1.2.3", "10.1.2.4", "10.1.9.9", "10.9.9.9",
                                             "11.1.2.3"};
const std::vector<std::string> kHosts = {"a.example", "b.example"};
const std::vector<std::string> kMethods = {"GET", "PUT"};

// Of two letters, so that texts begin, end and contain one another.
std::string RandomText(Random& random, size_t most) {
  std::string text;
  for (size_t left = random.Below(most + 1); left > 0; --left) {
    text += random.OneIn(2) ? 'a' : 'b';
  }
  return text;
}

std::string RandomPattern(Random& random) {
  std::string pattern;
  const size_t segments = random.Below(4);
  for (size_t i = 0; i < segments; ++i) {
    const uint64_t kind = random.Below(6);
    pattern += kind == 0   ? "/*"
               : kind == 1 ? "/{p" + std::to_string(i) + "}"
                           : "/" + Pick(random, kWords);
  }
  return pattern + (random.OneIn(4) ? "/**" : pattern.empty() ? "/" : "");
}

std::string RandomMatcher(Random& random) {
  const std::string& word = Pick(random, kWords);
  switch (random.Below(9)) {
    case 0:
      return "present";
    case 1:
      return "absent";
    case 2:
      return "{prefix: " + word + "}";
    case 3:
      return "{suffix: " + word + "}";
    case 4:
      return "{contains: " + word + "}";
    case 5:
      return "{glob: '" + word + "*'}";
    case 6:
      return "{regex: '" + word + "+'}";
    case 7:
      return "[" + word + ", " + Pick(random, kWords) + "]";
    default:
      return word;
  }
}

std::string RandomRules(Random& random) {
  std::string text = "rules:\n";
  const size_t count = 1 + random.Below(12);
  for (size_t i = 0; i < count; ++i) {
    text += "  - name: r" + std::to_string(i) + "\n    limit: 5/min\n    per: " +
            (random.OneIn(3)   ? "user"
             : random.OneIn(2) ? "ip"
                               : "all") +
            "\n";
    std::string when;
    std::set<std::string> used;
    for (size_t c = random.Below(3); c > 0; --c) {
      const std::string& attribute = Pick(random, kAttributes);
      if (used.insert(attribute).second) {
        when += "      " + attribute + ": " + RandomMatcher(random) + "\n";
      }
    }
    if (random.OneIn(2)) {
      when += "      path: ['" + RandomPattern(random) + "'" +
              (random.OneIn(3) ? ", '" + RandomPattern(random) + "'" : "") + "]\n";
    } else if (random.OneIn(6)) {
      when += "      path: {prefix: /a}\n";
    }
    text += when.empty() ? "" : "    when:\n" + when;
    text += random.OneIn(4) ? "    priority: " + std::to_string(random.Below(3)) + "\n" : "";
    text += random.OneIn(5) ? "    shadow: true\n" : "";
    text += random.OneIn(6) ? "    group: g\n" : "";
    text += random.OneIn(8) ? "    on-missing: shared\n" : "";
    text += random.OneIn(9) ? "    disabled: true\n" : "";
    text += random.OneIn(9) ? "    expires: 2026-06-30\n" : "";
  }
  return text + (random.OneIn(3) ? "default: {per: all, limit: 1/s}\n" : "");
}

// Hundreds of patterns of every mix of text and wildcards, told apart by what comes behind.
std::string MixedRules(Random& random) {
  std::string text = "rules:\n";
  const size_t count = 200 + random.Below(200);
  for (size_t i = 0; i < count; ++i) {
    std::string path;
    for (size_t depth = 1 + random.Below(6); depth > 0; --depth) {
      path += random.OneIn(2)   ? "/a"
              : random.OneIn(3) ? "/{p" + std::to_string(depth) + "}"
              : random.OneIn(4) ? "/b"
                                : "/*";
    }
    text += "  - {name: r" + std::to_string(i) + ", limit: 5/min, group: g" +
            std::to_string(random.Below(3)) + ", per: " +
            (random.OneIn(3)   ? "'user | tier'"
             : random.OneIn(2) ? "[user, 'tier | ip']"
                               : "ip") +
            ", when: {path: '" + path + (random.OneIn(3) ? "/**" : "") + "'";
    text += random.OneIn(2) ? ", method: " + Pick(random, kMethods) : "";
    text += random.OneIn(3) ? ", host: " + Pick(random, kHosts) : "";
    text += random.OneIn(3) ? ", ip: " + Pick(random, kNetworks) : "";
    text += random.OneIn(4) ? ", header:x-a: absent" : "";
    text += "}" + std::string(random.OneIn(3) ? ", priority: 1" : "") +
            (random.OneIn(9) ? ", expires: 2026-06-30" : "") + "}\n";
  }
  return text;
}

// Hundreds of conditions on one text, most of them nested.
std::string TextRules(Random& random) {
  std::string text = "rules:\n";
  const size_t count = 200 + random.Below(200);
  const auto matcher = [&random]() -> std::string {
    const std::string one = RandomText(random, 9) + (random.OneIn(2) ? "a" : "b");
    switch (random.Below(6)) {
      case 0:
        return "{prefix: " + one + "}";
      case 1:
        return "{suffix: " + one + "}";
      case 2:
        return "{contains: " + one + "}";
      case 3:
        return "{glob: '" + one + "*" + RandomText(random, 4) + "'}";
      case 4:
        return "{glob: '*" + one + "'}";
      default:
        return one;
    }
  };
  for (size_t i = 0; i < count; ++i) {
    text += "  - {name: r" + std::to_string(i) + ", limit: 5/min, per: all, group: g" +
            std::to_string(random.Below(9)) + ", when: {user: [" + matcher() +
            (random.OneIn(4) ? ", " + matcher() : "") + (random.OneIn(9) ? ", absent" : "") + "]" +
            (random.OneIn(3) ? ", tier: " + matcher() : "") + "}}\n";
  }
  return text;
}

// The slow one. It shares the reading of the file and nothing else.
class Naive {
 public:
  Naive(const SetModel& model, const std::vector<Attribute>& request)
      : model_(model), request_(request) {}

  // Names of the rules that apply, in the order of the file.
  std::vector<std::string> Winners() const {
    using Group = std::tuple<std::string, bool>;
    using Order = std::tuple<int, std::string, size_t, int>;  // the greatest wins
    std::map<Group, std::pair<Order, size_t>> best;
    for (size_t i = 0; i < model_.rules.size(); ++i) {
      const RuleModel& rule = model_.rules[i];
      const auto specificity = Matches(rule);
      if (rule.view.is_default || !specificity) {
        continue;
      }
      const Order order{rule.view.priority, *specificity,
                        rule.when.size() + (rule.paths.empty() ? 0 : 1), -static_cast<int>(i)};
      auto& entry = best.try_emplace({rule.view.group, rule.view.shadow}, order, i).first->second;
      entry = std::max(entry, {order, i});
    }
    std::set<size_t> chosen;
    bool any_real = false;
    for (const auto& [group, entry] : best) {
      chosen.insert(entry.second);
      any_real = any_real || !std::get<1>(group);
    }
    if (!any_real && !model_.rules.empty() && model_.rules.back().view.is_default) {
      chosen.insert(model_.rules.size() - 1);
    }
    std::vector<std::string> names;
    for (const size_t i : chosen) {
      names.push_back(model_.rules[i].view.name);
    }
    return names;
  }

 private:
  std::string Value(const std::string& name) const {
    for (const Attribute& attribute : request_) {
      if (attribute.name == name) {
        return std::string(attribute.value);
      }
    }
    return "";
  }

  static bool Holds(const Matcher& matcher, const std::string& value) {
    switch (matcher.kind) {
      case MatcherKind::kExact:
        return value == matcher.text;
      case MatcherKind::kPrefix:
        return value.rfind(matcher.text, 0) == 0;
      case MatcherKind::kSuffix:
        return value.size() >= matcher.text.size() &&
               value.substr(value.size() - matcher.text.size()) == matcher.text;
      case MatcherKind::kContains:
        return value.find(matcher.text) != std::string::npos;
      case MatcherKind::kAffix:
        return value.size() >= matcher.text.size() + matcher.tail.size() &&
               value.rfind(matcher.text, 0) == 0 &&
               value.substr(value.size() - matcher.tail.size()) == matcher.tail;
      case MatcherKind::kRegex:
        return std::regex_match(value, std::regex(matcher.text));
      case MatcherKind::kAddress: {
        // "10.1.0.0/16" holds what begins with "10.1."
        const size_t bits = std::stoul(matcher.shown.substr(matcher.shown.find('/') + 1));
        std::string kept;
        for (size_t dots = 0, at = 0; at < matcher.shown.find('/') && dots < bits / 8; ++at) {
          kept += matcher.shown[at];
          dots += matcher.shown[at] == '.' ? 1 : 0;
        }
        return bits == 32 ? value == kept : value.rfind(kept, 0) == 0;
      }
      case MatcherKind::kPresent:
        return true;
      default:
        return false;
    }
  }

  // How specific the best way is in which it matches; none if it does not.
  std::optional<std::string> Matches(const RuleModel& rule) const {
    if (rule.view.disabled || kTestStart >= rule.view.expires) {
      return std::nullopt;
    }
    std::string specificity = "0";
    for (const Condition& condition : rule.when) {
      const std::string value = Value(condition.attribute);
      const bool holds =
          std::any_of(condition.any.begin(), condition.any.end(), [&](const Matcher& matcher) {
            return value.empty() ? matcher.kind == MatcherKind::kAbsent : Holds(matcher, value);
          });
      if (!holds) {
        return std::nullopt;
      }
      specificity = condition.attribute == "path" ? "1" : specificity;
    }
    for (const KeyPart& part : rule.per) {
      const bool has =
          std::any_of(part.any.begin(), part.any.end(),
                      [this](const std::string& name) { return !Value(name).empty(); });
      if (rule.on_missing == OnMissing::kSkip && !has) {
        return std::nullopt;
      }
    }
    if (rule.paths.empty()) {
      return specificity;
    }
    std::optional<std::string> best;
    for (const PathPattern& pattern : rule.paths) {
      if (!Value("path").empty() && std::regex_match(Value("path"), Translated(pattern))) {
        best = std::max(best.value_or(""), pattern.Specificity());
      }
    }
    return best;
  }

  static const std::regex& Translated(const PathPattern& pattern) {
    static std::map<std::string, std::regex> known;
    if (const auto found = known.find(pattern.text); found != known.end()) {
      return found->second;
    }
    std::string text;
    for (const PatternSegment& segment : pattern.segments) {
      text += segment.kind == PatternSegment::Kind::kText ? "/+" + segment.text : "/+[^/?]+";
    }
    text += (pattern.rest ? "(/+[^/?]+)*" : "") + std::string("/*(\\?.*)?");
    return known.emplace(pattern.text, text).first->second;
  }

  const SetModel& model_;
  const std::vector<Attribute>& request_;
};

// Names of the rules that the compiled set finds.
std::vector<std::string> Found(const CompiledSet& set, const std::vector<Attribute>& request) {
  const RequestView view(set.attributes, set.special, request);
  Winners winners;
  FindWinners(set, view, {.wall = kTestStart}, winners);
  std::vector<std::string> found;
  for (size_t w = 0; w < winners.size; ++w) {
    found.push_back(set.views[set.alternatives[winners.ranks[w]].rule].name);
  }
  return found;
}

// A request and what its values are kept in.
struct Request {
  std::vector<std::pair<std::string, std::string>> values;

  std::vector<Attribute> Attributes() const {
    std::vector<Attribute> attributes;
    for (const auto& [name, value] : values) {
      attributes.push_back({name, value});
    }
    return attributes;
  }
};

Request UsualRequest(Random& random) {
  Request request;
  for (const std::string& attribute : kAttributes) {
    if (random.OneIn(2)) {
      request.values.emplace_back(
          attribute, Pick(random, kWords) + (random.OneIn(4) ? Pick(random, kWords) : ""));
    }
  }
  if (random.OneIn(2)) {
    request.values.emplace_back("ip", "192.0.2.1");
  }
  std::string path;
  for (size_t s = random.Below(5); s > 0; --s) {
    path += (random.OneIn(9) ? "//" : "/") + Pick(random, kWords);
  }
  path += random.OneIn(6) ? "/" : "";
  path += random.OneIn(6) ? "?q=/a/b" : "";
  request.values.emplace_back("path", path);
  return request;
}

Request MixedRequest(Random& random) {
  Request request;
  std::string path;
  for (size_t s = 1 + random.Below(7); s > 0; --s) {
    path += random.OneIn(4) ? "/b" : "/a";
  }
  request.values = {{"path", path}, {"method", Pick(random, kMethods)}};
  for (const auto& [name, list] :
       {std::pair("host", kHosts), std::pair("ip", kAddresses), std::pair("user", kWords),
        std::pair("tier", kWords), std::pair("header:x-a", kWords)}) {
    if (!random.OneIn(3)) {
      request.values.emplace_back(name, Pick(random, list));
    }
  }
  return request;
}

Request TextRequest(Random& random) {
  return {.values = {{"user", RandomText(random, 24)}, {"tier", RandomText(random, 12)}}};
}

// Returns how many rules were met.
size_t Compare(std::string (*rules)(Random&), Request (*ask)(Random&), int rounds, int requests) {
  Random random(20260701);
  size_t met = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string text = rules(random);
    const RuleParse parse = RuleSet::Parse(text);
    EXPECT_NE(parse.rules, nullptr) << text << Messages(parse);
    for (int i = 0; parse.rules != nullptr && i < requests; ++i) {
      const CompiledSet& set = *parse.rules->state().compiled;
      const Request request = ask(random);
      const std::vector<Attribute> attributes = request.Attributes();
      const std::vector<std::string> found = Found(set, attributes);
      met += found.size();
      std::string shown;
      for (const auto& [name, value] : request.values) {
        shown += name + "=" + value + " ";
      }
      EXPECT_EQ(found, Naive(set.model, attributes).Winners()) << text << shown;
      if (::testing::Test::HasFailure()) {
        return met;
      }
    }
  }
  return met;
}

// The counts say that rules were met often enough for the comparison to mean something.
TEST(Matcher, FindsWhatTheDocumentedOrderSays) {
  EXPECT_GT(Compare(RandomRules, UsualRequest, 600, 40), 5000U);
}

TEST(Matcher, FindsItAmongHundredsOfMixedPatterns) {
  EXPECT_GT(Compare(MixedRules, MixedRequest, 12, 60), 700U);
}

TEST(Matcher, FindsItAmongHundredsOfNestedTexts) {
  EXPECT_GT(Compare(TextRules, TextRequest, 12, 60), 2000U);
}

}  // namespace
}  // namespace weir::rules
