// Tells once, for each rule and each load of the rules, that a rule hardly limits anything: nearly
// every request that it counted was the first of its key. Often somebody counts by a request id.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "weir/rules.h"

#include "base/mutex.h"

namespace weir::server {

class FreshKeyWarnings {
 public:
  // The rules that are to be told of now, by name. Any thread may ask.
  std::vector<std::string> New(uint64_t version, const std::vector<RuleCounts>& counts) {
    const base::MutexLock lock(mutex_);
    if (version != version_) {
      version_ = version;
      told_.clear();
    }
    std::vector<std::string> rules;
    for (const RuleCounts& rule : counts) {
      if (rule.meets_fresh_keys && told_.insert(rule.rule).second) {
        rules.push_back(rule.rule);
      }
    }
    return rules;
  }

 private:
  base::Mutex mutex_;
  uint64_t version_ WEIR_GUARDED_BY(mutex_) = 0;
  std::set<std::string> told_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::server
