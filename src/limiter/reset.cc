// Starting a key anew.
#include "limiter/limiter_state.h"
#include "store/memory/engine.h"

namespace weir {

ResetOutcome Limiter::Reset(std::string_view key, std::optional<Timestamp> now) noexcept {
  store::SharedState& shared = state_->shared;
  uint64_t now_ns = 0;
  if (store::CheckKey(shared, key) != Problem::kNone || !state_->ReadNow(now, now_ns)) {
    shared.counters.Get().Add(&store::CounterCell::refusals, 1);
    return ResetOutcome::kRefused;
  }
  const base::MutexLock lock(state_->mutex);  // no other quota meanwhile
  store::Binding& binding = state_->current();
  const auto [hash, phase] = store::Hashed(binding, key);
  const WithoutLeases settled(binding);
  const bool known = binding.ops.reset(binding, hash, phase, now_ns);
  if (store::OwesInSketch(binding, hash, now_ns)) {
    return ResetOutcome::kShared;
  }
  return known ? ResetOutcome::kDone : ResetOutcome::kUnknown;
}

}  // namespace weir
