#include "weir/rule_set.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "base/key_hash.h"
#include "base/spelling.h"
#include "rules/compiler.h"
#include "rules/issues.h"
#include "rules/lint.h"
#include "rules/rule_parser.h"
#include "rules/rule_set_state.h"

namespace weir {

namespace {

// Files in the order in which they were first told of, each from top to bottom.
void SortByPlace(std::vector<RuleIssue>& issues) {
  std::map<std::string_view, size_t> files;
  std::vector<std::tuple<size_t, uint32_t, uint32_t, size_t>> places;
  for (size_t i = 0; i < issues.size(); ++i) {
    const size_t file = files.emplace(issues[i].file, files.size()).first->second;
    places.emplace_back(file, issues[i].line, issues[i].column, i);
  }
  std::sort(places.begin(), places.end());
  std::vector<RuleIssue> sorted;
  sorted.reserve(issues.size());
  for (const auto& place : places) {
    sorted.push_back(std::move(issues[std::get<3>(place)]));
  }
  issues = std::move(sorted);
}

RuleParse Make(std::span<const rules::SourceText> sources, rules::Issues issues) {
  uint64_t version = 0;
  for (const rules::SourceText& source : sources) {
    version = base::HashKeySeeded(source.text, version + 1);
  }
  rules::SetModel model = rules::ReadSources(sources, issues);
  std::unique_ptr<const rules::CompiledSet> compiled;
  if (issues.errors() == 0) {
    compiled = rules::Compile(std::move(model), version, issues);
  }
  RuleParse parse;
  if (compiled != nullptr) {
    rules::Lint(*compiled, issues);
    auto state = std::make_unique<RuleSet::State>();
    state->compiled = std::move(compiled);
    parse.rules = std::make_shared<const RuleSet>(std::move(state));
  }
  parse.issues = issues.Take();
  SortByPlace(parse.issues);
  return parse;
}

// False: it cannot be read, and `issues` says why.
bool ReadFile(const std::string& path, std::string& text, rules::Issues& issues) {
  std::FILE* const file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) {
    issues.Error({}, std::string("cannot be read: ") + std::strerror(errno));
    return false;
  }
  text.resize(kMaxRuleFileBytes + 1);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  const bool failed = std::ferror(file) != 0;
  const int error = errno;
  std::fclose(file);
  if (failed) {
    issues.Error({}, std::string("cannot be read: ") + std::strerror(error));
  }
  return !failed;
}

}  // namespace

std::string ToString(const RuleIssue& issue) {
  std::string text = issue.file;
  if (issue.line != 0) {
    text += ":" + std::to_string(issue.line) + ":" + std::to_string(issue.column);
  }
  text += issue.level == IssueLevel::kError ? ": error: " : ": warning: ";
  if (!issue.rule.empty()) {
    text += "rule " + base::Quoted(issue.rule) + ": ";
  }
  return text + issue.message;
}

RuleParse RuleSet::Parse(std::string_view text, std::string_view name) {
  const rules::SourceText source{std::string(name), std::string(text)};
  rules::Issues issues;
  issues.SetFile(name);
  return Make({&source, 1}, std::move(issues));
}

RuleParse RuleSet::Load(const std::string& path) {
  return Load(std::span(&path, 1));
}

RuleParse RuleSet::Load(std::span<const std::string> paths) {
  rules::Issues issues;
  std::vector<rules::SourceText> sources;
  for (const std::string& path : paths) {
    issues.SetFile(path);
    rules::SourceText source{path, ""};
    if (ReadFile(path, source.text, issues)) {
      sources.push_back(std::move(source));
    }
  }
  if (issues.errors() != 0) {
    return {nullptr, issues.Take()};
  }
  return Make(sources, std::move(issues));
}

RuleSet::RuleSet(std::unique_ptr<const State> state) : state_(std::move(state)) {}
RuleSet::~RuleSet() = default;

uint64_t RuleSet::version() const noexcept {
  return state_->compiled->version;
}

std::span<const RuleView> RuleSet::rules() const noexcept {
  return state_->compiled->views;
}

}  // namespace weir
