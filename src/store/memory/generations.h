// States that were written before the quota changed.
#pragma once

#include <cstdint>

#include "algorithm/plan.h"
#include "store/memory/binding.h"

namespace weir::store {

// The payload of a state of an older generation as `plan` would have written it. Step by step: each
// change took place at an instant of its own.
template <class Algo>
[[nodiscard]] uint64_t BringForward(const Binding& binding, const algorithm::Plan& plan,
                                    unsigned generation, uint64_t payload,
                                    const algorithm::Moment& moment) noexcept {
  while (generation != plan.generation) {
    const algorithm::Plan& from = binding.PlanOf(generation);
    generation = (generation + 1) % Binding::kGenerations;
    const algorithm::Plan& to = generation == plan.generation ? plan : binding.PlanOf(generation);
    payload = Algo::Save(to, Algo::Convert(from, to, payload, moment), Algo::At(to, moment));
  }
  return payload;
}

}  // namespace weir::store
