#include "rules/lint.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/spelling.h"

namespace weir::rules {

namespace {

// A key that is another one for each request counts nothing.
constexpr std::array<std::string_view, 12> kPerRequest = {
    "request_id", "request-id",     "requestid", "trace_id", "trace-id",    "traceid",
    "span_id",    "correlation_id", "timestamp", "nonce",    "traceparent", "uuid"};

bool IsPerRequest(std::string_view attribute) {
  if (attribute.starts_with("header:")) {
    attribute.remove_prefix(7);
  }
  if (attribute.starts_with("x-")) {
    attribute.remove_prefix(2);
  }
  return std::find(kPerRequest.begin(), kPerRequest.end(), attribute) != kPerRequest.end();
}

bool MatchesEverything(const Matcher& matcher) {
  return (matcher.kind == MatcherKind::kRegex && (matcher.text == ".*" || matcher.text == ".+")) ||
         (matcher.kind == MatcherKind::kAffix && matcher.text.empty() && matcher.tail.empty());
}

// Whether the rule takes every request that comes to it.
bool TakesAll(const CompiledRule& rule) {
  const RuleView& view = *rule.view;
  return rule.when.empty() && rule.model->paths.empty() && view.canary_permille == 1000 &&
         view.expires == kNever && (rule.per.empty() || rule.model->on_missing != OnMissing::kSkip);
}

bool IsSame(const Matcher& a, const Matcher& b) {
  return a.kind == b.kind && a.text == b.text && a.tail == b.tail && a.prefix == b.prefix;
}

// Whether whatever holds for the second holds for the first.
bool Covers(const Condition& wide, const Condition& narrow) {
  return wide.attribute == narrow.attribute &&
         std::all_of(narrow.any.begin(), narrow.any.end(), [&wide](const Matcher& one) {
           return std::any_of(wide.any.begin(), wide.any.end(),
                              [&one](const Matcher& other) { return IsSame(one, other); });
         });
}

bool Covers(const PathPattern& wide, const PathPattern& narrow) {
  using Kind = PatternSegment::Kind;
  const size_t size = wide.segments.size();
  if (wide.rest ? narrow.segments.size() < size : narrow.rest || narrow.segments.size() != size) {
    return false;
  }
  for (size_t i = 0; i < size; ++i) {
    const PatternSegment& segment = narrow.segments[i];
    if (wide.segments[i].kind == Kind::kText &&
        (segment.kind != Kind::kText || segment.text != wide.segments[i].text)) {
      return false;
    }
  }
  return true;
}

// Whether the first finds a key wherever the second does.
bool CoversKey(const RuleModel& wide, const RuleModel& narrow) {
  return wide.on_missing != OnMissing::kSkip ||
         std::all_of(wide.per.begin(), wide.per.end(), [&narrow](const KeyPart& part) {
           return narrow.on_missing == OnMissing::kSkip &&
                  std::any_of(narrow.per.begin(), narrow.per.end(),
                              [&part](const KeyPart& other) { return part.any == other.any; });
         });
}

class Linter {
 public:
  Linter(const CompiledSet& set, Issues& issues) : set_(set), issues_(issues) {}

  void Run() {
    for (const CompiledRule& rule : set_.rules) {
      issues_.SetFile(rule.view->file);
      issues_.SetRule(rule.view->name);
      LintMatching(rule);
      LintKey(rule);
    }
    LintOrder();
    LintCovered();
    issues_.SetRule("");
  }

 private:
  void Warn(const CompiledRule& rule, std::string message) {
    issues_.Warning(rule.model->mark, std::move(message));
  }

  void LintMatching(const CompiledRule& rule) {
    const RuleView& view = *rule.view;
    const bool unconditional = rule.when.empty() && rule.model->paths.empty();
    if (unconditional && !view.is_default && view.action == RuleAction::kBlock) {
      Warn(rule, "it matches everything and refuses it; expected a when:");
    } else if (unconditional && !view.is_default && view.action == RuleAction::kLimit &&
               rule.per.empty()) {
      Warn(rule,
           "it matches everything and counts everybody together: one client can use up what "
           "all others need");
    }
    for (const Condition& condition : rule.model->when) {
      if (std::any_of(condition.any.begin(), condition.any.end(), MatchesEverything)) {
        Warn(rule, condition.attribute + ": " + condition.any.front().shown +
                       " matches everything; expected present, or no condition");
      }
      const bool only_absent =
          std::all_of(condition.any.begin(), condition.any.end(),
                      [](const Matcher& matcher) { return matcher.kind == MatcherKind::kAbsent; });
      if (only_absent && CountsBy(rule, condition.attribute)) {
        Warn(rule, "it can never match: it is for requests without " + condition.attribute +
                       " and counts by " + condition.attribute);
      }
    }
    for (const PathPattern& pattern : rule.model->paths) {
      if (pattern.rest && pattern.segments.empty()) {
        Warn(rule, "path: /** matches every path; leave it out");
      }
    }
    if (view.canary_permille == 0) {
      Warn(rule, "it can never match: its canary is 0%; expected disabled: true");
    }
  }

  // Whether the rule is skipped without this attribute.
  static bool CountsBy(const CompiledRule& rule, std::string_view attribute) {
    return rule.model->on_missing == OnMissing::kSkip &&
           std::any_of(rule.per.begin(), rule.per.end(), [&](const std::vector<KeySource>& part) {
             return part.size() == 1 && part.front().name == attribute;
           });
  }

  void LintKey(const CompiledRule& rule) {
    for (const auto& part : rule.per) {
      for (const KeySource& source : part) {
        if (IsPerRequest(source.name)) {
          Warn(rule, "per: " + base::Quoted(source.name) +
                         " is another one for each request, so nothing would ever be limited");
        }
      }
    }
  }

  // Of each group: what comes after a rule that takes all, or one with the same conditions, is
  // never reached.
  void LintOrder() {
    std::unordered_map<uint8_t, const CompiledRule*> takes_all;
    std::unordered_map<std::string, const CompiledRule*> by_conditions;
    for (const Alternative& alternative : set_.alternatives) {
      const CompiledRule& rule = set_.rules[alternative.rule];
      issues_.SetFile(rule.view->file);
      issues_.SetRule(rule.view->name);
      const std::string same =
          std::to_string(rule.group) + "|" + rule.view->per + "|" + rule.view->when;
      const bool always = rule.view->canary_permille == 1000 && rule.view->expires == kNever;
      if (const auto found = takes_all.find(rule.group);
          found != takes_all.end() && found->second != &rule) {
        told_.insert(&rule);
        Warn(rule, "it can never match: " + base::Quoted(found->second->view->name) +
                       " comes before it in their group and takes every request");
      } else if (const auto twin = by_conditions.find(same);
                 twin != by_conditions.end() && twin->second != &rule) {
        told_.insert(&rule);
        Warn(rule, "it can never match: " + base::Quoted(twin->second->view->name) +
                       " comes before it in their group and has the same conditions");
      }
      if (TakesAll(rule) && !rule.view->is_default) {
        takes_all.emplace(rule.group, &rule);
      }
      if (always) {
        by_conditions.emplace(same, &rule);
      }
    }
  }

  // Whether the first matches wherever the second does, and always.
  [[nodiscard]] bool Covers(const Alternative& wide, const Alternative& narrow) const {
    const CompiledRule& a = set_.rules[wide.rule];
    const CompiledRule& b = set_.rules[narrow.rule];
    if (wide.rule == narrow.rule || wide.group != narrow.group || a.view->is_default ||
        a.view->canary_permille < 1000 || a.view->expires != kNever) {
      return false;
    }
    if (wide.pattern != nullptr &&
        (narrow.pattern == nullptr || !rules::Covers(*wide.pattern, *narrow.pattern))) {
      return false;
    }
    const std::vector<Condition>& conditions = b.model->when;
    return CoversKey(*a.model, *b.model) &&
           std::all_of(a.model->when.begin(), a.model->when.end(), [&](const Condition& one) {
             return std::any_of(
                 conditions.begin(), conditions.end(),
                 [&one](const Condition& other) { return rules::Covers(one, other); });
           });
  }

  // Rules that another one of their group takes all requests away from. Large sets are looked at
  // as far as that takes no time.
  void LintCovered() {
    size_t left = 1'000'000;
    std::vector<size_t> reached(set_.rules.size());  // alternatives of a rule that nobody covers
    std::vector<const CompiledRule*> coverer(set_.rules.size());
    for (size_t narrow = 0; narrow < set_.alternatives.size(); ++narrow) {
      const Alternative& alternative = set_.alternatives[narrow];
      size_t wide = 0;
      while (wide < narrow && left > 0 && !Covers(set_.alternatives[wide], alternative)) {
        ++wide;
        --left;
      }
      if (wide < narrow && left > 0) {
        coverer[alternative.rule] = &set_.rules[set_.alternatives[wide].rule];
      } else {
        ++reached[alternative.rule];
      }
    }
    for (size_t i = 0; i < set_.rules.size(); ++i) {
      if (coverer[i] != nullptr && reached[i] == 0 && !told_.contains(&set_.rules[i])) {
        issues_.SetFile(set_.rules[i].view->file);
        issues_.SetRule(set_.rules[i].view->name);
        Warn(set_.rules[i], "it can never match: " + base::Quoted(coverer[i]->view->name) +
                                " comes before it in their group and matches all that it does");
      }
    }
  }

  const CompiledSet& set_;
  Issues& issues_;
  std::set<const CompiledRule*> told_;  // that they can never match
};

}  // namespace

void Lint(const CompiledSet& set, Issues& issues) {
  Linter(set, issues).Run();
}

}  // namespace weir::rules
