#include "rules/lint.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>

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
        Warn(rule, "it can never match: " + base::Quoted(found->second->view->name) +
                       " comes before it in their group and takes every request");
      } else if (const auto twin = by_conditions.find(same);
                 twin != by_conditions.end() && twin->second != &rule) {
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

  const CompiledSet& set_;
  Issues& issues_;
};

}  // namespace

void Lint(const CompiledSet& set, Issues& issues) {
  Linter(set, issues).Run();
}

}  // namespace weir::rules
