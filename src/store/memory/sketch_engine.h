// Decisions for keys that are counted in the sketch, and the way from there into the table.
#pragma once

#include <algorithm>
#include <cstdint>

#include "weir/decision.h"

#include "algorithm/plan.h"
#include "store/memory/answer.h"
#include "store/memory/binding.h"
#include "store/memory/shared_state.h"

namespace weir::store {

// Puts a request to the sketch, in any mode. Admits iff estimate + cost fits the sketch's law of
// the quota (algorithm/sketch_plan.h); the estimate is never below what this key was charged, nor
// below what it had in use before the quota changed. REQUIRES: the store has a sketch; no record's
// bucket is held.
void DecideInSketch(const Binding& binding, HashedKey key, uint64_t now_ns, const Request& request,
                    Decision& out) noexcept;

// The state that a key takes along when it gets a slot: at least what it can have been admitted in
// the sketch. Nothing if that has no bearing on the present. REQUIRES: the store has a sketch, and
// the plan is not one of those that stay in it.
[[nodiscard]] algorithm::Carried CarriedFromSketch(const Binding& binding,
                                                   const algorithm::Plan& plan, uint64_t key_hash,
                                                   const algorithm::Moment& moment) noexcept;

// Whether a slot's state under this plan can be made from an estimate.
[[nodiscard]] bool CanLeaveSketch(const algorithm::Plan& plan) noexcept;

// Whether what was charged under a plan before this one may still count.
[[nodiscard]] bool OlderPlanCounts(const Binding& binding, const algorithm::Plan& plan,
                                   uint64_t now_ns) noexcept;

// For quotas whose keys begin in the sketch: admits a charge there if the key stays well below its
// limit. False: nothing has happened, and the key is to get a slot of its own. `owed_until` makes
// of the sketch's estimate what the key owes. `hash` is that of (key, quota).
template <class OwedUntil>
[[nodiscard]] inline bool RestAbove(const Binding& binding, const algorithm::Plan& plan,
                                    uint64_t hash, uint64_t now_ns, uint64_t cost, Decision& out,
                                    OwedUntil&& owed_until) noexcept {
  const algorithm::SketchPlan& sketch = plan.sketch;
  const uint64_t units = plan.algorithm == Algorithm::kMinGap ? 1 : cost;
  const uint64_t added = base::SaturatingMul(units, sketch.emission);
  if (added > sketch.near) {
    return false;
  }
  const int64_t now = sketch.TickOf(now_ns);
  uint64_t after = 0;
  binding.store->sketch->Charge(
      sketch, Sketch::HashOf(hash, plan.generation), now, [&](int64_t estimate) {
        after = static_cast<uint64_t>(std::max<int64_t>(owed_until(estimate) - now, 0)) + added;
        return after <= sketch.near ? now + static_cast<int64_t>(after) : Sketch::kNothing;
      });
  if (after > sketch.near) {
    return false;
  }
  out.retry_after = Duration::zero();
  out.reset_after =
      algorithm::ToDuration((after << sketch.shift) - (now_ns & base::LowBits(sketch.shift)));
  out.limit = plan.burst;
  out.remaining = static_cast<uint32_t>(sketch.per_emission.Divide(sketch.tolerance - after));
  out.charged = static_cast<uint32_t>(cost);
  Label(Outcome::kAllowed, Basis::kSketch, out);
  return true;
}

// The same while a plan before this one counts.
[[nodiscard]] bool RestInSketchAfterChange(const Binding& binding, const algorithm::Plan& plan,
                                           HashedKey key, uint64_t now_ns, uint64_t cost,
                                           Decision& out) noexcept;

// In the usual case; false as well while a plan before this one counts. A thread that does not hold
// the key's stripe must look for a slot once more afterwards (engine.h, Promote). REQUIRES:
// 0 < cost; the key has no slot.
[[nodiscard]] inline bool RestInSketch(const Binding& binding, const algorithm::Plan& plan,
                                       uint64_t hash, uint64_t now_ns, uint64_t cost,
                                       Decision& out) noexcept {
  const bool changed = plan.changed_at_ns != 0 || binding.predecessor != nullptr;
  if (changed && OlderPlanCounts(binding, plan, now_ns)) [[unlikely]] {
    return false;
  }
  return RestAbove(binding, plan, hash, now_ns, cost, out,
                   [](int64_t estimate) { return estimate; });
}

// Whether the sketch has anything that counts against this key, be it another key's.
[[nodiscard]] bool OwesInSketch(const Binding& binding, uint64_t key_hash,
                                uint64_t now_ns) noexcept;

// Whether a key without a state must go on in the sketch although there is room for it: the sketch
// may hold charges of it that still count, and this kind of state cannot be made from an estimate
// (records, and windows that a first hit opens).
[[nodiscard]] bool StaysInSketch(const Binding& binding, const algorithm::Plan& plan,
                                 uint64_t key_hash, uint64_t now_ns) noexcept;

}  // namespace weir::store
