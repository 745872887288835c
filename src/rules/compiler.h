// From a model to a set that decides.
#pragma once

#include <cstdint>
#include <memory>

#include "rules/compiled_set.h"
#include "rules/issues.h"
#include "rules/rule_model.h"

namespace weir::rules {

// Null: something does not fit, and `issues` says what. REQUIRES: the model was read without
// errors.
[[nodiscard]] std::unique_ptr<const CompiledSet> Compile(SetModel model, uint64_t version,
                                                         Issues& issues);

}  // namespace weir::rules
