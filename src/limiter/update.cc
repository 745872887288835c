// Changing a quota under traffic.
//
// A change that keeps algorithm and layout makes a new generation of the plan: states carry the
// generation they were written under and are converted when they are next charged. Any other
// change, and one that comes before the oldest generation has died out, makes a new binding: its
// keys start from what they have in use under the one before, for as long as they can owe anything
// there.
#include <string>

#include "limiter/limiter_state.h"

namespace weir {

namespace {

using algorithm::Plan;
using store::Binding;
using store::SharedState;

bool SameKind(const Plan& a, const Plan& b) {
  const auto bucket = [](Algorithm algorithm) {
    return algorithm == Algorithm::kTokenBucket || algorithm == Algorithm::kLeakyBucket;
  };
  const bool same_algorithm =
      a.algorithm == b.algorithm || (bucket(a.algorithm) && bucket(b.algorithm));
  // The code that decides differs by where a window starts; calendars and slices keep their own
  // periods.
  const bool own_periods =
      a.algorithm == Algorithm::kCalendar || a.algorithm == Algorithm::kSlicedWindow;
  // And by whether it can tell anyone to wait.
  const bool same_delay = (a.undelayed != 0) == (b.undelayed != 0);
  return same_algorithm && same_delay && a.slot == b.slot && a.start == b.start &&
         (!own_periods || a.family == b.family);
}

// True if the change could be made as a new generation.
bool NewGeneration(SharedState& shared, Binding& binding, Plan plan, uint64_t now_ns) {
  const base::MutexLock lock(shared.update_mutex);
  const Plan& old = binding.plan();
  if (!SameKind(old, plan)) {
    return false;
  }
  const unsigned next = (old.generation + 1U) % Binding::kGenerations;
  // Acquire says more than is needed: plans are published under this mutex.
  const Plan* const dying = binding.generations[next].load(std::memory_order_acquire);
  // Stamps of then may have been ahead of the clock, and those of now may be behind it.
  const uint64_t slack_ns = 2 * shared.clock.max_skew_ns();
  // Records do not say which generation wrote them: every plan reads them alike.
  const bool tells_apart = plan.slot != algorithm::SlotKind::kRecord;
  if (tells_apart && dying != nullptr &&
      now_ns < binding.retired_ns[next] + dying->horizon_ns + slack_ns) {
    return false;
  }
  binding.retired_ns[old.generation] = now_ns;
  plan.generation = static_cast<uint8_t>(next);
  plan.changed_at_ns = now_ns;
  shared.Publish(binding, plan);
  return true;
}

// From when on a bucket of the new binding drains what was owed. 8-byte slots round stamps down, so
// what is exactly due may have been granted a tick early before and may be seen a tick late from
// now on: the instant is dated back by as much, and a raise never denies.
uint64_t SeedInstant(const Plan& plan, uint64_t now_ns) {
  if (plan.algorithm == Algorithm::kFixedWindow || plan.algorithm == Algorithm::kSlidingWindow ||
      plan.algorithm == Algorithm::kCalendar || plan.slot == algorithm::SlotKind::kRecord) {
    return now_ns;
  }
  constexpr uint64_t kTickNs = algorithm::CompactTicks::kTickNs;
  const uint64_t rounded = now_ns - now_ns % kTickNs;
  return plan.slot == algorithm::SlotKind::kCompact ? rounded - kTickNs : rounded;
}

}  // namespace

Result<void> Limiter::Update(const Quota& quota) {
  SharedState& shared = state_->shared;
  const base::MutexLock lock(state_->mutex);
  if (quota == state_->quota) {
    return {};
  }
  Binding& old = state_->current();
  const bool was_held = old.plan().algorithm == Algorithm::kConcurrency;
  if (was_held != (quota.algorithm() == Algorithm::kConcurrency)) {
    return Error::Invalid("quota: " + state_->quota.ToString() + " cannot become " +
                          quota.ToString() +
                          ": what is held is not what was charged; make another limiter");
  }
  const WithoutLeases settled(old);
  const uint64_t now_ns = shared.ReadClock();
  if (auto plan = algorithm::Compile(quota, old.plan().slot);
      plan.ok() && NewGeneration(shared, old, *plan, now_ns)) {
    state_->quota = quota;
    return {};
  }
  const unsigned depth = old.HasPredecessor(now_ns) ? old.predecessors + 1 : 1;
  if (depth > Binding::kPredecessorsMax) {
    const uint64_t seconds = (old.predecessor_until_ns - now_ns) / 1'000'000'000 + 1;
    return Error{
        ErrorCode::kUnavailable,
        "quota: changed too often while keys still owe under the older ones; try again in " +
            std::to_string(seconds) + " s"};
  }
  auto bound = shared.Bind(quota, {.sketch_first = old.sketch_first, .watch = old.watch});
  if (!bound) {
    return bound.error();
  }
  Binding& binding = **bound;
  binding.predecessor = &old;
  binding.since_ns = now_ns;
  binding.seed = binding.MomentAt(SeedInstant(binding.plan(), now_ns), 0);
  binding.needs_phase = binding.needs_phase || old.needs_phase;
  binding.predecessor_until_ns = now_ns + old.plan().horizon_ns + 2 * shared.clock.max_skew_ns();
  binding.predecessors = depth;
  // Relaxed, both: nobody knows the new binding yet; the release below publishes it as a whole.
  binding.sketch_until_ns.store(old.sketch_until_ns.load(std::memory_order_relaxed),
                                std::memory_order_relaxed);
  state_->quota = quota;
  state_->binding.store(&binding, std::memory_order_release);
  return {};
}

}  // namespace weir
