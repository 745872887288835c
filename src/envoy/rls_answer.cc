// What a decided request is told: statuses, the code over all, header fields, metadata.
#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "envoy/rls_work.h"

namespace weir::envoy {

namespace {

void SetStatus(const Work& work, DescriptorStatus& status) {
  status.code = work.IsCounted() && work.over && !work.shadow_mode ? Code::kOverLimit : Code::kOk;
  status.has_limit = work.IsCounted();
  status.current_limit.requests_per_unit = status.has_limit ? work.limit : 0;
  status.current_limit.unit = status.has_limit ? work.unit : Unit::kUnknown;
  status.current_limit.name.clear();
  if (status.has_limit && work.rule != nullptr) {
    status.current_limit.name.assign(work.rule->name);
  }
  status.limit_remaining = work.kind == Work::Kind::kUnlimited
                               ? std::numeric_limits<uint32_t>::max()
                           : status.has_limit ? work.remaining
                                              : 0;
  status.duration_until_reset = status.has_limit ? work.reset : Duration::zero();
}

// The descriptor that the headers speak of: the last one over its limit, or else the first with the
// least left.
const DescriptorStatus* Closest(const Response& response, std::span<const Work> works,
                                bool global_quota_mode) {
  const DescriptorStatus* closest = nullptr;
  uint32_t least = std::numeric_limits<uint32_t>::max();
  for (size_t i = 0; i < works.size(); ++i) {
    const DescriptorStatus& status = response.statuses[i];
    if (status.has_limit && status.limit_remaining < least) {
      closest = &status;
      least = status.limit_remaining;
    }
    if (status.code == Code::kOverLimit && !global_quota_mode && !works[i].quota_mode) {
      closest = &status;
      least = 0;
    }
  }
  return closest;
}

void SetHeader(std::vector<Header>& headers, size_t index, const std::string& name,
               int64_t number) {
  headers[index].key.assign(name);
  headers[index].value = std::to_string(number);
}

MetadataValue Describe(const Descriptor& descriptor) {
  MetadataValue described = MetadataValue::Struct();
  MetadataValue::List entries;
  for (const Entry& entry : descriptor.entries) {
    entries.push_back({std::string(entry.key) + "=" + std::string(entry.value)});
  }
  described["entries"] = {std::move(entries)};
  if (descriptor.limit.has_value()) {
    std::string text;
    if (descriptor.limit->requests_per_unit != 0) {
      text = "requests_per_unit:" + std::to_string(descriptor.limit->requests_per_unit);
    }
    if (descriptor.limit->unit != Unit::kUnknown) {
      text += (text.empty() ? "unit:" : " unit:") + std::string(ToString(descriptor.limit->unit));
    }
    described["limit"] = {std::move(text)};
  }
  if (descriptor.hits_addend.has_value()) {
    described["hitsAddend"] = {static_cast<double>(*descriptor.hits_addend)};
  }
  return described;
}

MetadataValue DynamicMetadata(const Request& request, const Response& response,
                              std::span<const Work> works) {
  MetadataValue metadata = MetadataValue::Struct();
  metadata["domain"] = {std::string(request.domain)};
  MetadataValue::List descriptors;
  for (const Descriptor& descriptor : request.descriptors) {
    descriptors.push_back(Describe(descriptor));
  }
  metadata["descriptors"] = {std::move(descriptors)};
  if (request.hits_addend != 0) {
    metadata["hitsAddend"] = {static_cast<double>(request.hits_addend)};
  }
  MetadataValue passed = MetadataValue::Struct();
  for (size_t i = 0; i < works.size(); ++i) {
    if (works[i].IsCounted() && works[i].rule != nullptr &&
        response.statuses[i].code == Code::kOk) {
      MergeMetadata(passed, works[i].rule->metadata);
    }
  }
  if (!passed.fields().empty()) {
    metadata["metadata"] = std::move(passed);
  }
  return metadata;
}

}  // namespace

bool IsRefused(std::span<const Work> works, bool global_quota_mode) {
  size_t quotas = 0;
  size_t failed_quotas = 0;
  for (const Work& work : works) {
    if (work.kind == Work::Kind::kUnlimited) {
      continue;
    }
    const bool over = work.over && !work.shadow_mode;
    if (global_quota_mode || work.quota_mode) {
      ++quotas;
      failed_quotas += over ? 1 : 0;
    } else if (over) {
      return true;
    }
  }
  return quotas > 0 && quotas == failed_quotas;
}

void Answer(const RlsOptions& options, const Request& request, std::span<const Work> works,
            RlsStats& stats, Response& response) {
  for (size_t i = 0; i < works.size(); ++i) {
    SetStatus(works[i], response.statuses[i]);
  }
  response.overall_code =
      IsRefused(works, options.global_quota_mode) ? Code::kOverLimit : Code::kOk;
  auto& headers = response.response_headers_to_add;
  const DescriptorStatus* const closest =
      options.response_headers ? Closest(response, works, options.global_quota_mode) : nullptr;
  if (closest == nullptr) {
    headers.clear();
  } else {
    headers.resize(3);  // and not made anew: their text keeps its memory
    SetHeader(headers, 0, options.limit_header, closest->current_limit.requests_per_unit);
    SetHeader(headers, 1, options.remaining_header, closest->limit_remaining);
    SetHeader(
        headers, 2, options.reset_header,
        std::chrono::duration_cast<std::chrono::seconds>(closest->duration_until_reset).count());
  }
  if (response.overall_code == Code::kOverLimit && options.global_shadow_mode) {
    response.overall_code = Code::kOk;
    stats.global_shadow_mode.fetch_add(1, std::memory_order_relaxed);
  }
  if (options.response_dynamic_metadata) {
    response.has_dynamic_metadata = true;
    response.dynamic_metadata = DynamicMetadata(request, response, works);
  }
}

}  // namespace weir::envoy
