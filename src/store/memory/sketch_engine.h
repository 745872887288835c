// Decisions for keys that are counted in the sketch, and the way from there into the table.
#pragma once

#include <cstdint>

#include "weir/decision.h"

#include "algorithm/plan.h"
#include "store/memory/binding.h"

namespace weir::store {

// Puts a request to the sketch, in any mode. Admits iff estimate + cost fits the sketch's law of
// the quota (algorithm/sketch_plan.h); the estimate is never below what this key was charged.
// REQUIRES: the store has a sketch.
void DecideInSketch(const Binding& binding, uint64_t key_hash, uint64_t now_ns,
                    const Request& request, Decision& out) noexcept;

// The state that a key takes along when it gets a slot: at least what it can have been admitted in
// the sketch. Nothing if that has no bearing on the present. REQUIRES: the store has a sketch, and
// the plan is not one of those that stay in it.
[[nodiscard]] algorithm::Carried CarriedFromSketch(const Binding& binding,
                                                   const algorithm::Plan& plan, uint64_t key_hash,
                                                   const algorithm::Moment& moment) noexcept;

// Whether a slot's state under this plan can be made from an estimate.
[[nodiscard]] bool CanLeaveSketch(const algorithm::Plan& plan) noexcept;

// For quotas whose keys begin in the sketch: admits a charge there if the key stays well below its
// limit. False: nothing has happened, and the key is to get a slot of its own. `hash` is that of
// (key, quota); without `key_hash` it is also false while a plan before this one counts. REQUIRES:
// 0 < cost; the key has no slot. A thread that does not hold the key's stripe must look for a slot
// once more afterwards (engine.h, Promote).
[[nodiscard]] bool RestInSketch(const Binding& binding, const algorithm::Plan& plan, uint64_t hash,
                                const uint64_t* key_hash, uint64_t now_ns, uint64_t cost,
                                Decision& out) noexcept;

// Whether a key without a state must go on in the sketch although there is room for it: the sketch
// may hold charges of it that still count, and this kind of state cannot be made from an estimate
// (records, and windows that a first hit opens).
[[nodiscard]] bool StaysInSketch(const Binding& binding, const algorithm::Plan& plan,
                                 uint64_t key_hash, uint64_t now_ns) noexcept;

}  // namespace weir::store
