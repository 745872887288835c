#include "weir/limiter.h"

#include <bit>
#include <string>
#include <utility>

#include "limiter/limiter_state.h"
#include "store/memory/engine.h"

namespace weir {

namespace {

Decision Refused(store::SharedState& shared, const store::Binding& binding,
                 Problem problem) noexcept {
  shared.counters.Get().Add(&store::CounterCell::refusals, 1);
  return store::Refused(problem, binding.plan().burst);
}

Decision NowTooFar(store::SharedState& shared, const store::Binding& binding) noexcept {
  return Refused(shared, binding, Problem::kNowTooFar);
}

Result<void> Validate(const LimiterOptions& own) {
  using store::Watch;
  if (own.top_keys > Watch::kCountersMax) {
    return Error::Invalid("top_keys: " + std::to_string(own.top_keys) +
                          " is not allowed; the most is " + std::to_string(Watch::kCountersMax));
  }
  if (!std::has_single_bit(own.top_keys_sample) || own.top_keys_sample > Watch::kSampleMax) {
    return Error::Invalid("top_keys_sample: " + std::to_string(own.top_keys_sample) +
                          " is not allowed; choose a power of two from 1 to " +
                          std::to_string(Watch::kSampleMax));
  }
  return {};
}

}  // namespace

Limiter::Limiter(std::unique_ptr<State> state) : state_(std::move(state)) {}
Limiter::Limiter(Limiter&&) noexcept = default;
Limiter& Limiter::operator=(Limiter&&) noexcept = default;
Limiter::~Limiter() = default;

Result<Limiter> Limiter::Create(const Quota& quota, MemoryOptions options,
                                const LimiterOptions& own) {
  if (options.sketch_percent == -1 && own.precision == Precision::kSketch) {
    options.sketch_percent = 25;
  }
  if (options.overflow == OverflowPolicy::kSketch && quota.algorithm() == Algorithm::kConcurrency) {
    options.overflow = OverflowPolicy::kDeny;  // what it comes to for holds, without the memory
  }
  if (options.record_percent == -1) {
    options.record_percent = algorithm::NeedsRecord(quota) ? 100 : 0;
  }
  if (options.wide_percent == -1) {
    options.wide_percent = algorithm::FitsCompact(quota) ? 0 : 100;
  }
  auto store = MemoryStore::Create(options);
  if (!store) {
    return store.error();
  }
  return Create(quota, *std::move(store), own);
}

Result<Limiter> Limiter::Create(const Quota& quota, std::shared_ptr<MemoryStore> store,
                                const LimiterOptions& own) {
  if (store == nullptr) {
    return Error::Invalid("store: nullptr is not allowed; make one with MemoryStore::Create");
  }
  if (auto valid = Validate(own); !valid) {
    return valid.error();
  }
  std::unique_ptr<store::Watch> watch;
  if (own.top_keys != 0) {
    watch = std::make_unique<store::Watch>(own.top_keys, own.top_keys_sample);
  }
  auto binding = store->state().Bind(
      quota, {.sketch_first = own.precision == Precision::kSketch, .watch = watch.get()});
  if (!binding) {
    return binding.error();
  }
  return Limiter(std::make_unique<State>(std::move(store), *binding, quota, std::move(watch)));
}

// A jump: the arguments are where the engine wants them.
bool Limiter::TryCheck(std::string_view key, uint64_t cost, Decision& decision) noexcept {
  store::Binding& binding = state_->current();
  return binding.ops.try_check_now(binding, key, cost, decision);
}

bool Limiter::TryCheck(std::string_view key, Timestamp now, uint64_t cost,
                       Decision& decision) noexcept {
  store::Binding& binding = state_->current();
  return binding.ops.try_check(binding, key, now, cost, decision);
}

void Limiter::CheckSlowly(std::string_view key, uint64_t cost, Decision& decision) noexcept {
  store::Binding& binding = state_->current();
  binding.ops.check(binding, key, cost, state_->shared.ReadClock(), decision);
}

void Limiter::CheckSlowly(std::string_view key, Timestamp now, uint64_t cost,
                          Decision& decision) noexcept {
  store::Binding& binding = state_->current();
  uint64_t now_ns = 0;
  if (state_->shared.Admit(now, now_ns)) {
    binding.ops.check(binding, key, cost, now_ns, decision);
  } else {
    decision = NowTooFar(state_->shared, binding);
  }
}

void Limiter::Prefetch(std::string_view key) const noexcept {
  const store::SharedState& shared = state_->shared;
  const store::Binding& binding = state_->current();
  if (binding.homes.count != 0) {  // those in records are found by a walk
    const uint64_t hash = base::HashKey(key, shared.secret);
    __builtin_prefetch(&binding.homes.Of(base::MixHash(hash, binding.salt)), 1, 3);
  }
}

PreparedKey Limiter::Prepare(std::string_view key) const noexcept {
  const store::SharedState& shared = state_->shared;
  const Problem problem = store::CheckKey(shared, key);
  if (problem != Problem::kNone) {
    return {0, 0, problem};
  }
  return {base::HashKey(key, shared.secret), base::HashKeySeeded(key, shared.options.fleet_secret),
          problem};
}

bool Limiter::TryCheck(const PreparedKey& key, Timestamp now, uint64_t cost,
                       Decision& decision) noexcept {
  store::Binding& binding = state_->current();
  return key.problem_ == Problem::kNone &&
         binding.ops.try_check_hashed(binding, key.hash_, now, cost, decision);
}

void Limiter::CheckSlowly(const PreparedKey& key, Timestamp now, uint64_t cost,
                          Decision& decision) noexcept {
  store::SharedState& shared = state_->shared;
  store::Binding& binding = state_->current();
  uint64_t now_ns = 0;
  if (!shared.Admit(now, now_ns)) {
    decision = NowTooFar(shared, binding);
  } else if (key.problem_ != Problem::kNone) {
    shared.counters.Get().Add(&store::CounterCell::refusals, 1);
    decision = store::Refused(key.problem_, binding.plan().burst);
  } else {
    binding.ops.check_hashed(binding, {key.hash_, key.phase_}, cost, now_ns, decision);
  }
}

Decision Limiter::Check(std::string_view key, const CheckOptions& options) noexcept {
  store::SharedState& shared = state_->shared;
  store::Binding& binding = state_->current();
  uint64_t now_ns = 0;
  if (options.max_wait < Duration::zero()) [[unlikely]] {
    if (options.receipt != nullptr) {
      *options.receipt = Receipt{};
    }
    return Refused(shared, binding, Problem::kMaxWaitTooShort);
  }
  if (options.now.has_value()) {
    if (!shared.Admit(*options.now, now_ns)) [[unlikely]] {
      if (options.receipt != nullptr) {
        *options.receipt = Receipt{};
      }
      return NowTooFar(shared, binding);
    }
  } else {
    now_ns = shared.ReadClock();
  }
  const uint64_t max_wait_ns = options.max_wait == Duration::max()
                                   ? store::Request::kAnyWait
                                   : static_cast<uint64_t>(options.max_wait.count());
  Decision decision;
  binding.ops.charge(binding, key, {options.cost.units, options.mode, options.receipt, max_wait_ns},
                     now_ns, decision);
  return decision;
}

void Limiter::CheckMany(std::span<const std::string_view> keys, std::span<Decision> decisions,
                        Cost cost) noexcept {
  store::Binding& binding = state_->current();
  binding.ops.check_many(binding, keys.data(), keys.size(), cost.units, state_->shared.ReadClock(),
                         decisions.data());
}

void Limiter::CheckMany(std::span<const std::string_view> keys, Timestamp now,
                        std::span<Decision> decisions, Cost cost) noexcept {
  store::SharedState& shared = state_->shared;
  store::Binding& binding = state_->current();
  uint64_t now_ns = 0;
  if (!shared.Admit(now, now_ns)) [[unlikely]] {
    for (size_t i = 0; i < keys.size(); ++i) {
      decisions[i] = NowTooFar(shared, binding);
    }
    return;
  }
  binding.ops.check_many(binding, keys.data(), keys.size(), cost.units, now_ns, decisions.data());
}

Decision Limiter::TakeUpTo(std::string_view key, Cost most) noexcept {
  return Check(key, CheckOptions{.cost = most, .mode = ChargeMode::kUpTo});
}

uint32_t Limiter::GiveBack(Receipt& receipt) noexcept {
  store::Binding& binding = state_->current();
  return binding.ops.give_back(binding, receipt, state_->shared.ReadClock()).units;
}

uint32_t Limiter::GiveBack(Receipt& receipt, Timestamp now) noexcept {
  store::SharedState& shared = state_->shared;
  store::Binding& binding = state_->current();
  uint64_t now_ns = 0;
  return shared.Admit(now, now_ns) ? binding.ops.give_back(binding, receipt, now_ns).units : 0;
}

Quota Limiter::quota() const {
  const base::MutexLock lock(state_->mutex);
  return state_->quota;
}

const std::shared_ptr<MemoryStore>& Limiter::store() const noexcept {
  return state_->store;
}

Timestamp Limiter::Now() const noexcept {
  return state_->shared.clock.source().Now();
}

}  // namespace weir
