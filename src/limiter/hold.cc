// Holds: acquiring is a charge with a receipt, releasing gives it back.
#include "weir/hold.h"

#include <utility>

#include "weir/limiter.h"

#include "limiter/limiter_state.h"
#include "store/memory/engine.h"
#include "store/memory/record_engine.h"
#include "store/memory/watch.h"

namespace weir {

namespace {

Decision Refuse(Limiter::State& state, Problem problem) noexcept {
  state.shared.counters.Get().Add(&store::CounterCell::refusals, 1);
  return store::Refused(problem, state.current().plan().burst);
}

// In nanoseconds, 0 for the quota's own; false if it is out of range.
bool ReadLease(const std::optional<Duration>& lease, uint64_t& lease_ns) noexcept {
  lease_ns = 0;
  if (!lease.has_value()) {
    return true;
  }
  lease_ns = static_cast<uint64_t>(lease->count());
  return *lease >= Quota::kMinWindow && *lease <= Quota::kMaxLease;
}

bool IsConcurrency(const store::Binding& binding) noexcept {
  return binding.plan().algorithm == Algorithm::kConcurrency;
}

// What is the same for all keys of a call, or why it cannot be done.
Problem SetUp(Limiter::State& state, const AcquireOptions& options, store::Request& request,
              uint64_t& now_ns) noexcept {
  if (!IsConcurrency(state.current())) {
    return Problem::kWrongQuota;
  }
  if (!ReadLease(options.lease, request.lease_ns)) {
    return Problem::kLeaseOutOfRange;
  }
  return state.ReadNow(options.now, now_ns) ? Problem::kNone : Problem::kNowTooFar;
}

}  // namespace

Acquired Limiter::Acquire(std::string_view key, const AcquireOptions& options) noexcept {
  Acquired acquired;
  store::Binding& binding = state_->current();
  store::Request request{.cost = options.cost.units, .receipt = &acquired.hold.receipt};
  uint64_t now_ns = 0;
  if (const Problem problem = SetUp(*state_, options, request, now_ns); problem == Problem::kNone) {
    binding.ops.charge(binding, key, request, now_ns, acquired.decision);
  } else {
    acquired.decision = Refuse(*state_, problem);
  }
  return acquired;
}

void Limiter::AcquireMany(std::span<const std::string_view> keys, std::span<Acquired> acquired,
                          const AcquireOptions& options) noexcept {
  store::Request request{.cost = options.cost.units};
  uint64_t now_ns = 0;
  if (const Problem problem = SetUp(*state_, options, request, now_ns); problem == Problem::kNone) {
    store::Binding& binding = state_->current();
    store::AcquireMany(binding, keys.data(), keys.size(), request, now_ns, acquired.data());
    for (size_t i = 0; binding.watch != nullptr && request.cost != 0 && i < keys.size(); ++i) {
      binding.watch->Note(binding, keys[i], acquired[i].decision);
    }
  } else {
    for (size_t i = 0; i < keys.size(); ++i) {
      acquired[i] = Acquired{.decision = Refuse(*state_, problem), .hold = {}};
    }
  }
}

bool Limiter::Release(const Hold& hold, std::optional<Timestamp> now) noexcept {
  store::Binding& binding = state_->current();
  if (!IsConcurrency(binding)) {
    return false;
  }
  uint64_t now_ns = 0;
  if (!state_->ReadNow(now, now_ns)) {
    now_ns = state_->shared.ReadClock();  // what is not needed any more must not stay held
  }
  Receipt receipt = hold.receipt;
  return binding.ops.give_back(binding, receipt, now_ns).changed;
}

bool Limiter::Renew(const Hold& hold, const RenewOptions& options) noexcept {
  store::Binding& binding = state_->current();
  uint64_t lease_ns = 0;
  uint64_t now_ns = 0;
  return IsConcurrency(binding) && ReadLease(options.lease, lease_ns) &&
         state_->ReadNow(options.now, now_ns) &&
         store::RenewHold(binding, hold.receipt, lease_ns, now_ns);
}

ScopedHold& ScopedHold::operator=(ScopedHold&& other) noexcept {
  if (this != &other) {
    Release();
    limiter_ = other.limiter_;
    acquired_ = other.Detach();
  }
  return *this;
}

bool ScopedHold::Release() noexcept {
  return limiter_->Release(std::exchange(acquired_.hold, Hold{}));
}

bool ScopedHold::Renew() noexcept {
  return limiter_->Renew(acquired_.hold);
}

Acquired ScopedHold::Detach() noexcept {
  Acquired acquired = acquired_;
  acquired_.hold = Hold{};
  return acquired;
}

}  // namespace weir
