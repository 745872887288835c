// Rules that operators have switched while the server runs. Kept beside the files' rules: a switch
// ends at its time, or when the files bring other rules. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"
#include "weir/rules.h"

#include "base/mutex.h"

namespace weir::server {

class RuleSwitches {
 public:
  using Apply = std::function<Result<void>(std::shared_ptr<const RuleSet>)>;

  struct One {
    std::string rule;
    RuleMode mode = RuleMode::kOff;
    std::optional<Timestamp> ends;  // none: with the next rules
  };

  // `apply` makes a set the one that decides.
  RuleSwitches(std::shared_ptr<const RuleSet> first, Apply apply);

  // Rules of the files: all switches are over. On an error nothing has changed.
  Result<void> Load(std::shared_ptr<const RuleSet> rules);

  // kAsWritten ends a switch. The error says what is wrong, and then nothing has changed.
  Result<void> Switch(std::string_view rule, RuleMode mode, std::optional<Timestamp> ends);

  // Ends those whose time has come; to be called now and then.
  void EndDue(Timestamp now);

  [[nodiscard]] std::vector<One> all() const;

 private:
  Result<void> Take(std::vector<One> wanted) WEIR_REQUIRES(mutex_);

  const Apply apply_;
  mutable base::Mutex mutex_;
  std::shared_ptr<const RuleSet> written_ WEIR_GUARDED_BY(mutex_);
  std::vector<One> switches_ WEIR_GUARDED_BY(mutex_);
};

// "off", "shadow", "on", "as-written".
[[nodiscard]] std::optional<RuleMode> ParseRuleMode(std::string_view text) noexcept;
inline constexpr std::string_view kRuleModes = "off, shadow, on or as-written";

}  // namespace weir::server
