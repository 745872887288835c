// One configuration file of envoyproxy/ratelimit, read and checked as far as it can be without the
// others. Accepts what the original accepts, refuses what it refuses, with its words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"
#include "weir/time.h"

#include "envoy/metadata_value.h"

namespace weir::envoy {

// Another limit for some: for the tier or for the value that it names.
struct FileVariant {
  std::string of;
  uint32_t requests_per_unit = 0;
  bool unlimited = false;
  std::optional<WallTime> expires;  // overrides only
};

struct FileRateLimit {
  uint32_t requests_per_unit = 0;
  std::string unit;
  bool unlimited = false;
  std::string name;
  std::vector<std::string> replaces;

  // What the original does not have; a file without these means what it means there.
  std::string algorithm;
  std::string window;
  std::string calendar;
  std::string time_zone;
  uint32_t burst = 0;
  std::optional<bool> count_refused;
  std::string by;  // the entry whose value is the tier
  std::vector<FileVariant> tiers;
  std::vector<FileVariant> overrides;  // by the value of the last entry
};

struct FileDescriptor {
  uint32_t line = 0;  // where it stands in the file, from 1
  std::string key;
  std::string value;
  std::optional<FileRateLimit> rate_limit;
  std::vector<FileDescriptor> descriptors;
  bool shadow_mode = false;
  bool quota_mode = false;
  bool detailed_metric = false;
  bool value_to_metric = false;
  bool share_threshold = false;
  MetadataValue metadata = MetadataValue::Struct();
};

struct DescriptorFile {
  std::string name;
  std::string domain;
  std::vector<FileDescriptor> descriptors;
  // Not in the original.
  std::optional<bool> strict_matching;
  std::optional<bool> all_or_nothing;
};

// The error begins with the file's name.
[[nodiscard]] Result<DescriptorFile> ReadDescriptorFile(std::string_view name,
                                                        std::string_view yaml);

}  // namespace weir::envoy
