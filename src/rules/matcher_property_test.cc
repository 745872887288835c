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
        return value.rfind(matcher.text, 0) == 0;  // the globs here have no tail
      case MatcherKind::kRegex:
        return std::regex_match(value, std::regex(matcher.text));
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
    if (rule.view.per != "all" && rule.on_missing == OnMissing::kSkip &&
        Value(rule.view.per).empty()) {
      return std::nullopt;
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

  static std::regex Translated(const PathPattern& pattern) {
    std::string text;
    for (const PatternSegment& segment : pattern.segments) {
      text += segment.kind == PatternSegment::Kind::kText ? "/+" + segment.text : "/+[^/?]+";
    }
    return std::regex(text + (pattern.rest ? "(/+[^/?]+)*" : "") + "/*(\\?.*)?");
  }

  const SetModel& model_;
  const std::vector<Attribute>& request_;
};

TEST(Matcher, FindsWhatTheDocumentedOrderSays) {
  Random random(20260701);
  size_t met = 0;
  for (int round = 0; round < 600; ++round) {
    const std::string text = RandomRules(random);
    const RuleParse parse = RuleSet::Parse(text);
    ASSERT_NE(parse.rules, nullptr) << text << Messages(parse);
    const CompiledSet& set = *parse.rules->state().compiled;
    for (int i = 0; i < 40; ++i) {
      std::vector<std::string> values;
      values.reserve(8);
      std::vector<Attribute> request;
      for (const std::string& attribute : kAttributes) {
        if (random.OneIn(2)) {
          values.push_back(Pick(random, kWords) + (random.OneIn(4) ? Pick(random, kWords) : ""));
          request.push_back({attribute, values.back()});
        }
      }
      if (random.OneIn(2)) {
        request.push_back({"ip", "192.0.2.1"});
      }
      std::string path;
      for (size_t s = random.Below(5); s > 0; --s) {
        path += (random.OneIn(9) ? "//" : "/") + Pick(random, kWords);
      }
      path += random.OneIn(6) ? "/" : "";
      path += random.OneIn(6) ? "?q=/a/b" : "";
      request.push_back({"path", path});

      const RequestView view(set.attributes, set.special, request);
      Winners winners;
      FindWinners(set, view, {.wall = kTestStart}, winners);
      std::vector<std::string> found;
      for (size_t w = 0; w < winners.size; ++w) {
        found.push_back(set.views[set.alternatives[winners.ranks[w]].rule].name);
      }
      met += found.size();
      ASSERT_EQ(found, Naive(set.model, request).Winners()) << text << "path " << path;
    }
  }
  EXPECT_GT(met, 5000U);  // otherwise the rules were too seldom met to say anything
}

}  // namespace
}  // namespace weir::rules
