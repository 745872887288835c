// One request: which limits it meets, what they have counted, and what that comes to.
//
// By default every limit is counted, as the original does, whether or not another one refuses. All
// or nothing looks first, and counts only if the request passes; what a race then pushes over a
// limit is given back. A limit in shadow mode is counted as if it were alone either way.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "envoy/rls_service_state.h"

namespace weir::envoy {

namespace {

// One descriptor of a request.
struct Work {
  enum class Kind : uint8_t { kNoLimit, kUnlimited, kWindow, kOwnQuota };

  Kind kind = Kind::kNoLimit;
  bool shadow_mode = false;
  bool quota_mode = false;
  bool count_refused = true;
  const LimitRule* rule = nullptr;  // nullptr with a limit: the client brought it along
  Limiter* limiter = nullptr;       // of an own quota
  StatPath* stats = nullptr;
  uint32_t limit = 0;
  Unit unit = Unit::kUnknown;
  uint64_t hits = 0;
  size_t key_begin = 0;
  size_t key_size = 0;

  // The outcome.
  bool over = false;
  uint32_t remaining = 0;
  Count count;
  uint64_t against = 0;  // what the count is compared with
  Duration reset{};
  Receipt receipt;

  [[nodiscard]] bool IsCounted() const { return kind == Kind::kWindow || kind == Kind::kOwnQuota; }
};

// Memory of one thread, used again.
struct Scratch {
  std::vector<Work> works;
  std::string keys;
  std::string path;
  LookUp found;
  std::vector<uint32_t> replaced;
};

Duration WholeSeconds(Duration duration) {
  return std::chrono::ceil<std::chrono::seconds>(duration);
}

const LimitVariant& VariantOf(const LimitRule& rule, std::span<const Entry> entries,
                              const Clock& clock) {
  for (const LimitVariant& variant : rule.overrides) {
    if (variant.of == entries.back().value &&
        (!variant.expires.has_value() || clock.WallNow() < *variant.expires)) {
      return variant;
    }
  }
  for (const Entry& entry : entries) {
    if (rule.tiers.empty()) {
      break;
    }
    if (entry.key == rule.tier_key) {
      for (const LimitVariant& variant : rule.tiers) {
        if (variant.of == entry.value) {
          return variant;
        }
      }
    }
  }
  return rule.all;
}

// Which part of the hits was over the limit, and which near it.
HitCounts Judge(const Work& work, float near_limit_ratio, bool local_cache) {
  HitCounts hits{.total_hits = work.hits};
  const uint64_t limit = work.against;
  const auto [before, after] = work.count;
  // In single precision, as the original has it.
  const auto near = static_cast<uint64_t>(std::floor(static_cast<float>(limit) * near_limit_ratio));
  if (work.over) {
    hits.over_limit = before >= limit ? work.hits : after - limit;
    hits.near_limit = before >= limit ? 0 : limit - std::min(limit, std::max(near, before));
    // Somebody has found it over the limit before: the original would have remembered that.
    hits.over_limit_with_local_cache = local_cache && before > limit ? work.hits : 0;
    hits.shadow_mode = work.shadow_mode ? hits.over_limit : 0;
    return hits;
  }
  hits.within_limit = work.hits;
  if (after > near) {
    hits.near_limit = before >= near ? work.hits : after - near;
  }
  return hits;
}

// The request as a whole, by the outcomes so far.
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

// Decides one request with the memory of its thread.
class Check {
 public:
  Check(const RlsOptions& options, const Clock& clock, RlsStats& stats, CounterTable& counters,
        Scratch& scratch)
      : options_(options),
        clock_(clock),
        stats_(stats),
        counters_(counters),
        scratch_(scratch),
        now_(clock.Now()),
        unix_s_(counters.UnixSeconds(now_)) {}

  // False: a limit that the client brought along makes no sense.
  bool FindLimits(const Request& request, const Domain* domain) {
    scratch_.works.clear();
    scratch_.keys.clear();
    scratch_.replaced.clear();
    for (const Descriptor& descriptor : request.descriptors) {
      Work& work = scratch_.works.emplace_back();
      work.hits = descriptor.hits_addend.value_or(std::max<uint64_t>(request.hits_addend, 1));
      if (domain == nullptr) {
        stats_.CountUnknownDomain(request.domain);
      } else if (descriptor.limit.has_value()) {
        if (SecondsOf(descriptor.limit->unit) == 0) {
          return false;
        }
        TakeOverride(*domain, descriptor, work);
      } else {
        TakeConfigured(*domain, descriptor, work);
      }
    }
    for (Work& work : scratch_.works) {
      if (work.IsCounted() && work.rule != nullptr && work.rule->name_id != LimitRule::kNoName &&
          std::find(scratch_.replaced.begin(), scratch_.replaced.end(), work.rule->name_id) !=
              scratch_.replaced.end()) {
        work.kind = Work::Kind::kNoLimit;
        work.quota_mode = false;
      }
    }
    return true;
  }

  void CountEach() {
    for (Work& work : scratch_.works) {
      if (work.IsCounted()) {
        Charge(work);
        if (work.over && !work.count_refused) {
          GiveBack(work);
        }
      }
    }
  }

  void CountAllOrNothing() {
    for (Work& work : scratch_.works) {
      if (work.IsCounted()) {
        Look(work);
      }
    }
    bool refused = IsRefused(scratch_.works, options_.global_quota_mode);
    for (Work& work : scratch_.works) {
      // What is over by itself is not counted: of quotas in quota_mode some may be.
      if (work.IsCounted() && (work.shadow_mode || (!refused && !work.over))) {
        Charge(work);
      }
    }
    // Lost to another thread, or to another descriptor of the same key, in between.
    if (!refused && IsRefused(scratch_.works, options_.global_quota_mode)) {
      for (Work& work : scratch_.works) {
        if (work.IsCounted() && !work.shadow_mode) {
          GiveBack(work);
        }
      }
    }
  }

  void CountStatistics() {
    for (const Work& work : scratch_.works) {
      if (work.IsCounted()) {
        work.stats->Add(
            Judge(work, static_cast<float>(options_.near_limit_ratio), options_.local_cache));
      }
    }
  }

  [[nodiscard]] std::span<const Work> works() const { return scratch_.works; }

 private:
  [[nodiscard]] std::string_view KeyOf(const Work& work) const {
    return std::string_view(scratch_.keys).substr(work.key_begin, work.key_size);
  }

  void TakeOverride(const Domain& domain, const Descriptor& descriptor, Work& work) {
    work.kind = Work::Kind::kWindow;
    work.limit = descriptor.limit->requests_per_unit;
    work.unit = descriptor.limit->unit;
    scratch_.path.clear();
    AppendOverridePath(scratch_.path, domain.name, descriptor.entries);
    work.stats = stats_.RuntimePathOf(scratch_.path);
    if (work.stats == nullptr) {
      work.stats = &stats_.PathOf(domain.name);
    }
    SetKey(domain, descriptor.entries, {}, work);
  }

  void TakeConfigured(const Domain& domain, const Descriptor& descriptor, Work& work) {
    LookUp& found = scratch_.found;
    DescriptorConfig::Find(domain, descriptor.entries, found);
    if (found.rule == nullptr) {
      return;
    }
    const LimitRule& rule = *found.rule;
    work.rule = &rule;
    scratch_.replaced.insert(scratch_.replaced.end(), rule.replaces.begin(), rule.replaces.end());
    const LimitVariant& variant = VariantOf(rule, descriptor.entries, clock_);
    if (variant.unlimited) {
      work.kind = Work::Kind::kUnlimited;
      return;
    }
    work.kind = variant.limiter == nullptr ? Work::Kind::kWindow : Work::Kind::kOwnQuota;
    work.limiter = variant.limiter.get();
    work.limit = variant.requests_per_unit;
    work.unit = rule.unit;
    work.shadow_mode = rule.shadow_mode;
    work.quota_mode = rule.quota_mode;
    work.count_refused = rule.count_refused;
    work.stats = rule.stats;
    if (found.runtime_path && found.stats_key != rule.full_key) {
      StatPath* const path = stats_.RuntimePathOf(found.stats_key);
      work.stats = path == nullptr ? rule.stats : path;
    }
    SetKey(domain, descriptor.entries, found.share_patterns, work);
  }

  void SetKey(const Domain& domain, std::span<const Entry> entries,
              std::span<const std::string_view> patterns, Work& work) {
    work.key_begin = scratch_.keys.size();
    AppendCounterKey(scratch_.keys, options_.cache_key_prefix, domain.name, entries, patterns,
                     domain.strict_matching);
    work.key_size = scratch_.keys.size() - work.key_begin;
  }

  void Charge(Work& work) {
    if (work.kind == Work::Kind::kOwnQuota) {
      AskOwn(work, work.hits == 0       ? ChargeMode::kDryRun
                   : work.count_refused ? ChargeMode::kCountAlways
                                        : ChargeMode::kAdmit);
      return;
    }
    SetCount(work,
             counters_.Add(work.unit, KeyOf(work), work.hits, work.limit, now_, &work.receipt));
  }

  // What a charge would come to.
  void Look(Work& work) {
    if (work.kind == Work::Kind::kOwnQuota) {
      AskOwn(work, ChargeMode::kDryRun);
      return;
    }
    Count count = counters_.Add(work.unit, KeyOf(work), 0, work.limit, now_);
    const uint32_t left =
        work.limit - static_cast<uint32_t>(std::min<uint64_t>(work.limit, count.after));
    count.after += work.hits;
    SetCount(work, count);
    work.remaining = work.over ? 0 : left;  // nothing has been taken yet
  }

  void GiveBack(Work& work) {
    if (work.kind == Work::Kind::kOwnQuota) {
      if (work.receipt.charged != 0) {
        work.limiter->GiveBack(work.receipt, now_);
      }
    } else {
      counters_.GiveBack(work.unit, work.receipt, now_);
    }
  }

  void SetCount(Work& work, Count count) const {
    work.count = count;
    work.against = work.limit;
    work.over = count.after > work.limit;
    work.remaining =
        work.limit - static_cast<uint32_t>(std::min<uint64_t>(work.limit, count.after));
    const int64_t length = SecondsOf(work.unit);
    work.reset = std::chrono::seconds(length - unix_s_ % length);
  }

  void AskOwn(Work& work, ChargeMode mode) {
    work.receipt = {};
    const CheckOptions options{.cost = std::min(work.hits, Cost::kMax),
                               .mode = mode,
                               .now = now_,
                               .receipt = &work.receipt};
    Decision decision = work.limiter->Check(KeyOf(work), options);
    if (decision.problem == Problem::kNowTooFar) [[unlikely]] {
      decision = work.limiter->Check(
          KeyOf(work), CheckOptions{.cost = options.cost, .mode = mode, .receipt = &work.receipt});
    }
    work.over = !decision.allowed();
    work.remaining = decision.remaining;
    work.against = decision.limit;
    const uint64_t used = decision.limit - std::min(decision.limit, decision.remaining);
    work.count.after = work.over ? decision.limit + work.hits : used;
    work.count.before = work.count.after - std::min(work.count.after, work.hits);
    work.reset = WholeSeconds(work.over ? decision.retry_after : decision.reset_after);
  }

  const RlsOptions& options_;
  const Clock& clock_;
  RlsStats& stats_;
  CounterTable& counters_;
  Scratch& scratch_;
  const Timestamp now_;
  const int64_t unix_s_;
};

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

void Refuse(Response& response, std::string_view error) {
  response.failure = Failure::kRequest;
  response.error.assign(error);
}

}  // namespace

void RlsService::State::Decide(const Request& request, Response& response) {
  thread_local Scratch scratch;
  response.failure = Failure::kNone;
  response.error.clear();
  response.overall_code = Code::kUnknown;
  response.statuses.resize(request.descriptors.size());
  response.has_dynamic_metadata = false;
  const auto refuse = [&](std::string_view error) {
    stats.service_error.fetch_add(1, std::memory_order_relaxed);
    response.statuses.clear();
    response.response_headers_to_add.clear();
    Refuse(response, error);
  };
  if (request.domain.empty()) {
    refuse("rate limit domain must not be empty");
    return;
  }
  if (request.descriptors.empty()) {
    refuse("rate limit descriptor list must not be empty");
    return;
  }
  if (config == nullptr) {
    refuse("no rate limit configuration loaded");
    return;
  }
  const Domain* const domain = config->FindDomain(request.domain);
  Check check(options, clock, stats, *counters, scratch);
  if (!check.FindLimits(request, domain)) {
    refuse("limit override of a descriptor has no valid unit");
    return;
  }
  if (domain != nullptr && domain->all_or_nothing) {
    check.CountAllOrNothing();
  } else {
    check.CountEach();
  }
  check.CountStatistics();
  const std::span<const Work> works = check.works();
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
