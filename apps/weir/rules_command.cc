// weir rules: what is said about rule files before they go live.
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weir/rule_set.h"

#include "apps/weir/commands.h"
#include "apps/weir/print.h"
#include "apps/weir/terminal.h"
#include "base/json_text.h"

namespace weir::app {
namespace {

struct CheckFlags {
  std::vector<std::string> files;
  std::vector<std::string> against;
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
    json.Begin('{');
    json.Name("level").Text(issue.level == IssueLevel::kError ? "error" : "warning");
    json.Name("file").Text(issue.file);
    json.Name("line").Number(issue.line);
    json.Name("column").Number(issue.column);
    json.Name("rule").Text(issue.rule);
    json.Name("message").Text(issue.message);
    json.End('}');
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

int Check(const CheckFlags& flags) {
  RuleParse parse = RuleSet::Load(flags.files);
  if (parse.rules != nullptr && !flags.against.empty()) {
    const RuleParse running = RuleSet::Load(flags.against);
    if (running.rules == nullptr) {
      std::fprintf(stderr, "weir rules check: --against: %s\n",
                   ToString(running.issues.front()).c_str());
      return kUsage;
    }
    const auto more = LintAgainst(*running.rules, *parse.rules);
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
  CLI::App* const rules = app.add_subcommand("rules", "Check and compare rule files");
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
      "  weir rules diff live.yaml new.yaml                what changes, and for whom\n"
      "  weir rules schema > rules.schema.json             for editors that complete and check");

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
}

}  // namespace weir::app
