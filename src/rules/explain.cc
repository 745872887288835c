// Every rule and what became of it, without charging anything.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/spelling.h"
#include "rules/fields.h"
#include "rules/key_builder.h"
#include "rules/matcher.h"
#include "rules/rule_check.h"
#include "rules/rule_limiter_state.h"
#include "rules/secret_attributes.h"

namespace weir {

namespace {

using rules::Alternative;
using rules::BoundSet;
using rules::CompiledCondition;
using rules::CompiledRule;
using rules::CompiledSet;
using rules::MatchContext;
using rules::OnMissing;
using rules::PathPattern;
using rules::RequestView;

std::string Found(std::string_view attribute, std::string_view value) {
  return std::string(attribute) + " is " +
         (value.empty()                ? "absent"
          : rules::IsSecret(attribute) ? rules::Hidden(value)
                                       : base::Quoted(value));
}

std::string Listing(const PathPattern& pattern) {
  return pattern.text;
}

std::string Listing(const rules::Matcher& matcher) {
  return matcher.shown;
}

template <class List>
std::string Not(const List& expected) {
  std::string text = ", not ";
  bool first = true;
  for (const auto& one : expected) {
    text += (first ? "" : " or ") + Listing(one);
    first = false;
  }
  return text;
}

// What became of one rule, as far as it depends on that rule alone.
class RuleExplainer {
 public:
  RuleExplainer(const CompiledSet& set, const RequestView& request, const MatchContext& context)
      : set_(set), request_(request), context_(context) {}

  // Fills in fate and reason; kApplies if nothing speaks against it.
  void Explain(const CompiledRule& rule, ExplainedRule& out) const {
    const auto is = [&out](RuleFate fate, std::string reason) {
      out.fate = fate;
      out.reason = std::move(reason);
    };
    if (rule.view->disabled) {
      return is(RuleFate::kDisabled,
                rule.view->switched == RuleMode::kOff ? "switched off" : "disabled: true");
    }
    if (context_.wall >= rule.view->expires) {
      return is(RuleFate::kExpired, "expired " + rules::FormatTime(rule.view->expires));
    }
    if (auto reason = WhyNot(rule)) {
      return is(RuleFate::kNotMatched, *std::move(reason));
    }
    if (rule.model->on_missing == OnMissing::kSkip && !rules::HasKey(rule, request_)) {
      return is(RuleFate::kMissing, "it counts by " + rule.view->per + ", which is absent");
    }
    if (rule.view->canary_permille < 1000 && !CanaryHolds(rule)) {
      return is(RuleFate::kNotInCanary, "the key is not in the canary's share");
    }
    is(rule.view->shadow ? RuleFate::kShadow : RuleFate::kApplies, "");
  }

 private:
  [[nodiscard]] std::optional<std::string> WhyNot(const CompiledRule& rule) const {
    for (size_t i = 0; i < rule.when.size(); ++i) {
      if (!rules::Holds(set_, rule.when[i], request_)) {
        const std::string& name = set_.attributes.name(rule.when[i].attribute);
        return Found(name, request_.Value(rule.when[i].attribute)) + Not(rule.model->when[i].any);
      }
    }
    const auto& paths = rule.model->paths;
    const auto matches = [this](const PathPattern& pattern) {
      return !request_.path().empty() && rules::Matches(pattern, request_.segments());
    };
    if (!paths.empty() && std::none_of(paths.begin(), paths.end(), matches)) {
      return Found("path", request_.path()) + Not(paths);
    }
    return std::nullopt;
  }

  [[nodiscard]] bool CanaryHolds(const CompiledRule& rule) const {
    return std::any_of(
        set_.alternatives.begin(), set_.alternatives.end(), [&](const Alternative& alternative) {
          const bool is_mine = &set_.rules[alternative.rule] == &rule;
          const bool fits = alternative.pattern == nullptr ||
                            rules::Matches(*alternative.pattern, request_.segments());
          return is_mine && fits && rules::InCanary(rule, alternative.pattern, request_, context_);
        });
  }

  const CompiledSet& set_;
  const RequestView& request_;
  const MatchContext& context_;
};

// Rules that would match, but for another of their group, or of any for the default.
void Compare(const CompiledSet& set, const rules::Winners& winners, uint32_t index,
             ExplainedRule& out) {
  const CompiledRule& rule = set.rules[index];
  const auto winner_of = [&](auto is_it) -> const CompiledRule* {
    for (size_t i = 0; i < winners.size; ++i) {
      const CompiledRule& winner = set.rules[set.alternatives[winners.ranks[i]].rule];
      if (is_it(winner)) {
        return &winner;
      }
    }
    return nullptr;
  };
  if (winner_of([&](const CompiledRule& winner) { return &winner == &rule; }) != nullptr) {
    return;
  }
  out.fate = RuleFate::kLessSpecific;
  if (rule.view->is_default) {
    out.reason = "another rule matches";
  } else if (const CompiledRule* const winner = winner_of(
                 [&](const CompiledRule& candidate) { return candidate.group == rule.group; })) {
    out.reason = base::Quoted(winner->view->name) + " comes before it in group " +
                 base::Quoted(set.group_names[rule.group]);
  }
}

std::string Show(const rules::ListEntry* entry) {
  return entry == nullptr
             ? ""
             : entry->attribute + " " +
                   (rules::IsSecret(entry->attribute) ? rules::Hidden(entry->value) : entry->value);
}

}  // namespace

Explanation RuleLimiter::Explain(std::span<const Attribute> attributes, Cost cost) {
  const Pin held = pin();
  const BoundSet& bound = *held.set_;
  const CompiledSet& set = *bound.compiled;
  const WallTime wall = state_->clock.WallNow();
  auto reply = std::make_unique<RuleReply>();
  Check(held, {.attributes = attributes, .cost = cost, .mode = ChargeMode::kDryRun, .wall = wall},
        *reply);
  Explanation out;
  out.outcome = reply->outcome;
  out.why = reply->why;
  out.retry_after = reply->retry_after;
  out.version = reply->version;
  const RulePart* const deciding = reply->deciding();
  const RuleView* const speaks = deciding != nullptr ? deciding->rule : reply->refusing;
  out.deciding = speaks != nullptr ? speaks->name : "";

  const RequestView request(set.attributes, set.special, attributes, state_->options.addresses);
  if (request.refusal() != RuleRefusal::kNone) {
    return out;
  }
  const MatchContext context = state_->Context(wall);
  const rules::ListEntry* const blocked = set.block.Find(request, wall);
  out.list = Show(blocked != nullptr ? blocked : set.allow.Find(request, wall));
  rules::Winners winners;
  rules::FindWinners(set, request, context, winners);
  const RuleExplainer explainer(set, request, context);
  for (uint32_t i = 0; i < set.rules.size(); ++i) {
    const RuleView& view = set.views[i];
    ExplainedRule& rule = out.rules.emplace_back();
    rule.rule = view.name;
    rule.group = set.group_names[set.rules[i].group];
    rule.per = view.per;
    explainer.Explain(set.rules[i], rule);
    if (rule.fate == RuleFate::kApplies || rule.fate == RuleFate::kShadow) {
      Compare(set, winners, i, rule);
    }
    for (const RulePart& part : reply->parts()) {
      if (part.rule == &view) {
        rule.key = view.secret_keys ? rules::Hidden(part.key) : std::string(part.key);
        std::string bound_text = part.quota->bound;
        if (part.shared != nullptr) {
          bound_text += "; " + state_->options.shared->Bound(*part.shared, view.on_store_failure);
        }
        rule.quotas.push_back({part.quota->text, std::move(bound_text), part.decision});
      }
    }
  }
  return out;
}

std::string_view ToString(RuleFate fate) noexcept {
  switch (fate) {
    case RuleFate::kApplies:
      return "applies";
    case RuleFate::kShadow:
      return "shadow";
    case RuleFate::kNotMatched:
      return "not matched";
    case RuleFate::kLessSpecific:
      return "less specific";
    case RuleFate::kMissing:
      return "missing attribute";
    case RuleFate::kNotInCanary:
      return "not in canary";
    case RuleFate::kDisabled:
      return "disabled";
    case RuleFate::kExpired:
      return "expired";
  }
  return "unknown";
}

}  // namespace weir
