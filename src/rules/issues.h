// Findings about a rule file, collected: all of them are reported, not only the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/rule_set.h"

namespace weir::rules {

struct Mark {
  uint32_t line = 0;  // from 1; 0: the file as a whole
  uint32_t column = 0;
};

class Issues {
 public:
  // What follows is about this file and this rule.
  void SetFile(std::string_view file) { file_ = file; }
  void SetRule(std::string_view rule) { rule_ = rule; }
  [[nodiscard]] const std::string& file() const noexcept { return file_; }

  void Error(Mark mark, std::string message) { Add(IssueLevel::kError, mark, std::move(message)); }
  void Warning(Mark mark, std::string message) {
    Add(IssueLevel::kWarning, mark, std::move(message));
  }

  [[nodiscard]] size_t errors() const noexcept { return errors_; }
  [[nodiscard]] std::vector<RuleIssue> Take() { return std::move(all_); }

 private:
  // Nobody reads more of them, and a wrong file of 4 MiB could have a million.
  static constexpr size_t kMost = 200;

  void Add(IssueLevel level, Mark mark, std::string message) {
    errors_ += level == IssueLevel::kError ? 1 : 0;
    if (all_.size() == kMost) {
      message = "there are more; these are the first " + std::to_string(kMost);
      mark = {};
    }
    if (all_.size() <= kMost) {
      all_.push_back({level, file_, mark.line, mark.column, rule_, std::move(message)});
    }
  }

  std::vector<RuleIssue> all_;
  std::string file_;
  std::string rule_;
  size_t errors_ = 0;
};

}  // namespace weir::rules
