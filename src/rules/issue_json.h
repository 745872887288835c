// A finding about a rule file, as JSON: for the server's answers and for `weir rules check --json`.
#pragma once

#include "weir/rule_set.h"

#include "base/json_text.h"

namespace weir::rules {

inline void AddIssue(const RuleIssue& issue, base::JsonText& json) {
  json.Begin('{');
  json.Name("level").Text(issue.level == IssueLevel::kError ? "error" : "warning");
  json.Name("file").Text(issue.file);
  json.Name("line").Number(issue.line);
  json.Name("column").Number(issue.column);
  json.Name("rule").Text(issue.rule);
  json.Name("message").Text(issue.message);
  json.End('}');
}

}  // namespace weir::rules
