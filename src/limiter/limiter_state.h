// What a Limiter owns.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "weir/limiter.h"

#include "base/mutex.h"
#include "store/memory/shared_state.h"
#include "store/memory/watch.h"

namespace weir {

// While this lives nobody holds units of the binding's keys on lease, so that what its states say
// is all there is.
class WithoutLeases {
 public:
  explicit WithoutLeases(store::Binding& binding) noexcept : binding_(binding) {
    store::LeaseOffice::Stop(binding_);
  }
  ~WithoutLeases() { store::LeaseOffice::Resume(binding_); }
  WithoutLeases(const WithoutLeases&) = delete;
  WithoutLeases& operator=(const WithoutLeases&) = delete;

 private:
  store::Binding& binding_;
};

struct Limiter::State {
  State(std::shared_ptr<MemoryStore> owner, store::Binding* bound, Quota initial,
        std::unique_ptr<store::Watch> watching)
      : binding(bound),
        shared(owner->state()),
        origin(bound->id),
        watch(std::move(watching)),
        store(std::move(owner)),
        quota(std::move(initial)) {}

  // All that a check reads here, so first.
  // Acquire when read, release when changed: the binding behind it is then complete.
  std::atomic<store::Binding*> binding;
  store::SharedState& shared;

  const uint32_t origin;  // names this limiter within its store, whatever becomes of its quota
  const std::unique_ptr<store::Watch> watch;  // nullptr: nobody wants to know
  const std::shared_ptr<MemoryStore> store;
  base::Mutex mutex;
  Quota quota WEIR_GUARDED_BY(mutex);

  [[nodiscard]] store::Binding& current() const noexcept {
    return *binding.load(std::memory_order_acquire);
  }

  // The instant of a call, in store time; false if the caller's is not believable.
  [[nodiscard]] bool ReadNow(const std::optional<Timestamp>& now, uint64_t& now_ns) const noexcept {
    if (now.has_value()) {
      return shared.Admit(*now, now_ns);
    }
    now_ns = shared.ReadClock();
    return true;
  }
};

}  // namespace weir
