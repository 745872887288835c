// What is behind a RuleSet.
#pragma once

#include <memory>

#include "weir/rule_set.h"

#include "rules/compiled_set.h"

namespace weir {

struct RuleSet::State {
  std::unique_ptr<const rules::CompiledSet> compiled;
};

}  // namespace weir
