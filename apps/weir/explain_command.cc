// weir explain: what rules would make of a request, and why. Offline on a store of its own, where
// nobody has used anything up; or by a server, as it stands.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "weir/rules.h"

#include "apps/weir/admin_client.h"
#include "apps/weir/commands.h"
#include "apps/weir/print.h"
#include "base/json_text.h"

namespace weir::app {
namespace {

struct ExplainFlags {
  std::vector<std::string> rules;
  std::vector<std::string> attributes;
  std::string server;
  std::string token_file;
  uint64_t cost = 1;
  bool json = false;
};

int Say(const std::string& problem) {
  std::fprintf(stderr, "weir explain: %s\n", problem.c_str());
  return kUsage;
}

// The same text as offline: the server has written it.
int Ask(const ExplainFlags& flags, const std::vector<Attribute>& attributes) {
  const auto client = AdminClient::Open(flags.server, flags.token_file);
  if (!client) {
    return Say(client.error().message);
  }
  base::JsonText question;
  question.Begin('{').Name("cost").Number(flags.cost).Name("attributes").Begin('{');
  for (const Attribute& attribute : attributes) {
    question.Name(attribute.name).Text(attribute.value);
  }
  question.End('}').End('}');
  const auto answer =
      client->Post("/v1/explain", flags.json ? "application/json" : "text/plain", question.text());
  if (!answer) {
    Say(answer.error().message);
    return kFailure;
  }
  return Print(flags.json ? *answer + "\n" : *answer);
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
  if (flags.rules.empty() == flags.server.empty()) {
    return Say("found " + std::string(flags.rules.empty() ? "neither" : "both") +
               " --rules and --server; expected one of them");
  }
  if (!flags.server.empty()) {
    return Ask(flags, attributes);
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
      ->allow_extra_args(false)
      ->type_name("FILE");
  command->add_option("--server", flags->server, "Ask a server instead, at its admin address")
      ->type_name("http://HOST:PORT");
  command->add_option("--token-file", flags->token_file, "Its first line is the admin token")
      ->envname("WEIR_ADMIN_TOKEN_FILE")
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
      "  weir explain -r rules.yaml user=alice tier=pro header:x-client=app/2 --json\n"
      "  weir explain --server http://127.0.0.1:8081 ip=203.0.113.7 path=/   with what is left");
  command->callback([flags, &status] { status = Explain(*flags); });
}

}  // namespace weir::app
