// What the stress tests do at the points of test_hooks.h.
#pragma once

#include <functional>

#include "store/memory/test_hooks.h"

namespace weir::store {

// Plants a fault for as long as it lives.
class Planted {
 public:
  explicit Planted(Mutant mutant) { planted_mutant.store(mutant); }
  ~Planted() { planted_mutant.store(Mutant::kNone); }
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;
};

// Runs `action` when this thread next reaches `point`, in its midst, as if another thread had run
// there. Once; points reached by the action itself are passed.
void InterruptAt(TestPoint point, std::function<void()> action);
// Whether the last one has run.
[[nodiscard]] bool Interrupted();

// From now on this thread is held up now and then, wherever the seed has it.
void DelayThisThread(uint64_t seed);

}  // namespace weir::store
