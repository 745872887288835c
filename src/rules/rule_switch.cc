// Rules that an operator turns off or on, whatever their file says.
#include <algorithm>
#include <string>
#include <utility>

#include "base/key_hash.h"
#include "base/spelling.h"
#include "rules/compiler.h"
#include "rules/issues.h"
#include "rules/rule_set_state.h"

namespace weir {

namespace {

void Switch(RuleView& view, RuleMode mode) {
  view.switched = mode;
  switch (mode) {
    case RuleMode::kAsWritten:
      break;
    case RuleMode::kOff:
      view.disabled = true;
      break;
    case RuleMode::kShadow:
      view.disabled = false;
      view.shadow = true;
      break;
    case RuleMode::kOn:
      view.disabled = false;
      view.shadow = false;
      break;
  }
}

std::string NoSuchRule(const rules::SetModel& model, const std::string& name) {
  std::string text = "no rule is called " + base::Quoted(name);
  constexpr size_t kNear = 3;
  for (const rules::RuleModel& rule : model.rules) {
    if (base::SpellingDistance(name, rule.view.name) < kNear) {
      return text + "; did you mean " + base::Quoted(rule.view.name) + "?";
    }
  }
  return text;
}

}  // namespace

RuleParse RuleSet::With(std::span<const RuleSwitch> switches) const {
  rules::SetModel model = state_->compiled->model;
  uint64_t version = this->version();
  rules::Issues issues;
  for (const RuleSwitch& one : switches) {
    const auto found =
        std::find_if(model.rules.begin(), model.rules.end(),
                     [&](const rules::RuleModel& rule) { return rule.view.name == one.rule; });
    if (found == model.rules.end()) {
      issues.Error({}, NoSuchRule(model, one.rule));
      return {nullptr, issues.Take()};
    }
    Switch(found->view, one.mode);
    version = base::HashKeySeeded(one.rule, version + static_cast<uint64_t>(one.mode));
  }
  RuleParse parse;
  if (auto compiled = rules::Compile(std::move(model), version, issues); compiled != nullptr) {
    auto state = std::make_unique<State>();
    state->compiled = std::move(compiled);
    parse.rules = std::make_shared<const RuleSet>(std::move(state));
  }
  parse.issues = issues.Take();
  return parse;
}

std::string_view ToString(RuleMode mode) noexcept {
  switch (mode) {
    case RuleMode::kAsWritten:
      return "as written";
    case RuleMode::kOff:
      return "off";
    case RuleMode::kShadow:
      return "shadow";
    case RuleMode::kOn:
      return "on";
  }
  return "unknown";
}

}  // namespace weir
