// The two halves of a rule that name attributes: `when`, which requests it is for, and `per`, what
// it counts by.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rules/fields.h"
#include "rules/issues.h"
#include "rules/rule_model.h"

namespace weir::rules {

// Fills in when, paths and view.when.
void ReadWhen(const YamlNode& node, RuleModel& rule, Issues& issues);

// Fills in per and view.per. REQUIRES: ReadWhen has been called, if there is a `when`.
void ReadPer(const YamlNode& node, RuleModel& rule, Issues& issues);

// An attribute's name as rules have it (headers in lower case), or empty and reported.
// Of ip/24, a part of a key: 24. 0 for every other name.
[[nodiscard]] unsigned Ipv4BitsOf(std::string_view part) noexcept;

[[nodiscard]] std::string ReadAttributeName(std::string_view text, Mark mark, Issues& issues);

}  // namespace weir::rules
