// Imported rules as a rule file, and what there is to say about them as a report.
#pragma once

#include <string>
#include <string_view>

#include "import/imported.h"

namespace weir::import {

// A rule file of ours. What was approximated or dropped stands as a comment where it belongs.
[[nodiscard]] std::string WriteRules(const Imported& imported, std::string_view format);

// One rule, as an item of a list.
[[nodiscard]] std::string WriteRule(const Rule& rule);

// A line for each thing that was carried, approximated or dropped, and one that counts them.
[[nodiscard]] std::string WriteReport(const Imported& imported);

}  // namespace weir::import
