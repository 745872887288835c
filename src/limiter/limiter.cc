#include "weir/limiter.h"

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

}  // namespace

Limiter::Limiter(std::unique_ptr<State> state) : state_(std::move(state)) {}
Limiter::Limiter(Limiter&&) noexcept = default;
Limiter& Limiter::operator=(Limiter&&) noexcept = default;
Limiter::~Limiter() = default;

Result<Limiter> Limiter::Create(const Quota& quota, MemoryOptions options) {
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
  return Create(quota, *std::move(store));
}

Result<Limiter> Limiter::Create(const Quota& quota, std::shared_ptr<MemoryStore> store) {
  if (store == nullptr) {
    return Error::Invalid("store: nullptr is not allowed; make one with MemoryStore::Create");
  }
  auto binding = store->state().Bind(quota);
  if (!binding) {
    return binding.error();
  }
  return Limiter(std::make_unique<State>(std::move(store), *binding, quota));
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
