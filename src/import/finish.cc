#include "import/finish.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/rule_set.h"

#include "envoy/json_writing.h"
#include "import/rule_writer.h"

namespace weir::import {

namespace {

constexpr size_t kMaxGroups = 64;  // of a rule set, those of shadow rules counted apart
constexpr size_t kMaxAttributesOfSet = 256;
constexpr size_t kMaxGroupBytes = 64;
// Beyond this, finding groups that exclude one another would take longer than it is worth.
constexpr size_t kMaxPackedRules = 4096;
// Leaves room for comments below what a rule file may have.
constexpr size_t kMaxBytes = kMaxRuleFileBytes / 2;

std::string Clean(std::string_view text, size_t bytes_max) {
  std::string clean;
  for (const char c : text.substr(0, bytes_max)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool fits = byte < 0x80 && (std::isalnum(byte) != 0 || c == '_' || c == '-' || c == '.' ||
                                      c == '/' || c == ':');
    clean += fits ? c : '-';
  }
  return clean.empty() ? "rule" : clean;
}

// A name that nobody has yet.
std::string Unique(const std::string& wanted, size_t bytes_max, std::set<std::string>& taken) {
  std::string name = wanted.substr(0, bytes_max);
  for (size_t n = 2; !taken.insert(name).second; ++n) {
    const std::string tail = "-" + std::to_string(n);
    name = wanted.substr(0, bytes_max - tail.size()) + tail;
  }
  return name;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = envoy::Utf8Length(text);
    if (length == 0 || text.front() == '\0') {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

bool HasOddText(const Rule& rule) {
  return std::any_of(rule.when.begin(), rule.when.end(), [](const Condition& condition) {
    return std::any_of(condition.any.begin(), condition.any.end(),
                       [](const Test& test) { return !IsUtf8(test.text); });
  });
}

// Why a rule alone would be refused; empty: it would not.
std::string ProblemOf(const Rule& rule) {
  if (HasOddText(rule)) {
    return "a condition has bytes that are not UTF-8";
  }
  const RuleParse parse = RuleSet::Parse("rules:\n" + WriteRule(rule), "rule");
  if (parse.rules != nullptr) {
    return "";
  }
  const auto error =
      std::find_if(parse.issues.begin(), parse.issues.end(),
                   [](const RuleIssue& issue) { return issue.level == IssueLevel::kError; });
  return error == parse.issues.end() ? "it is refused" : error->message;
}

size_t RegexesOf(const Rule& rule) {
  size_t count = 0;
  for (const Condition& condition : rule.when) {
    for (const Test& test : condition.any) {
      const bool many =
          test.match == Match::kGlob &&
          (test.text.find('*') != test.text.rfind('*') || test.text.find('?') != std::string::npos);
      count += test.match == Match::kRegex || many ? 1 : 0;
    }
  }
  return count;
}

class Finisher {
 public:
  explicit Finisher(Imported& imported) : imported_(imported) {}

  void Run() {
    NameAll();
    ShortenGroups();
    Keep([this](const Rule& rule) { return AloneProblem(rule); });
    if (CountGroups() > kMaxGroups) {
      PackGroups();
    }
    Keep([this](const Rule& rule) { return GroupProblem(rule); });
  }

 private:
  void NameAll() {
    std::set<std::string> taken;
    for (Rule& rule : imported_.rules) {
      rule.name = Unique(Clean(rule.name, kMaxRuleNameBytes), kMaxRuleNameBytes, taken);
    }
  }

  void ShortenGroups() {
    std::map<std::string, std::string> names;
    std::set<std::string> taken;
    for (Rule& rule : imported_.rules) {
      if (rule.group.empty()) {
        continue;
      }
      auto [found, is_new] = names.try_emplace(rule.group);
      if (is_new) {
        found->second = Unique(Clean(rule.group, kMaxGroupBytes), kMaxGroupBytes, taken);
      }
      rule.group = found->second;
    }
  }

  // Drops the rules that `problem_of` has something to say about.
  template <class ProblemOf>
  void Keep(ProblemOf problem_of) {
    std::vector<Rule> kept;
    std::vector<size_t> places(imported_.rules.size() + 1);  // where rules went
    std::vector<Finding> added;
    for (size_t i = 0; i < imported_.rules.size(); ++i) {
      places[i] = kept.size();
      Rule& rule = imported_.rules[i];
      const std::string problem = problem_of(rule);
      if (problem.empty()) {
        kept.push_back(std::move(rule));
      } else {
        added.push_back({Carry::kDropped, rule.place, rule.source + ": " + problem, kept.size()});
      }
    }
    places.back() = kept.size();
    imported_.rules = std::move(kept);
    for (Finding& finding : imported_.findings) {
      finding.before = places[std::min(finding.before, places.size() - 1)];
    }
    imported_.findings.insert(imported_.findings.end(), added.begin(), added.end());
  }

  std::string AloneProblem(const Rule& rule) {
    std::string problem = ProblemOf(rule);
    if (!problem.empty()) {
      return problem;
    }
    bytes_ += WriteRule(rule).size();
    regexes_ += RegexesOf(rule);
    ++rules_;
    for (const Condition& condition : rule.when) {
      attributes_.insert(condition.attribute);
    }
    attributes_.insert(rule.per.begin(), rule.per.end());
    return rules_ > kMaxRules   ? "a rule set has at most " + std::to_string(kMaxRules) + " rules"
           : bytes_ > kMaxBytes ? "the rule file would be too large; import less at once"
           : regexes_ > kMaxRegexes
               ? "a rule set has at most " + std::to_string(kMaxRegexes) + " regular expressions"
           : attributes_.size() > kMaxAttributesOfSet
               ? "a rule set knows at most " + std::to_string(kMaxAttributesOfSet) + " attributes"
               : "";
  }

  [[nodiscard]] size_t CountGroups() const {
    std::set<std::pair<std::string, bool>> groups;
    for (const Rule& rule : imported_.rules) {
      groups.emplace(rule.group, rule.shadow);
    }
    return groups.size();
  }

  // Groups of which no two rules can meet in a request become one: a request has a limit of each
  // group at the most, so nothing changes.
  void PackGroups() {
    if (imported_.rules.size() > kMaxPackedRules) {
      return;
    }
    std::vector<std::pair<std::string, std::vector<const Rule*>>> packed;
    std::map<std::string, std::vector<const Rule*>> groups;
    std::vector<std::string> order;
    for (const Rule& rule : imported_.rules) {
      auto [found, is_new] = groups.try_emplace(rule.group);
      found->second.push_back(&rule);
      if (is_new) {
        order.push_back(rule.group);
      }
    }
    std::map<std::string, std::string> target;
    for (const std::string& name : order) {
      const auto& rules = groups[name];
      const auto fits = [&](const auto& pack) {
        return std::all_of(pack.second.begin(), pack.second.end(), [&](const Rule* one) {
          return std::all_of(rules.begin(), rules.end(),
                             [&](const Rule* two) { return AreExclusive(one->when, two->when); });
        });
      };
      auto found = std::find_if(packed.begin(), packed.end(), fits);
      if (found == packed.end()) {
        found = packed.insert(packed.end(), {name, {}});
      }
      found->second.insert(found->second.end(), rules.begin(), rules.end());
      target[name] = found->first;
    }
    for (Rule& rule : imported_.rules) {
      rule.group = target[rule.group];
    }
  }

  std::string GroupProblem(const Rule& rule) {
    const std::pair<std::string, bool> group(rule.group, rule.shadow);
    if (!groups_.contains(group) && groups_.size() == kMaxGroups) {
      return "a request can meet at most " + std::to_string(kMaxGroups) + " limits at once";
    }
    groups_.insert(group);
    return "";
  }

  Imported& imported_;
  size_t bytes_ = 0;
  size_t regexes_ = 0;
  size_t rules_ = 0;
  std::set<std::string> attributes_;
  std::set<std::pair<std::string, bool>> groups_;
};

}  // namespace

void Finish(Imported& imported) {
  Finisher(imported).Run();
}

}  // namespace weir::import
