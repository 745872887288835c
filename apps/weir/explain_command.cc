// weir explain: what rules would make of a request, and why. Offline: on a store of its own, where
// nobody has used anything up.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "weir/rules.h"

#include "apps/weir/commands.h"
#include "apps/weir/print.h"

namespace weir::app {
namespace {

struct ExplainFlags {
  std::vector<std::string> rules;
  std::vector<std::string> attributes;
  uint64_t cost = 1;
  bool json = false;
};

int Say(const std::string& problem) {
  std::fprintf(stderr, "weir explain: %s\n", problem.c_str());
  return kUsage;
}

int Explain(const ExplainFlags& flags) {
  std::vector<Attribute> attributes;
  for (const std::string& text : flags.attributes) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Say("found '" + text + "'; expected name=value, such as ip=203.0.113.7");
    }
    const std::string_view whole = text;
    attributes.push_back({whole.substr(0, equals), whole.substr(equals + 1)});
  }
  const RuleParse parse = RuleSet::Load(flags.rules);
  if (parse.rules == nullptr) {
    for (const RuleIssue& issue : parse.issues) {
      std::fprintf(stderr, "%s\n", ToString(issue).c_str());
    }
    return kFailure;
  }
  auto store = MemoryStore::Create({.budget_bytes = size_t{16} << 20, .record_percent = 50});
  if (!store) {
    return Say(store.error().message);
  }
  auto limiter = RuleLimiter::Create(parse.rules, *store);
  if (!limiter) {
    return Say(limiter.error().message);
  }
  const Explanation explanation = (*limiter)->Explain(attributes, flags.cost);
  return Print(flags.json ? ToJson(explanation) + "\n" : ToText(explanation));
}

}  // namespace

void RegisterExplain(CLI::App& app, int& status) {
  auto flags = std::make_shared<ExplainFlags>();
  CLI::App* const command =
      app.add_subcommand("explain", "Say what rules make of a request, and why");
  command->add_option("-r,--rules", flags->rules, "Rule files; several make one set")
      ->required()
      ->allow_extra_args(false)
      ->type_name("FILE");
  command->add_option("attributes", flags->attributes, "What is known of the request")
      ->type_name("NAME=VALUE...");
  command->add_option("-c,--cost", flags->cost, "Units the request costs (1)")->type_name("N");
  command->add_flag("--json", flags->json, "One JSON object instead of text");
  command->footer(
      "\nEvery rule: whether it matches or which condition failed, the key, the quotas, what is\n"
      "left, and by how much the count may be off. Nothing is consumed.\n"
      "\nExamples:\n"
      "  weir explain -r rules.yaml ip=203.0.113.7 method=POST path=/login\n"
      "  weir explain -r rules.yaml user=alice tier=pro header:x-client=app/2 --json");
  command->callback([flags, &status] { status = Explain(*flags); });
}

}  // namespace weir::app
