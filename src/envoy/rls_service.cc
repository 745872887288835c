#include "envoy/rls_service.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "base/key_hash.h"
#include "envoy/rls_service_state.h"

namespace weir::envoy {

namespace {

using Limiters = std::map<std::string, std::shared_ptr<Limiter>>;

// Logs and the like are records of many bytes.
constexpr int kRecordPercent = 25;
constexpr int kWidePercent = 60;
// So that descriptors and rules of the same name do not count together.
constexpr uint64_t kScopeSeed = 0x726c73;

// Windows of a unit in a shared store; as in memory they count whatever the limit is.
Result<void> BindWindows(SharedStore& store, std::array<const SharedQuota*, kUnits>& windows) {
  for (size_t i = 0; i < kUnits; ++i) {
    const int64_t seconds = SecondsOf(static_cast<Unit>(i));
    if (seconds == 0) {
      continue;
    }
    const auto quota = Quota::FixedWindow(Quota::kMaxLimit, std::chrono::seconds(seconds));
    const auto bound =
        quota ? store.Bind(*quota, base::HashKeySeeded("unit" + std::to_string(i), kScopeSeed))
              : Result<const SharedQuota*>(quota.error());
    if (!bound) {
      return bound.error();
    }
    windows[i] = *bound;
  }
  return {};
}

// The limiter of a variant: the one that had its place before, or a new one. A quota that differs
// is noted, to be changed once nothing can go wrong any more.
Result<void> Bind(LimitVariant& variant, const std::string& place, const Limiters& before,
                  const std::shared_ptr<MemoryStore>& store, SharedStore* shared, Limiters& after,
                  std::vector<LimitVariant*>& changes) {
  if (!variant.quota.has_value()) {
    return {};
  }
  if (shared != nullptr) {
    const auto bound = shared->Bind(*variant.quota, base::HashKeySeeded(place, kScopeSeed));
    if (!bound) {
      return bound.error();
    }
    variant.shared = *bound;
  }
  const auto found = before.find(place);
  if (found != before.end()) {
    variant.limiter = found->second;
    if (!(variant.limiter->quota() == *variant.quota)) {
      changes.push_back(&variant);
    }
  } else {
    auto made = Limiter::Create(*variant.quota, store);
    if (!made) {
      return made.error();
    }
    variant.limiter = std::make_shared<Limiter>(*std::move(made));
  }
  after.emplace(place, variant.limiter);
  return {};
}

}  // namespace

RlsService::RlsService(std::unique_ptr<State> state) : state_(std::move(state)) {}
RlsService::~RlsService() = default;

Result<std::unique_ptr<RlsService>> RlsService::Create(const RlsOptions& options) {
  const Clock& clock = options.clock == nullptr ? SystemClock() : *options.clock;
  auto state = std::make_unique<State>(options, clock);
  // Two thirds for what the original can count, a third for what only weir can.
  const size_t own_bytes = std::max(options.memory_bytes / 3, MemoryStore::kMinBudgetBytes);
  auto counters = CounterTable::Create(options.memory_bytes - options.memory_bytes / 3, clock);
  if (!counters) {
    return counters.error();
  }
  state->counters = *std::move(counters);
  auto store = MemoryStore::Create({.budget_bytes = own_bytes,
                                    .keys = KeyPolicy::kBinary,
                                    .max_skew = std::chrono::seconds(10),
                                    .clock = &clock,
                                    .wide_percent = kWidePercent,
                                    .record_percent = kRecordPercent});
  if (!store) {
    return store.error();
  }
  state->own_store = *std::move(store);
  if (options.shared != nullptr) {
    if (auto bound = BindWindows(*options.shared, state->windows); !bound) {
      return bound.error();
    }
  }
  return std::unique_ptr<RlsService>(new RlsService(std::move(state)));
}

Result<void> RlsService::Load(std::span<const ConfigFile> files) {
  State& state = *state_;
  const base::MutexLock lock(state.mutex);
  const auto fail = [&state](const Error& error) -> Result<void> {
    state.stats.config_load_error.fetch_add(1, std::memory_order_relaxed);
    return error;
  };
  std::vector<DescriptorFile> read;
  for (const ConfigFile& file : files) {
    auto one = ReadDescriptorFile(file.name, file.yaml);
    if (!one) {
      return fail(one.error());
    }
    read.push_back(*std::move(one));
  }
  auto config =
      DescriptorConfig::Load(read, {.merge_domain_configs = state.options.merge_domain_configs,
                                    .strict_matching = state.options.strict_matching,
                                    .all_or_nothing = state.options.all_or_nothing});
  if (!config) {
    return fail(config.error());
  }
  Result<void> bound;
  Limiters limiters;
  std::vector<LimitVariant*> changes;
  const Limiters before = state.limiters;  // a lambda is not told that the mutex is held
  (*config)->ForEachRule([&](LimitRule& rule) {
    rule.stats = &state.stats.PathOf(rule.full_key);
    const auto bind = [&](LimitVariant& variant, std::string_view kind) {
      const std::string place = rule.place + "\n\n" + std::string(kind) + variant.of;
      if (bound) {
        bound = Bind(variant, place, before, state.own_store, state.options.shared.get(), limiters,
                     changes);
      }
    };
    bind(rule.all, "");
    for (LimitVariant& variant : rule.tiers) {
      bind(variant, "tier ");
    }
    for (LimitVariant& variant : rule.overrides) {
      bind(variant, "value ");
    }
  });
  if (!bound) {
    return fail(bound.error());
  }
  std::shared_ptr<DescriptorConfig> other = *std::move(config);
  state.gate.Exclusively([&] {
    for (LimitVariant* const variant : changes) {
      // Refused only if it has been changed too often within a moment: the old quota then stays
      // until the next load.
      (void)variant->limiter->Update(*variant->quota);
    }
    std::swap(state.config, other);
  });
  state.limiters = std::move(limiters);
  state.stats.config_load_success.fetch_add(1, std::memory_order_relaxed);
  return {};  // what was in force is freed here, with the gate open again
}

namespace {

class Inside {
 public:
  explicit Inside(base::ReaderGate& gate) noexcept : gate_(gate), outer_(gate.Enter()) {}
  ~Inside() { gate_.Leave(outer_); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  base::ReaderGate& gate_;
  const void* outer_;
};

}  // namespace

void RlsService::ShouldRateLimit(const Request& request, Response& response) noexcept {
  if (state_->options.shared == nullptr) {
    const Inside inside(state_->gate);
    state_->Decide(state_->config.get(), request, response);
    return;
  }
  // It may take long, so nobody who loads waits for it.
  std::shared_ptr<DescriptorConfig> config;
  {
    const Inside inside(state_->gate);
    config = state_->config;
  }
  state_->Decide(config.get(), request, response);
}

bool RlsService::has_config() const noexcept {
  const Inside inside(state_->gate);
  return state_->config != nullptr;
}

bool RlsService::has_domains() const noexcept {
  const Inside inside(state_->gate);
  return state_->config != nullptr && !state_->config->empty();
}

std::string RlsService::DumpConfig() const {
  const Inside inside(state_->gate);
  return state_->config == nullptr ? std::string() : state_->config->Dump();
}

RlsStats& RlsService::stats() noexcept {
  return state_->stats;
}

}  // namespace weir::envoy
