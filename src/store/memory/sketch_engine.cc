#include "store/memory/sketch_engine.h"

#include <algorithm>
#include <limits>

#include "algorithm/fixed_window.h"
#include "store/memory/shared_state.h"

namespace weir::store {

namespace {

using algorithm::Carried;
using algorithm::Moment;
using algorithm::Plan;
using algorithm::SketchPlan;

uint64_t CeilDiv(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}

uint64_t HashOf(const Binding& binding, const Plan& plan, uint64_t key_hash) noexcept {
  return Sketch::HashOf(base::MixHash(key_hash, binding.salt), plan.generation);
}

// Calls visit(binding, plan, since) for each plan before this one whose charges in the sketch may
// still count: those of the binding, and those of the bindings before. A key that was not asked
// between two changes has left a trace only under the plan of then.
template <class Visit>
void ForEachOlder(const Binding& current, const Plan& newest, uint64_t now_ns,
                  Visit&& visit) noexcept {
  const Binding* binding = &current;
  const Plan* plan = &newest;
  unsigned generations = 1;
  for (;;) {
    uint64_t since_ns = plan->changed_at_ns;
    if (since_ns != 0 && generations < Binding::kGenerations) {
      plan =
          &binding->PlanOf((plan->generation + Binding::kGenerations - 1) % Binding::kGenerations);
      ++generations;
    } else if (binding->HasPredecessor(now_ns)) {
      since_ns = binding->since_ns;
      binding = binding->predecessor;
      plan = &binding->plan();
      generations = 1;
    } else {
      return;
    }
    const SketchPlan& sketch = plan->sketch;
    if (sketch.emission != 0 && now_ns < base::SaturatingAdd(since_ns, sketch.keep_ns)) {
      visit(*binding, *plan, since_ns);
    }
  }
}

constexpr uint64_t InUse(uint64_t units) {
  return base::SaturatingMul(units, uint64_t{1} << algorithm::kUsedFractionBits);
}

uint64_t LastChange(const Binding& binding, const Plan& plan) noexcept {
  return plan.changed_at_ns != 0 ? plan.changed_at_ns : binding.since_ns;
}

// Up to when a key owes that had `used` (fixed point) in use at an instant, from then on under this
// plan. As much as a slot would remember: twice the burst or limit.
int64_t OwedFrom(const Plan& plan, uint64_t since_ns, uint64_t used) noexcept {
  const SketchPlan& sketch = plan.sketch;
  // A gap that somebody else began is a whole one.
  used = plan.algorithm == Algorithm::kMinGap ? InUse(1)
                                              : std::min(used, InUse(2 * uint64_t{plan.burst}));
  // More than the sketch itself would have admitted at once weighs in full until the window ends.
  if (plan.algorithm == Algorithm::kSlidingWindow && used > InUse(sketch.burst)) {
    used += InUse(1);
  }
  const uint64_t debt = base::MulDivCeil(used, sketch.emission, InUse(1));
  return sketch.TickOf(since_ns) + static_cast<int64_t>(debt);
}

// The same for what a key had in the sketch before the quota changed; kNothing: it had nothing.
int64_t OwedInSketchBefore(const Binding& current, const Plan& newest, uint64_t key_hash,
                           uint64_t now_ns) noexcept {
  uint64_t used = 0;
  ForEachOlder(
      current, newest, now_ns, [&](const Binding& binding, const Plan& plan, uint64_t since_ns) {
        const SketchPlan& sketch = plan.sketch;
        const int64_t then = sketch.TickOf(since_ns);
        const int64_t until = binding.store->sketch->Look(sketch, HashOf(binding, plan, key_hash),
                                                          sketch.TickOf(now_ns));
        if (until <= then) {
          return;
        }
        // A window holds more than is owed at its end: what drained meanwhile. So much of it counts
        // as would not have drained by now under the new plan.
        const SketchPlan& next = newest.sketch;
        const uint64_t drained = CeilDiv(sketch.span_ns, sketch.emission << sketch.shift);
        const uint64_t drains = sketch.span_ns / (next.emission << next.shift);
        const uint64_t units = CeilDiv(static_cast<uint64_t>(until - then), sketch.emission) +
                               (drained > drains ? drained - drains : 0);
        used = std::max(used, InUse(units));
      });
  return used == 0 ? Sketch::kNothing : OwedFrom(newest, LastChange(current, newest), used);
}

// And for what it had in a slot or record of the binding before: it needs another one for this
// binding, and there may be none. Takes the lock of a record. REQUIRES: none of those is held.
int64_t OwedInSlotBefore(const Binding& binding, const Plan& plan, HashedKey key,
                         uint64_t now_ns) noexcept {
  if (!binding.HasPredecessor(now_ns)) {
    return Sketch::kNothing;
  }
  Binding& before = *binding.predecessor;
  const uint64_t used = before.ops.used(before, key.hash, key.phase, now_ns, binding.since_ns).used;
  return used == 0 ? Sketch::kNothing : OwedFrom(plan, binding.since_ns, used);
}

int64_t OwedBefore(const Binding& binding, const Plan& plan, HashedKey key,
                   uint64_t now_ns) noexcept {
  return std::max(OwedInSketchBefore(binding, plan, key.hash, now_ns),
                  OwedInSlotBefore(binding, plan, key, now_ns));
}

// Up to when the key owes by what the sketch knows of it, in ticks of the plan; never too early.
int64_t Look(const Binding& binding, const Plan& plan, uint64_t key_hash,
             uint64_t now_ns) noexcept {
  const int64_t estimate = binding.store->sketch->Look(plan.sketch, HashOf(binding, plan, key_hash),
                                                       plan.sketch.TickOf(now_ns));
  return std::max(estimate, OwedInSketchBefore(binding, plan, key_hash, now_ns));
}

// One request, put to one estimate.
class Asked {
 public:
  Asked(const Plan& plan, const Request& request, uint64_t now_ns, Decision& out) noexcept
      : sketch_(plan.sketch), request_(request), now_ns_(now_ns), out_(out) {
    out_ = Decision{};
    out_.limit = plan.burst;
    out_.basis = Basis::kSketch;
    // A gap counts requests.
    units_ =
        plan.algorithm == Algorithm::kMinGap ? std::min<uint64_t>(request.cost, 1) : request.cost;
    too_large_ = plan.algorithm != Algorithm::kMinGap && request.cost > plan.burst;
  }

  // Returns up to when the key owes now; kNothing if that has not changed.
  int64_t Decide(int64_t owed_until) noexcept {
    const int64_t now = sketch_.TickOf(now_ns_);
    const auto debt = static_cast<uint64_t>(std::max<int64_t>(owed_until - now, 0));
    const uint64_t room =
        debt < sketch_.tolerance ? (sketch_.tolerance - debt) / sketch_.emission : 0;
    const bool fits = units_ <= room;
    uint64_t taken = fits ? units_ : 0;
    out_.problem = Problem::kNone;
    switch (request_.mode) {
      case ChargeMode::kAdmit:
        break;
      case ChargeMode::kDryRun:
        Answer(debt + taken * sketch_.emission, fits, units_, 0);
        return Sketch::kNothing;
      case ChargeMode::kUpTo:
        taken = std::min(units_, room);
        Answer(debt + taken * sketch_.emission, taken != 0 || units_ == 0, 1, taken);
        return taken != 0 ? now + static_cast<int64_t>(debt + taken * sketch_.emission)
                          : Sketch::kNothing;
      case ChargeMode::kCountAlways:
        taken = units_;
        if (too_large_) {
          out_.problem = Problem::kCostAboveBurst;
        }
        break;
    }
    // A charge beyond the tolerance is remembered up to as much again, or what a lane can hold.
    const uint64_t after =
        std::min(base::SaturatingAdd(debt, base::SaturatingMul(taken, sketch_.emission)),
                 std::max(debt, 2 * sketch_.tolerance));
    Answer(fits ? after : debt, fits, units_, taken != 0 ? request_.cost : 0);
    return taken != 0 ? now + static_cast<int64_t>(after) : Sketch::kNothing;
  }

 private:
  void Answer(uint64_t debt, bool allowed, uint64_t wanted, uint64_t charged) noexcept {
    out_.outcome = allowed ? Outcome::kAllowed : Outcome::kDenied;
    out_.charged = static_cast<uint32_t>(std::min<uint64_t>(charged, ~uint32_t{0}));
    out_.remaining = debt < sketch_.tolerance
                         ? static_cast<uint32_t>((sketch_.tolerance - debt) / sketch_.emission)
                         : 0;
    out_.reset_after = Until(debt);
    out_.retry_after = Duration::zero();
    if (!allowed && !too_large_) {
      // What never fits the sketch may find a slot of its own soon.
      out_.retry_after = wanted > sketch_.burst
                             ? Duration(std::chrono::seconds(1))
                             : Until(debt + wanted * sketch_.emission - sketch_.tolerance);
    }
  }

  // From now until the tick that is this far from now's.
  [[nodiscard]] Duration Until(uint64_t ticks) const noexcept {
    const uint64_t tick = (now_ns_ >> sketch_.shift) + ticks;
    return ticks == 0 ? Duration::zero() : algorithm::ToDuration((tick << sketch_.shift) - now_ns_);
  }

  const SketchPlan& sketch_;
  const Request& request_;
  uint64_t now_ns_;
  Decision& out_;
  uint64_t units_;
  bool too_large_;
};

// How much of a span of time before now a key can have used, given up to when it owes: each unit
// that was admitted after an instant pushed that instant on by an emission interval.
uint64_t UnitsSince(const SketchPlan& sketch, int64_t owed_until, uint64_t now_ns,
                    uint64_t before_now_ns) noexcept {
  const int64_t since = sketch.TickOf(now_ns - std::min(now_ns, before_now_ns));
  return owed_until > since ? CeilDiv(static_cast<uint64_t>(owed_until - since), sketch.emission)
                            : 0;
}

}  // namespace

void DecideInSketch(const Binding& binding, HashedKey key, uint64_t now_ns, const Request& request,
                    Decision& out) noexcept {
  const Plan& plan = binding.plan();
  const SketchPlan& sketch = plan.sketch;
  const Request asked_of{request.cost, request.cost == 0 ? ChargeMode::kDryRun : request.mode};
  Asked asked(plan, asked_of, now_ns, out);
  const int64_t before = OwedBefore(binding, plan, key, now_ns);
  bool written = false;
  binding.store->sketch->Charge(sketch, HashOf(binding, plan, key.hash), sketch.TickOf(now_ns),
                                [&](int64_t estimate) {
                                  const int64_t until = asked.Decide(std::max(estimate, before));
                                  written = until != Sketch::kNothing;
                                  return until;
                                });
  // Far ahead, so that it is written seldom.
  if (binding.sketch_first) {
    return;
  }
  const uint64_t keep_ns = sketch.keep_ns + 4 * binding.store->clock.max_skew_ns();
  if (written && binding.sketch_until_ns.load(std::memory_order_relaxed) < now_ns + 2 * keep_ns) {
    binding.sketch_until_ns.store(now_ns + 3 * keep_ns, std::memory_order_relaxed);
  }
}

Carried CarriedFromSketch(const Binding& binding, const Plan& plan, uint64_t key_hash,
                          const Moment& moment) noexcept {
  const SketchPlan& sketch = plan.sketch;
  const int64_t until = Look(binding, plan, key_hash, moment.ns);
  const int64_t now = sketch.TickOf(moment.ns);
  if (plan.window_ns == 0 || sketch.span_ns == 0) {
    // Buckets and gaps have the same law there, in whole ticks.
    if (until <= now) {
      return {};
    }
    // Between a charge and now up to a tick more may have been counted than has passed. Whole units
    // are right all the same, since their intervals are longer by a tick; parts of one need it.
    auto debt = static_cast<uint64_t>(until - now);
    debt += static_cast<uint64_t>(debt % sketch.emission != 0);
    return {.used = base::MulDivCeil(debt, InUse(1), sketch.emission) + 1,
            .algorithm = plan.algorithm,
            .first = std::min(base::MulDivCeil(debt, uint64_t{1} << 60, sketch.emission),
                              uint64_t{1} << 60)};
  }
  // Of a window that began `elapsed` ago at the most. A sliding counter also gets what else can
  // have been admitted in the window before: with all of the rest there, its weighted sum is the
  // largest that it can be at any later time.
  uint64_t elapsed_ns = 0;
  if (plan.algorithm == Algorithm::kCalendar) {
    elapsed_ns = plan.horizon_ns - std::min(plan.horizon_ns, moment.period_left_ns);
  } else {
    const auto window = algorithm::FixedWindow::At(plan, moment);
    elapsed_ns = plan.window_ns - window.left_ns;
  }
  const uint64_t current = UnitsSince(sketch, until, moment.ns, elapsed_ns);
  if (plan.algorithm != Algorithm::kSlidingWindow) {
    return {.used = InUse(current)};
  }
  const uint64_t both = UnitsSince(sketch, until, moment.ns, elapsed_ns + plan.window_ns);
  return {.used = InUse(both),
          .family = plan.family,
          .algorithm = Algorithm::kSlidingWindow,
          .first = both - current,
          .second = current};
}

bool CanLeaveSketch(const Plan& plan) noexcept {
  return plan.slot != algorithm::SlotKind::kRecord &&
         (plan.algorithm != Algorithm::kFixedWindow || plan.start != WindowStart::kFirstHit);
}

bool RestInSketchAfterChange(const Binding& binding, const Plan& plan, HashedKey key,
                             uint64_t now_ns, uint64_t cost, Decision& out) noexcept {
  const int64_t before = OwedBefore(binding, plan, key, now_ns);
  return RestAbove(binding, plan, base::MixHash(key.hash, binding.salt), now_ns, cost, out,
                   [&](int64_t estimate) { return std::max(estimate, before); });
}

bool OlderPlanCounts(const Binding& binding, const Plan& plan, uint64_t now_ns) noexcept {
  bool counts = binding.HasPredecessor(now_ns);
  ForEachOlder(binding, plan, now_ns,
               [&](const Binding&, const Plan&, uint64_t) { counts = true; });
  return counts;
}

bool OwesInSketch(const Binding& binding, uint64_t key_hash, uint64_t now_ns) noexcept {
  const Plan& plan = binding.plan();
  return plan.sketch.emission != 0 && binding.SketchMayKnow(now_ns) &&
         UnitsSince(plan.sketch, Look(binding, plan, key_hash, now_ns), now_ns,
                    plan.sketch.span_ns) != 0;
}

bool StaysInSketch(const Binding& binding, const Plan& plan, uint64_t key_hash,
                   uint64_t now_ns) noexcept {
  return !CanLeaveSketch(plan) && binding.SketchMayKnow(now_ns) &&
         UnitsSince(plan.sketch, Look(binding, plan, key_hash, now_ns), now_ns,
                    plan.sketch.span_ns) != 0;
}

}  // namespace weir::store
