// Where the rules come from: files, read as a whole, believed only if all of it is good. What was
// good last is kept on disk, for a start with files that are not.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"
#include "weir/rules.h"

#include "base/mutex.h"

namespace weir::server {

struct RuleStatus {
  uint64_t version = 0;
  uint64_t rule_count = 0;
  uint64_t loads = 0;     // that changed the rules, the first included
  uint64_t failures = 0;  // files that were not taken
  std::string error;      // why the files as they are now are not in effect; empty: they are
  bool from_last_good = false;
  std::vector<RuleIssue> issues;  // of the last look at the files
};

class RuleSource {
 public:
  using Apply = std::function<Result<void>(std::shared_ptr<const RuleSet>)>;

  // No files: no rules, which is not an error: CL.THROTTLE needs none. `state_dir` may be empty.
  RuleSource(std::vector<std::string> files, std::string state_dir);

  // The first rules: those of the files, or, if these are bad, the last good ones.
  Result<std::shared_ptr<const RuleSet>> LoadFirst();

  enum class Outcome : uint8_t { kUnchanged, kApplied, kRefused };
  // Looks at the files again and applies them if they have changed and are good. A bad change is
  // logged once. Any thread may ask; one looks at a time.
  Outcome Reload(const Apply& apply);

  [[nodiscard]] const std::vector<std::string>& files() const noexcept { return files_; }
  [[nodiscard]] RuleStatus status() const;
  // What is in effect, as one stream of YAML documents.
  [[nodiscard]] std::string text() const;

 private:
  struct Text {
    std::string file;
    std::string text;

    friend bool operator==(const Text&, const Text&) = default;
  };
  using Texts = std::vector<Text>;

  Result<Texts> Read() const;
  // What was good last, cut into files again; none if there is nothing, or from other files.
  [[nodiscard]] Texts LastGood() const;
  void Succeed(const RuleSet& rules, Texts texts, std::vector<RuleIssue> issues)
      WEIR_REQUIRES(reload_mutex_);
  Outcome Refuse(const std::string& seen, std::string error, std::vector<RuleIssue> issues)
      WEIR_REQUIRES(reload_mutex_);
  void KeepLastGood(const Texts& texts) const;
  [[nodiscard]] std::string LastGoodPath() const { return state_dir_ + "/last-good-rules.yaml"; }

  const std::vector<std::string> files_;
  const std::string state_dir_;
  base::Mutex reload_mutex_;  // taken before the other
  Texts in_effect_ WEIR_GUARDED_BY(reload_mutex_);
  // What was refused last, so that it is not said again.
  std::string refused_ WEIR_GUARDED_BY(reload_mutex_);
  mutable base::Mutex mutex_;
  RuleStatus status_ WEIR_GUARDED_BY(mutex_);
  std::string text_ WEIR_GUARDED_BY(mutex_) = "rules: []\n";
};

}  // namespace weir::server
