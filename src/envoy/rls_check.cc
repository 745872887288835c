// One request: which limits it meets, what they have counted, and what that comes to.
//
// By default every limit is counted, as the original does, whether or not another one refuses. All
// or nothing looks first, and counts only if the request passes; what a race then pushes over a
// limit is given back. A limit in shadow mode is counted as if it were alone either way.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/pool.h"
#include "envoy/rls_service_state.h"
#include "envoy/rls_work.h"

namespace weir::envoy {

namespace {

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

// Decides one request with the memory of its thread.
class Check {
 public:
  Check(RlsService::State& state, Scratch& scratch)
      : options_(state.options),
        clock_(state.clock),
        stats_(state.stats),
        counters_(*state.counters),
        windows_(state.windows),
        scratch_(scratch),
        now_(clock_.Now()),
        unix_s_(counters_.UnixSeconds(now_)) {}

  // False: a limit that the client brought along makes no sense.
  bool FindLimits(const Request& request, const Domain* domain) {
    scratch_.works.clear();
    scratch_.keys.clear();
    scratch_.replaced.clear();
    // So that memory is read for all of them at the same time, and not for one after the other.
    is_fetched_ahead_ = request.descriptors.size() > 1 && options_.shared == nullptr;
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

  // The same in a shared store, which is asked for all at once. False: it could not be asked.
  bool CountEachShared() {
    const auto all = [](const Work&) { return true; };
    if (!AskShared(all, /*look=*/false)) {
      return false;
    }
    for (Work& work : scratch_.works) {
      if (work.IsCounted() && work.over && !work.count_refused) {
        GiveBackShared(work);
      }
    }
    return true;
  }

  bool CountAllOrNothingShared() {
    if (!AskShared([](const Work&) { return true; }, /*look=*/true)) {
      return false;
    }
    const bool refused = IsRefused(scratch_.works, options_.global_quota_mode);
    const auto is_charged = [refused](const Work& work) {
      return work.shadow_mode || (!refused && !work.over);
    };
    if (!AskShared(is_charged, /*look=*/false)) {
      return false;
    }
    if (!refused && IsRefused(scratch_.works, options_.global_quota_mode)) {
      for (Work& work : scratch_.works) {
        if (work.IsCounted() && !work.shadow_mode) {
          GiveBackShared(work);
        }
      }
    }
    return true;
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
    work.shared = variant.shared;
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
    if (!is_fetched_ahead_) {
      return;
    }
    if (work.kind == Work::Kind::kWindow) {
      counters_.Prefetch(work.unit, KeyOf(work));
    } else {
      work.limiter->Prefetch(KeyOf(work));
    }
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

  [[nodiscard]] ChargeMode ModeOf(const Work& work, bool look) const {
    return look                               ? ChargeMode::kDryRun
           : work.kind == Work::Kind::kWindow ? ChargeMode::kCountAlways
           : work.hits == 0                   ? ChargeMode::kDryRun
           : work.count_refused               ? ChargeMode::kCountAlways
                                              : ChargeMode::kAdmit;
  }

  // One question for each mode that is wanted, which is one as a rule. Each limit is for itself.
  template <class Wanted>
  bool AskShared(const Wanted& is_wanted, bool look) {
    for (const ChargeMode mode :
         {ChargeMode::kDryRun, ChargeMode::kCountAlways, ChargeMode::kAdmit}) {
      scratch_.asks.clear();
      const auto is_asked = [&](const Work& work) {
        return work.IsCounted() && is_wanted(work) && ModeOf(work, look) == mode;
      };
      for (const Work& work : scratch_.works) {
        if (!is_asked(work)) {
          continue;
        }
        const bool window = work.kind == Work::Kind::kWindow;
        const uint64_t hits = window && look ? 0 : std::min(work.hits, Cost::kMax);
        scratch_.asks.push_back(
            {.quota = window ? windows_[static_cast<size_t>(work.unit)] : work.shared,
             .key = KeyOf(work),
             .cost = hits,
             .apart = true,
             .on_failure = OnStoreFailure::kDeny});
      }
      if (scratch_.asks.empty()) {
        continue;
      }
      SharedRequest request{.asks = scratch_.asks, .mode = mode, .keep_receipts = !look};
      options_.shared->Decide(request);
      const SharedAsk* ask = scratch_.asks.data();
      for (Work& work : scratch_.works) {
        if (is_asked(work) && !TakeShared(*ask++, look, work)) {
          return false;
        }
      }
    }
    return true;
  }

  bool TakeShared(const SharedAsk& ask, bool look, Work& work) const {
    if (ask.trouble != StoreTrouble::kNone) {
      return false;
    }
    work.shared_receipt = ask.receipt;
    if (work.kind == Work::Kind::kOwnQuota) {
      SetOwn(work, ask.decision);
      return true;
    }
    const uint64_t used = ask.decision.limit - ask.decision.remaining;
    const uint64_t after = used + (look ? work.hits : 0);
    SetCount(work, {.before = after - std::min(after, work.hits), .after = after});
    if (look && !work.over) {
      work.remaining = work.limit - static_cast<uint32_t>(std::min<uint64_t>(work.limit, used));
    }
    if (ask.decision.reset_after > Duration::zero()) {
      work.reset = WholeSeconds(ask.decision.reset_after);  // by the store's clock
    }
    return true;
  }

  void GiveBackShared(Work& work) {
    if (work.shared_receipt.charged != 0) {
      options_.shared->GiveBack({&work.shared_receipt, 1});
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
    SetOwn(work, decision);
  }

  static void SetOwn(Work& work, const Decision& decision) {
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
  const std::array<const SharedQuota*, kUnits>& windows_;
  Scratch& scratch_;
  const Timestamp now_;
  const int64_t unix_s_;
  bool is_fetched_ahead_ = false;
};

void Refuse(Response& response, std::string_view error) {
  response.failure = Failure::kRequest;
  response.error.assign(error);
}

}  // namespace

void RlsService::State::Decide(const DescriptorConfig* by, const Request& request,
                               Response& response) {
  // Several at a time where requests wait for a store.
  thread_local base::Pool<Scratch> scratches;
  const base::Pool<Scratch>::Lease scratch(scratches);
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
  if (by == nullptr) {
    refuse("no rate limit configuration loaded");
    return;
  }
  const Domain* const domain = by->FindDomain(request.domain);
  Check check(*this, *scratch);
  if (!check.FindLimits(request, domain)) {
    refuse("limit override of a descriptor has no valid unit");
    return;
  }
  const bool together = domain != nullptr && domain->all_or_nothing;
  if (options.shared != nullptr) {
    if (!(together ? check.CountAllOrNothingShared() : check.CountEachShared())) {
      stats.redis_error.fetch_add(1, std::memory_order_relaxed);
      response.statuses.clear();
      response.failure = Failure::kStore;
      response.error.assign("the store that counts is out of reach");
      return;
    }
  } else if (together) {
    check.CountAllOrNothing();
  } else {
    check.CountEach();
  }
  check.CountStatistics();
  Answer(options, request, check.works(), stats, response);
}

}  // namespace weir::envoy
