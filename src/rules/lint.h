// Rules that are valid and probably not meant.
#pragma once

#include "rules/compiled_set.h"
#include "rules/issues.h"

namespace weir::rules {

void Lint(const CompiledSet& set, Issues& issues);

}  // namespace weir::rules
