#include "server/rule_switches.h"

#include <algorithm>
#include <utility>

#include "server/log.h"

namespace weir::server {

RuleSwitches::RuleSwitches(std::shared_ptr<const RuleSet> first, Apply apply)
    : apply_(std::move(apply)), written_(std::move(first)) {}

Result<void> RuleSwitches::Load(std::shared_ptr<const RuleSet> rules) {
  const base::MutexLock lock(mutex_);
  if (Result<void> applied = apply_(rules); !applied) {
    return applied;
  }
  written_ = std::move(rules);
  if (!switches_.empty()) {
    Log(LogLevel::kWarning, "new rules: what was switched is as written again",
        {{"switches", switches_.size()}});
    switches_.clear();
  }
  return {};
}

Result<void> RuleSwitches::Take(std::vector<One> wanted) {
  std::shared_ptr<const RuleSet> rules = written_;
  if (!wanted.empty()) {
    std::vector<RuleSwitch> switches;
    for (const One& one : wanted) {
      switches.push_back({one.rule, one.mode});
    }
    const RuleParse parse = written_->With(switches);
    if (parse.rules == nullptr) {
      return Error::Invalid(parse.issues.front().message);
    }
    rules = parse.rules;
  }
  if (Result<void> applied = apply_(std::move(rules)); !applied) {
    return applied;
  }
  switches_ = std::move(wanted);
  return {};
}

Result<void> RuleSwitches::Switch(std::string_view rule, RuleMode mode,
                                  std::optional<Timestamp> ends) {
  const base::MutexLock lock(mutex_);
  // Asked for even if it ends a switch: a name that is none is a slip.
  const RuleSwitch one{std::string(rule), mode};
  if (const RuleParse parse = written_->With({&one, 1}); parse.rules == nullptr) {
    return Error::Invalid(parse.issues.front().message);
  }
  std::vector<One> wanted = switches_;
  std::erase_if(wanted, [&](const One& before) { return before.rule == rule; });
  if (mode != RuleMode::kAsWritten) {
    wanted.push_back({std::string(rule), mode, ends});
  }
  if (Result<void> taken = Take(std::move(wanted)); !taken) {
    return taken;
  }
  Log(LogLevel::kWarning, "rule switched", {{"rule", rule}, {"to", ToString(mode)}});
  return {};
}

void RuleSwitches::EndDue(Timestamp now) {
  const base::MutexLock lock(mutex_);
  const auto due = [now](const One& one) { return one.ends && *one.ends <= now; };
  if (std::none_of(switches_.begin(), switches_.end(), due)) {
    return;
  }
  std::vector<One> left = switches_;
  std::erase_if(left, due);
  const size_t ended = switches_.size() - left.size();
  if (const Result<void> taken = Take(std::move(left)); !taken) {
    Log(LogLevel::kError, "a switch is over but its rule stays switched",
        {{"error", taken.error().message}});
    return;
  }
  Log(LogLevel::kWarning, "switches are over: their rules are as written again",
      {{"switches", ended}});
}

std::vector<RuleSwitches::One> RuleSwitches::all() const {
  const base::MutexLock lock(mutex_);
  return switches_;
}

std::optional<RuleMode> ParseRuleMode(std::string_view text) noexcept {
  for (const RuleMode mode : {RuleMode::kOff, RuleMode::kShadow, RuleMode::kOn}) {
    if (text == ToString(mode)) {
      return mode;
    }
  }
  return text == "as-written" ? std::optional(RuleMode::kAsWritten) : std::nullopt;
}

}  // namespace weir::server
