// weir rules: what is said about rule files before they go live.
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weir/rule_set.h"

#include "apps/weir/admin_client.h"
#include "apps/weir/commands.h"
#include "apps/weir/print.h"
#ifdef WEIR_HAS_IMPORT
#include "apps/weir/rules_import_command.h"
#endif
#include "apps/weir/terminal.h"
#include "base/json_text.h"
#include "rules/issue_json.h"

namespace weir::app {
namespace {

struct CheckFlags {
  std::vector<std::string> files;
  std::vector<std::string> against;
  std::string server;
  std::string token_file;
  bool json = false;
};

struct DiffFlags {
  std::string before;
  std::string after;
  bool json = false;
};

std::string AsJson(std::span<const RuleIssue> issues, const RuleSet* rules) {
  base::JsonText json;
  json.Begin('{');
  json.Name("ok").Bool(rules != nullptr);
  json.Name("rules").Number(rules != nullptr ? rules->rules().size() : 0);
  json.Name("issues").Begin('[');
  for (const RuleIssue& issue : issues) {
    rules::AddIssue(issue, json);
  }
  json.End(']').End('}');
  return std::string(json.text()) + "\n";
}

std::string AsText(const RuleSet& rules) {
  std::string text;
  for (const RuleView& view : rules.rules()) {
    text += view.name + ": " + (view.when.empty() ? "everything" : view.when) + ", per " + view.per;
    text += view.shadow ? " (shadow)" : "";
    text += view.disabled ? " (disabled)" : "";
    text += view.action == RuleAction::kBlock       ? ": refused\n"
            : view.action == RuleAction::kUnlimited ? ": unlimited\n"
                                                    : "\n";
    for (const RuleVariant& variant : view.variants) {
      const std::string whom = variant.is_override    ? "override, "
                               : variant.tier.empty() ? ""
                                                      : variant.tier + ": ";
      for (const RuleQuota& quota : variant.quotas) {
        text += "  " + whom + quota.text + ": " + quota.bound + "\n";
      }
    }
  }
  return text + "ok: " + std::to_string(rules.rules().size()) + " rules\n";
}

// The rules that run now: of files, or those that a server decides by.
Result<std::shared_ptr<const RuleSet>> Running(const CheckFlags& flags) {
  RuleParse parse;
  if (flags.server.empty()) {
    parse = RuleSet::Load(flags.against);
  } else {
    const auto client = AdminClient::Open(flags.server, flags.token_file);
    if (!client) {
      return client.error();
    }
    const auto text = client->Get("/v1/rules/text");
    if (!text) {
      return text.error();
    }
    parse = RuleSet::Parse(*text, client->address());
  }
  if (parse.rules == nullptr) {
    return Error::Invalid("--against: " + ToString(parse.issues.front()));
  }
  return parse.rules;
}

int Check(const CheckFlags& flags) {
  RuleParse parse = RuleSet::Load(flags.files);
  const WallTime now = SystemClock().WallNow();
  for (size_t i = 0; parse.rules != nullptr && i < parse.rules->rules().size(); ++i) {
    const RuleView& view = parse.rules->rules()[i];
    if (view.expires <= now) {
      parse.issues.push_back({IssueLevel::kWarning, view.file, view.line, 1, view.name,
                              "it can never match: it has expired"});
    }
  }
  if (parse.rules != nullptr && !(flags.against.empty() && flags.server.empty())) {
    const auto running = Running(flags);
    if (!running) {
      std::fprintf(stderr, "weir rules check: %s\n", running.error().message.c_str());
      return running.error().code == ErrorCode::kInvalidArgument ? kUsage : kFailure;
    }
    const auto more = LintAgainst(**running, *parse.rules);
    parse.issues.insert(parse.issues.end(), more.begin(), more.end());
  }
  const int status = parse.rules != nullptr ? kSuccess : kFailure;
  if (flags.json) {
    const int printed = Print(AsJson(parse.issues, parse.rules.get()));
    return printed == kSuccess ? status : printed;
  }
  for (const RuleIssue& issue : parse.issues) {
    std::fprintf(stderr, "%s\n", ToString(issue).c_str());
  }
  return parse.rules != nullptr ? Print(AsText(*parse.rules)) : kFailure;
}

// Null: it was refused, and standard error says why.
std::shared_ptr<const RuleSet> LoadOrSay(const std::string& path) {
  const RuleParse parse = RuleSet::Load(path);
  for (const RuleIssue& issue : parse.issues) {
    if (issue.level == IssueLevel::kError) {
      std::fprintf(stderr, "%s\n", ToString(issue).c_str());
    }
  }
  return parse.rules;
}

int Compare(const DiffFlags& flags) {
  const auto before = LoadOrSay(flags.before);
  const auto after = LoadOrSay(flags.after);
  if (before == nullptr || after == nullptr) {
    return kFailure;
  }
  const std::vector<RuleChange> changes = Diff(*before, *after);
  if (flags.json) {
    base::JsonText json;
    json.Begin('[');
    for (const RuleChange& change : changes) {
      json.Begin('{');
      json.Name("kind").Text(ToString(change.kind));
      json.Name("rule").Text(change.rule);
      json.Name("text").Text(change.text);
      json.End('}');
    }
    json.End(']');
    return Print(std::string(json.text()) + "\n");
  }
  std::string text;
  for (const RuleChange& change : changes) {
    text += change.text + "\n";
  }
  return Print(text.empty() ? "nothing changes\n" : text);
}

}  // namespace

void RegisterRules(CLI::App& app, int& status) {
  CLI::App* const rules = app.add_subcommand("rules", "Check, compare and import rule files");
  rules->require_subcommand(1);
  rules->footer(
      "\nA first file:\n"
      "  rules:\n"
      "    - name: per-ip\n"
      "      per: ip\n"
      "      limit: 50/min\n"
      "      burst: 20\n"
      "\nExamples:\n"
      "  weir rules check rules.yaml                       every mistake, with line and column\n"
      "  weir rules check new.yaml --against live.yaml     also: limits that shrink over tenfold\n"
      "  weir rules check new.yaml --server http://127.0.0.1:8081    the same, against a server\n"
      "  weir rules diff live.yaml new.yaml                what changes, and for whom\n"
      "  weir rules schema > rules.schema.json             for editors that complete and check\n"
      "  weir rules import nginx.conf -o rules.yaml        limits of nginx, HAProxy, Envoy, "
      "limitador");

  auto check = std::make_shared<CheckFlags>();
  CLI::App* const check_command =
      rules->add_subcommand("check", "Say what is wrong with rule files, or what they mean");
  check_command->add_option("files", check->files, "Rule files; several make one set")
      ->required()
      ->type_name("FILE...");
  check_command
      ->add_option("--against", check->against, "The files that run now, to be compared with")
      ->allow_extra_args(false)
      ->type_name("FILE");
  check_command->add_option("--server", check->server, "Compare with what this server decides by")
      ->excludes("--against")
      ->type_name("http://HOST:PORT");
  check_command->add_option("--token-file", check->token_file, "Its first line is the admin token")
      ->envname("WEIR_ADMIN_TOKEN_FILE")
      ->type_name("FILE");
  check_command->add_flag("--json", check->json, "One JSON object instead of text");
  check_command->footer(
      "\nExit status: 0 good (perhaps with warnings), 1 refused, 2 asked wrongly.");
  check_command->callback([check, &status] { status = Check(*check); });

  auto diff = std::make_shared<DiffFlags>();
  CLI::App* const diff_command =
      rules->add_subcommand("diff", "Say what changes, and for whom, between two rule files");
  diff_command->add_option("before", diff->before, "What runs now")->required()->type_name("OLD");
  diff_command->add_option("after", diff->after, "What is to run")->required()->type_name("NEW");
  diff_command->add_flag("--json", diff->json, "A JSON array instead of text");
  diff_command->callback([diff, &status] { status = Compare(*diff); });

  rules->add_subcommand("schema", "Print the JSON Schema of rule files")->callback([&status] {
    status = Print(RuleSchema());
  });
#ifdef WEIR_HAS_IMPORT
  RegisterRulesImport(*rules, status);
#endif
}

}  // namespace weir::app
