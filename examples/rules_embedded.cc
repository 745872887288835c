// Rules in a program of its own, without a server: a file decides, and may change while it does.
#include <cstdio>
#include <string_view>

#include "weir/rules.h"

namespace {

constexpr std::string_view kRules = R"(
tiers: {premium: 5x}
rules:
  - name: per-ip
    per: ip
    limit: 50/min
    burst: 20
  - name: login
    group: login
    when: {method: POST, path: /login}
    per: ip
    limit: 2/min
  - name: plan
    per: user
    by: tier
    limit: 100/h
)";

}  // namespace

int main() {
  const weir::RuleParse parsed = weir::RuleSet::Parse(kRules, "embedded");
  for (const weir::RuleIssue& issue : parsed.issues) {
    std::fprintf(stderr, "%s\n", ToString(issue).c_str());
  }
  if (parsed.rules == nullptr) {
    return 1;
  }
  auto store = weir::MemoryStore::Create({.budget_bytes = size_t{16} << 20});
  auto limiter = weir::RuleLimiter::Create(parsed.rules, *store);
  if (!limiter) {
    std::fprintf(stderr, "%s\n", limiter.error().message.c_str());
    return 1;
  }
  const weir::Attribute request[] = {
      {"ip", "203.0.113.7"}, {"method", "POST"}, {"path", "/login"}, {"user", "alice"}};
  for (int i = 0; i < 3; ++i) {
    const weir::RuleVerdict verdict = (*limiter)->Check(request);
    std::printf("%s by %.*s\n", verdict.allowed() ? "allowed" : "denied",
                static_cast<int>(verdict.rule().size()), verdict.rule().data());
  }
  // Why? Nothing is charged for asking.
  std::fputs(ToText((*limiter)->Explain(request)).c_str(), stdout);

  // A raise takes hold at once, and what was used stays used.
  const weir::RuleParse raised = weir::RuleSet::Parse(
      "rules: [{name: login, group: login, when: {path: /login}, per: ip, limit: 3/min}]");
  if (!(*limiter)->Apply(raised.rules)) {
    return 1;
  }
  const bool third = (*limiter)->Check(request).allowed();
  const bool fourth = (*limiter)->Check(request).allowed();
  return third && !fourth ? 0 : 1;
}
