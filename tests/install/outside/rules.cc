// As main.cc, with the limit from a rule file.
#include <cstdio>

#include <weir/rules.h>

int main() {
  const auto parsed =
      weir::RuleSet::Parse("rules: [{name: a, when: {x: {regex: 'k+'}}, per: x, limit: 2/min}]");
  auto store = weir::MemoryStore::Create();
  if (parsed.rules == nullptr || !store) {
    return 1;
  }
  auto limiter = weir::RuleLimiter::Create(parsed.rules, *store);
  if (!limiter) {
    return 1;
  }
  const weir::Attribute request[] = {{"x", "kkk"}};
  for (int i = 0; i < 3; ++i) {
    const weir::RuleVerdict verdict = (*limiter)->Check(request);
    std::printf("%s remaining=%u\n", verdict.allowed() ? "allowed" : "denied",
                verdict.decision->remaining);
  }
  return 0;
}
