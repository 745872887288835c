// The parts of a rule file that are data rather than rules: block and allow lists, overrides.
#pragma once

#include <vector>

#include "rules/issues.h"
#include "rules/rule_model.h"
#include "rules/rule_quota.h"
#include "rules/yaml_reader.h"

namespace weir::rules {

inline constexpr size_t kMaxListEntries = 100'000;

void ReadList(const YamlNode& node, std::string_view what, std::vector<ListEntry>& list,
              Issues& issues);

// REQUIRES: all rules have been read.
void ReadOverrides(const YamlNode& node, const QuotaContext& context, SetModel& model,
                   Issues& issues);

}  // namespace weir::rules
