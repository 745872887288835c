// What a Limiter owns.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "weir/limiter.h"

#include "base/mutex.h"
#include "store/memory/shared_state.h"

namespace weir {

struct Limiter::State {
  State(std::shared_ptr<MemoryStore> owner, store::Binding* bound, Quota initial)
      : binding(bound),
        shared(owner->state()),
        store(std::move(owner)),
        quota(std::move(initial)) {}

  // All that a check reads here, so first.
  // Acquire when read, release when changed: the binding behind it is then complete.
  std::atomic<store::Binding*> binding;
  store::SharedState& shared;

  const std::shared_ptr<MemoryStore> store;
  base::Mutex mutex;
  Quota quota WEIR_GUARDED_BY(mutex);

  [[nodiscard]] store::Binding& current() const noexcept {
    return *binding.load(std::memory_order_acquire);
  }
};

}  // namespace weir
