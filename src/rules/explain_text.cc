// An explanation for people and for programs.
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "weir/rules.h"

#include "base/json_text.h"

namespace weir {

namespace {

// Rounded up, so that who waits as long has waited long enough.
std::string Seconds(Duration duration) {
  const int64_t ms = (duration.count() + 999'999) / 1'000'000;
  std::array<char, 40> out{};
  std::snprintf(out.data(), out.size(), ms % 1000 == 0 ? "%lld" : "%lld.%03lld",
                static_cast<long long>(ms / 1000), static_cast<long long>(ms % 1000));
  return out.data();
}

std::string_view Word(Outcome outcome) {
  return outcome == Outcome::kAllowed  ? "allowed"
         : outcome == Outcome::kDenied ? "denied"
                                       : "refused";
}

std::string Hex(uint64_t version) {
  std::array<char, 17> out{};
  std::snprintf(out.data(), out.size(), "%016llx", static_cast<unsigned long long>(version));
  return out.data();
}

std::string Line(const ExplainedQuota& quota) {
  const Decision& decision = quota.decision;
  std::string line = "      " + quota.text + ": " + std::string(Word(decision.outcome)) + ", " +
                     std::to_string(decision.remaining) + " of " + std::to_string(decision.limit) +
                     " left";
  if (!decision.allowed() && decision.problem == Problem::kNone) {
    line += ", again in " + Seconds(decision.retry_after) + " s";
  }
  if (decision.problem != Problem::kNone) {
    line += ": " + std::string(Explain(decision.problem));
  }
  return line + "\n        " + quota.bound + "\n";
}

}  // namespace

std::string ToText(const Explanation& explanation) {
  std::string text(Word(explanation.outcome));
  if (!explanation.deciding.empty()) {
    text += " by " + explanation.deciding;
  }
  if (explanation.why != RuleRefusal::kNone) {
    text += ": " + std::string(ToString(explanation.why));
  }
  if (!explanation.list.empty()) {
    text += " (in a list: " + explanation.list + ")";
  }
  if (explanation.retry_after != Duration::zero()) {
    text += ", again in " + Seconds(explanation.retry_after) + " s";
  }
  text += "\nrules " + Hex(explanation.version) + "; nothing was charged\n";
  for (const ExplainedRule& rule : explanation.rules) {
    text += "\n  " + rule.rule + ": " + std::string(ToString(rule.fate));
    text += rule.reason.empty() ? "" : ": " + rule.reason;
    text += "\n";
    if (!rule.key.empty()) {
      text += "    counts by " + rule.per + ", here " + rule.key + "\n";
    }
    for (const ExplainedQuota& quota : rule.quotas) {
      text += Line(quota);
    }
  }
  return text;
}

std::string ToJson(const Explanation& explanation) {
  base::JsonText json;
  json.Begin('{');
  json.Name("allowed").Bool(explanation.outcome == Outcome::kAllowed);
  json.Name("outcome").Text(Word(explanation.outcome));
  json.Name("why").Text(ToString(explanation.why));
  json.Name("list").Text(explanation.list);
  json.Name("deciding").Text(explanation.deciding);
  json.Name("retry_after").Raw(Seconds(explanation.retry_after));
  json.Name("version").Text(Hex(explanation.version));
  json.Name("rules").Begin('[');
  for (const ExplainedRule& rule : explanation.rules) {
    json.Begin('{');
    json.Name("rule").Text(rule.rule);
    json.Name("group").Text(rule.group);
    json.Name("fate").Text(ToString(rule.fate));
    json.Name("reason").Text(rule.reason);
    json.Name("per").Text(rule.per);
    json.Name("key").Text(rule.key);
    json.Name("quotas").Begin('[');
    for (const ExplainedQuota& quota : rule.quotas) {
      json.Begin('{');
      json.Name("quota").Text(quota.text);
      json.Name("bound").Text(quota.bound);
      json.Name("outcome").Text(Word(quota.decision.outcome));
      json.Name("limit").Number(quota.decision.limit);
      json.Name("remaining").Number(quota.decision.remaining);
      json.Name("retry_after").Raw(Seconds(quota.decision.retry_after));
      json.Name("reset_after").Raw(Seconds(quota.decision.reset_after));
      json.Name("basis").Text(ToString(quota.decision.basis));
      json.End('}');
    }
    json.End(']').End('}');
  }
  json.End(']').End('}');
  return std::string(json.text());
}

}  // namespace weir
