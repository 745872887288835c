// Quotas as rules have them: read from `limit` and its neighbours, scaled for tiers, described.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/limiter.h"
#include "weir/quota.h"
#include "weir/rule_set.h"

#include "rules/fields.h"
#include "rules/issues.h"

namespace weir::rules {

inline constexpr size_t kMaxTiers = 64;
inline constexpr size_t kMaxLimits = 16;

[[nodiscard]] RuleQuota MakeRuleQuota(const Quota& quota, Precision precision);

// By how much a tier's limits are those of everybody else, in thousandths.
struct TierFactor {
  std::string tier;
  uint64_t permille = 1000;
};

// "5x", "5", "2.5x", 0.001 to 1,000,000; 0 for anything else.
[[nodiscard]] uint64_t ParseFactor(std::string_view text);

// What the file as a whole says about quotas.
struct QuotaContext {
  std::string default_algorithm;  // empty: that of Quota::Parse
  std::vector<TierFactor> tiers;
};

// The quotas of a rule or an override from its fields limit, limits, burst, algorithm, min-gap,
// time-zone and, if it may have tiers, by. The first variant is for all tiers without their own.
[[nodiscard]] std::vector<RuleVariant> ReadVariants(const Fields& fields,
                                                    const QuotaContext& context,
                                                    Precision precision, std::string_view by,
                                                    Issues& issues);

}  // namespace weir::rules
