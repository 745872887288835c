// A limit of a configuration, in the form that decides.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/limiter.h"
#include "weir/quota.h"
#include "weir/shared_store.h"
#include "weir/time.h"

#include "envoy/metadata_value.h"
#include "envoy/unit.h"

namespace weir::envoy {

class StatPath;

// How much; most rules have one of these, some have others for tiers and for single values.
struct LimitVariant {
  std::string of;  // the tier or the value; empty: all others
  uint32_t requests_per_unit = 0;
  bool unlimited = false;
  std::optional<WallTime> expires;
  // For what is not counted by unit alone: the quota, and the limiter once the rule is in force.
  std::optional<Quota> quota;
  std::shared_ptr<Limiter> limiter;
  const SharedQuota* shared = nullptr;  // the same in a shared store, if there is one
};

struct LimitRule {
  static constexpr uint32_t kNoName = 0;

  std::string full_key;  // the stat path, unless runtime values are part of it
  std::string place;     // where in the configuration it stands; no two are the same
  Unit unit = Unit::kUnknown;
  std::string name;
  uint32_t name_id = kNoName;
  std::vector<uint32_t> replaces;  // ids of names
  bool shadow_mode = false;
  bool quota_mode = false;
  bool detailed_metric = false;
  // Whether a refused hit is counted all the same.
  bool count_refused = true;
  MetadataValue metadata = MetadataValue::Struct();

  LimitVariant all;
  std::string tier_key;  // the entry whose value is the tier
  std::vector<LimitVariant> tiers;
  std::vector<LimitVariant> overrides;

  StatPath* stats = nullptr;  // once the rule is in force
};

}  // namespace weir::envoy
