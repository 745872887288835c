// Rule files, read as a whole into a model. Everything that is wrong is reported.
#pragma once

#include <span>
#include <string>

#include "rules/issues.h"
#include "rules/rule_model.h"

namespace weir::rules {

struct SourceText {
  std::string name;
  std::string text;
};

// The model is of use only if there were no errors.
[[nodiscard]] SetModel ReadSources(std::span<const SourceText> sources, Issues& issues);

}  // namespace weir::rules
