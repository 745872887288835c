#include "store/memory/throttle.h"

#include <algorithm>
#include <bit>

#include "algorithm/gcra.h"
#include "base/key_hash.h"
#include "store/memory/engine.h"
#include "store/memory/shared_state.h"

namespace weir::store {

namespace {

using algorithm::ThrottleAnswer;
using algorithm::ThrottleAsk;
using Bucket = algorithm::Gcra<algorithm::WideTicks>;

// Puts the request's own rate to the debt. The plan's rate is not looked at.
struct ThrottleReply {
  static bool Apply(const Plan&, Bucket::State& state, const Bucket::Now&, const Request& request,
                    Decision& out) noexcept {
    out = Decision{};
    return algorithm::Throttle::Apply(*request.throttle, state.debt, *request.throttled);
  }
};

}  // namespace

template <>
constexpr bool kUsesSketch<ThrottleReply> = false;

using Slots = Engine<WideLayout, Bucket, ThrottleReply>;

void ThrottledKeys::Prefetch(uint64_t key_hash) const noexcept {
  const Table& table = *binding_.table;
  __builtin_prefetch(&table.line(table.HomeOf(base::MixHash(key_hash, binding_.salt))), 1, 3);
}

// The lines' overflow marks must outlive the states that they protect, so the housekeeping has to
// know how long those may last. Doubled, so that it is told a few times and not each time.
void ThrottledKeys::RememberFor(uint64_t debt_ns) noexcept {
  // Relaxed, here and below: a hint of what the housekeeping, which has its own lock, was told. Who
  // does not see the latest tells it once more.
  if (debt_ns <= horizon_ns_.load(std::memory_order_relaxed)) [[likely]] {
    return;
  }
  const uint64_t horizon = std::bit_ceil(debt_ns);
  binding_.store->housekeeping.AddQuota(horizon, uint64_t{1} << WideLayout::kPayloadBits);
  uint64_t known = horizon_ns_.load(std::memory_order_relaxed);
  while (known < horizon &&
         !horizon_ns_.compare_exchange_weak(known, horizon, std::memory_order_relaxed)) {
  }
}

void ThrottledKeys::DecideInSlot(uint64_t key_hash, const ThrottleAsk& ask, uint64_t now_ns,
                                 ThrottleAnswer& answer, Decision& decision) noexcept {
  const Request request{.throttle = &ask, .throttled = &answer};
  Slots::DecideScalar(binding_, *binding_.table, key_hash, 0, now_ns, request, decision);
}

bool ThrottledKeys::Decide(uint64_t key_hash, const ThrottleAsk& ask, uint64_t now_ns,
                           ThrottleAnswer& answer) noexcept {
  // Before the state is written: a debt grows to this at the most.
  const auto tolerance = static_cast<base::Uint128>(std::max<int64_t>(ask.burst, 0)) *
                         static_cast<uint64_t>(ask.interval_ns);
  RememberFor(tolerance < algorithm::Throttle::kDebtMax ? static_cast<uint64_t>(tolerance)
                                                        : algorithm::Throttle::kDebtMax);
  Decision decision;
  DecideInSlot(key_hash, ask, now_ns, answer, decision);
  const bool found_room = decision.basis == Basis::kStore;
  if (!found_room) {
    if (binding_.store->options.overflow == OverflowPolicy::kSketch) {
      DecideShared(key_hash, ask, now_ns, answer);
    } else {
      answer = {.allowed = decision.allowed(), .remaining = 0};
      answer.retry_ns = answer.allowed ? ThrottleAnswer::kNever : decision.retry_after.count();
    }
  }
  binding_.store->counters.Get().Add(answer.allowed ? &CounterCell::allowed : &CounterCell::denials,
                                     1);
  return found_room;
}

void ThrottledKeys::DecideShared(uint64_t key_hash, const ThrottleAsk& ask, uint64_t now_ns,
                                 ThrottleAnswer& answer) noexcept {
  std::atomic<uint64_t>& until = shared_[base::MixHash(key_hash, binding_.salt) % kShared];
  // Relaxed: the instant stands alone.
  uint64_t seen = until.load(std::memory_order_relaxed);
  for (;;) {
    uint64_t debt = seen > now_ns ? seen - now_ns : 0;
    // Giving back is for who is known: here it would free what others owe.
    if (ask.quantity < 0) {
      const ThrottleAsk peek{.burst = ask.burst, .interval_ns = ask.interval_ns, .quantity = 0};
      algorithm::Throttle::Apply(peek, debt, answer);
      return;
    }
    if (!algorithm::Throttle::Apply(ask, debt, answer) ||
        until.compare_exchange_weak(seen, now_ns + debt, std::memory_order_relaxed)) {
      return;
    }
  }
}

bool ThrottledKeys::Forget(uint64_t key_hash, uint64_t now_ns) noexcept {
  ThrottleAnswer before;
  Decision decision;
  DecideInSlot(key_hash, {.quantity = 0}, now_ns, before, decision);
  // More than any debt that is remembered comes back, and the state ends at nothing owed.
  const ThrottleAsk all{.burst = 1,
                        .interval_ns = static_cast<int64_t>(algorithm::Throttle::kDebtMax),
                        .quantity = -1};
  ThrottleAnswer unused;
  DecideInSlot(key_hash, all, now_ns, unused, decision);
  return before.reset_ns > 0;
}

}  // namespace weir::store
