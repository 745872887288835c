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
      : store(std::move(owner)), binding(bound), quota(std::move(initial)) {}

  const std::shared_ptr<MemoryStore> store;
  // Acquire when read, release when changed: the binding behind it is then complete.
  std::atomic<store::Binding*> binding;
  base::Mutex mutex;
  Quota quota WEIR_GUARDED_BY(mutex);

  [[nodiscard]] store::SharedState& shared() const noexcept { return store->state(); }
  [[nodiscard]] store::Binding& current() const noexcept {
    return *binding.load(std::memory_order_acquire);
  }
};

}  // namespace weir
