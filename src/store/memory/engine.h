// The decision, apart from how a line is searched: applying a request to a state, the first charge
// of a key, giving back. The searching loops are in engine_hot.h, once per instruction set.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "algorithm/gcra.h"
#include "algorithm/plan.h"
#include "base/key_hash.h"
#include "store/memory/binding.h"
#include "store/memory/generations.h"
#include "store/memory/shared_state.h"
#include "store/memory/table.h"

namespace weir::store {

using algorithm::Moment;
using algorithm::Plan;

[[nodiscard]] [[gnu::always_inline]] inline Problem CheckKey(const SharedState& store,
                                                             std::string_view key) noexcept {
  // One compare for both ends: the size of an empty key wraps around.
  if (key.size() - 1 >= kMaxKeyBytes) [[unlikely]] {
    return key.empty() ? Problem::kKeyEmpty : Problem::kKeyTooLong;
  }
  if (store.options.keys == KeyPolicy::kText && base::HasNul(key)) [[unlikely]] {
    return Problem::kKeyHasNul;
  }
  return Problem::kNone;
}

[[nodiscard]] inline Decision Refused(Problem problem, uint32_t limit) noexcept {
  Decision decision;
  decision.outcome = Outcome::kRefused;
  decision.problem = problem;
  decision.limit = limit;
  return decision;
}

// How a slow step ended.
enum class Step { kDone, kAgain };

template <class Layout, class Algo>
struct Engine {
  using State = typename Algo::State;
  using Now = typename Algo::Now;

  static Moment MomentFor(const Binding& binding, uint64_t now_ns, uint64_t phase) noexcept {
    if constexpr (Algo::kUsesWindows) {
      return binding.MomentAt(now_ns, phase);
    } else {
      return Moment{.ns = now_ns};
    }
  }

  // The phase of a key's windows, where they are shifted per key.
  static uint64_t PhaseFor(const Binding& binding, std::string_view key) noexcept {
    return binding.needs_phase ? base::HashKeySeeded(key, binding.store->options.fleet_secret) : 0;
  }

  [[gnu::always_inline]] static void Describe(const Plan& plan, const State& state, const Now& now,
                                              Decision& out) noexcept {
    out.limit = plan.burst;
    out.remaining =
        static_cast<uint32_t>(std::min<uint64_t>(Algo::Available(plan, state, now), ~uint32_t{0}));
    out.reset_after = algorithm::ToDuration(Algo::ResetNs(plan, state, now));
    out.basis = Basis::kStore;
    out.problem = Problem::kNone;
  }

  [[gnu::always_inline]] static void Allow(const Plan& plan, const State& state, const Now& now,
                                           uint64_t charged, Decision& out) noexcept {
    Describe(plan, state, now, out);
    out.outcome = Outcome::kAllowed;
    out.charged = static_cast<uint32_t>(std::min<uint64_t>(charged, ~uint32_t{0}));
    out.retry_after = Duration::zero();
  }

  [[gnu::always_inline]] static void Deny(const Plan& plan, const State& state, const Now& now,
                                          uint64_t cost, Decision& out) noexcept {
    Describe(plan, state, now, out);
    out.outcome = Outcome::kDenied;
    out.charged = 0;
    out.retry_after = algorithm::ToDuration(Algo::RetryNs(plan, state, now, cost));
  }

  // Puts the request to a state. True if the state changed and must be written.
  template <bool kPlain>
  [[gnu::always_inline]] static bool Apply(const Plan& plan, State& state, const Now& now,
                                           const Request& request, Decision& out) noexcept {
    const uint64_t cost = request.cost;
    if (cost == 0) [[unlikely]] {
      Allow(plan, state, now, 0, out);
      return false;
    }
    if (kPlain || request.mode == ChargeMode::kAdmit) {
      if (Algo::Take(plan, state, cost)) {
        Allow(plan, state, now, cost, out);
        return true;
      }
      Deny(plan, state, now, cost, out);
      return false;
    }
    switch (request.mode) {
      case ChargeMode::kUpTo:
        return ApplyUpTo(plan, state, now, cost, out);
      case ChargeMode::kCountAlways:
        return ApplyAlways(plan, state, now, cost, out);
      case ChargeMode::kAdmit:
      case ChargeMode::kDryRun:
        break;
    }
    State after = state;
    if (Algo::Take(plan, after, cost)) {
      Allow(plan, after, now, 0, out);
    } else {
      Deny(plan, state, now, cost, out);
    }
    return false;
  }

  static bool ApplyUpTo(const Plan& plan, State& state, const Now& now, uint64_t most,
                        Decision& out) noexcept {
    const uint64_t fits = std::min(most, Algo::Available(plan, state, now));
    if (fits == 0) {
      Deny(plan, state, now, 1, out);
      return false;
    }
    Algo::Take(plan, state, fits);
    Allow(plan, state, now, fits, out);
    return true;
  }

  static bool ApplyAlways(const Plan& plan, State& state, const Now& now, uint64_t cost,
                          Decision& out) noexcept {
    const bool possible = !Algo::kCountsUnits || cost <= plan.burst;
    if (possible && Algo::Take(plan, state, cost)) {
      Allow(plan, state, now, cost, out);
      return true;
    }
    const uint64_t used = Algo::Used(plan, state, now);
    Algo::Count(plan, state, cost);
    const uint64_t counted =
        (Algo::Used(plan, state, now) - used + 1) >> algorithm::kUsedFractionBits;
    if (possible) {
      Deny(plan, state, now, cost, out);
    } else {
      Describe(plan, state, now, out);
      out.outcome = Outcome::kDenied;
      out.retry_after = Duration::zero();
      out.problem = Problem::kCostAboveBurst;
    }
    // What went into a full state cannot be given back: it would take others' charges along.
    const uint64_t charged = std::min(cost, counted);
    out.charged = static_cast<uint32_t>(std::min<uint64_t>(charged, ~uint32_t{0}));
    return true;
  }

  static void Issue(const Binding& binding, const Plan& plan, const State& state, const Now& now,
                    uint64_t key_hash, uint64_t phase, uint64_t refunds, const Decision& decision,
                    Receipt* receipt) noexcept {
    if (receipt == nullptr) {
      return;
    }
    // Windows need no refund counter and keep the key's phase in its place.
    *receipt = Receipt{.hash = key_hash,
                       .mark = Algo::Mark(plan, state, now),
                       .refunds = Algo::kUsesWindows ? phase : refunds,
                       .charged = decision.charged,
                       .binding = binding.id << 2 | plan.generation};
  }

  // A state written under an older plan, brought to this one. Out of line: it happens once per key
  // and change.
  [[gnu::noinline]] static State LoadOlder(const Binding& binding, const Plan& plan,
                                           unsigned generation, uint64_t payload,
                                           const Moment& moment) noexcept {
    return Algo::Load(plan, BringForward<Algo>(binding, plan, generation, payload, moment),
                      Algo::At(plan, moment));
  }

  static State LoadState(const Binding& binding, const Plan& plan, uint64_t value,
                         const Moment& moment, const Now& now) noexcept {
    const unsigned generation = Layout::Generation(value);
    if (generation == plan.generation) [[likely]] {
      return Algo::Load(plan, Layout::Payload(value), now);
    }
    return LoadOlder(binding, plan, generation, Layout::Payload(value), moment);
  }

  // A key that has no slot: fresh, unless a binding before this one knows it.
  static State FirstState(const Binding& binding, const Plan& plan, uint64_t key_hash,
                          uint64_t phase, uint64_t now_ns, uint64_t floor_ns,
                          const Now& now) noexcept {
    if (binding.HasPredecessor(now_ns)) [[unlikely]] {
      Binding& before = *binding.predecessor;
      const uint64_t used = before.ops->used(before, key_hash, phase, now_ns, binding.since_ns);
      if (used != 0) {
        // What was owed at the change, from then on under this plan.
        const Now since = Algo::At(plan, MomentFor(binding, binding.seed_ns, phase));
        return Algo::Load(plan, Algo::Save(plan, Algo::Seed(plan, since, used), since), now);
      }
    }
    return Algo::Fresh(plan, now, Algo::At(plan, MomentFor(binding, floor_ns, phase)));
  }

  static bool ExpiredAt(const SharedState& store, const Plan& plan, uint64_t identity,
                        uint64_t value, uint64_t floor_ns) noexcept {
    if constexpr (Layout::kSlot == algorithm::SlotKind::kCompact) {
      using Bucket = algorithm::Gcra<algorithm::CompactTicks>;
      return Bucket::Expired(plan, Layout::Payload(value), Bucket::At(plan, {.ns = floor_ns}));
    } else {
      return WideExpired(store, identity, value, floor_ns);
    }
  }

  // Where a search under the stripe lock came out.
  struct Place {
    Line* line = nullptr;
    unsigned slot = 0;
    unsigned distance = 0;
    Snapshot snapshot{};
  };

  // Searches all lines the key could be on, and notes the first slot that could be taken for it.
  // REQUIRES: the home's stripe is held, so that nobody else installs this key meanwhile.
  static bool Search(const SharedState& store, const Table& table, const Plan& plan, uint64_t home,
                     uint64_t identity, uint64_t floor_ns, Place& found, Place& victim) noexcept {
    bool reachable = true;  // past the first line without an overflow bit only room is sought
    for (unsigned distance = 0; distance < Table::kProbe; ++distance) {
      Line& line = table.line(home + distance);
      for (unsigned slot = 0; slot < Layout::kSlots; ++slot) {
        const Snapshot snapshot = Layout::Read(line, slot);
        const uint64_t there = Layout::IdentityAt(line, slot, snapshot);
        if (reachable && there == identity) {
          found = {&line, slot, distance, snapshot};
          return true;
        }
        if (victim.line == nullptr &&
            (there == 0 || ExpiredAt(store, plan, there, snapshot.value, floor_ns))) {
          victim = {&line, slot, distance, snapshot};
        }
      }
      if (!Overflowed<Layout>(line)) {
        if (victim.line != nullptr) {
          return false;
        }
        reachable = false;
      }
    }
    return false;
  }

  // The fast search did not find the key, or found it on a path that the current epoch does not
  // protect yet. kAgain: it is findable now, or a race was lost; search again.
  [[gnu::noinline]] static Step Miss(Binding& binding, Table& table, uint64_t key_hash,
                                     uint64_t phase, uint64_t hash, uint64_t now_ns,
                                     const Request& request, Decision& out) noexcept {
    SharedState& store = *binding.store;
    const uint64_t home = table.HomeOf(hash);
    const uint64_t identity = Layout::IdentityOf(hash, binding.id);
    Stripe& stripe = table.StripeOf(home);
    WEIR_TEST_POINT(kInsertLock);
    base::SpinLock unshared;
    const base::SpinLockHolder lock(WEIR_MUTANT(kNoInsertLock) ? unshared : stripe.lock);
    const Plan& plan = binding.plan();
    const uint64_t reclaim_ns = WEIR_MUTANT(kCallersClock) ? now_ns : store.clock.floor_ns();
    WEIR_TEST_POINT(kSearch);
    Place found;
    Place victim;
    if (Search(store, table, plan, home, identity, reclaim_ns, found, victim)) {
      ProtectPath<Layout>(table, home, found.distance);
      return ChargeFound(binding, table, found, identity, key_hash, phase, now_ns, request, out,
                         store.clock.floor_ns());
    }
    WEIR_TEST_POINT(kFirstState);
    // Loaded after the last line was searched, hence not older than the floor that let the key be
    // reclaimed, or its path be cleared, just before.
    const uint64_t floor_ns = WEIR_MUTANT(kCallersClock) || WEIR_MUTANT(kFloorBeforeSearch)
                                  ? reclaim_ns
                                  : store.clock.floor_ns();
    const Moment moment = MomentFor(binding, now_ns, phase);
    const Now now = Algo::At(plan, moment);
    State state = FirstState(binding, plan, key_hash, phase, now_ns, floor_ns, now);
    const uint64_t refunds = table.RefundsOf(hash).load(std::memory_order_acquire);
    if (!Apply<false>(plan, state, now, request, out)) {
      Issue(binding, plan, state, now, key_hash, phase, refunds, out, request.receipt);
      return Step::kDone;
    }
    if (victim.line == nullptr) {
      Overflow(binding, table, key_hash, now_ns, request, out);
      return Step::kDone;
    }
    const bool reclaimed = victim.snapshot.value != 0;
    ProtectPath<Layout>(table, home, victim.distance);
    if (!InstallAt(victim, identity, plan, Algo::Save(plan, state, now))) {
      return Step::kAgain;
    }
    if (reclaimed) {
      store.counters.Get().Add(&CounterCell::reclaims, 1);
    }
    Issue(binding, plan, state, now, key_hash, phase, refunds, out, request.receipt);
    return Step::kDone;
  }

  // The overflow bit of the victim's own line may have been set since it was read: not a lost race.
  static bool InstallAt(Place& victim, uint64_t identity, const Plan& plan,
                        uint64_t payload) noexcept {
    const uint64_t seen = victim.snapshot.value;
    while (!Layout::Install(*victim.line, victim.slot, victim.snapshot, identity, plan.generation,
                            payload)) {
      if (((victim.snapshot.value ^ seen) & ~kAuxBit) != 0 ||
          Layout::kSlot != algorithm::SlotKind::kCompact) {
        return false;
      }
    }
    return true;
  }

  // No slot to be had: all of them belong to live keys.
  static void Overflow(Binding& binding, Table& table, uint64_t key_hash, uint64_t now_ns,
                       const Request& request, Decision& out) noexcept {
    SharedState& store = *binding.store;
    if (request.receipt != nullptr) {
      *request.receipt = Receipt{};
    }
    if (&table != binding.spill) {
      store.counters.Get().Add(&CounterCell::overflow, 1);
    }
    const Plan& plan = binding.plan();
    if (store.options.overflow == OverflowPolicy::kShared && &table != binding.spill) {
      constexpr uint64_t kSharedStates = 64;
      const Request shared{request.cost, request.mode, nullptr};
      const uint64_t bucket = base::MixHash(key_hash % kSharedStates, binding.salt);
      DecideScalar(binding, *binding.spill, bucket, 0, now_ns, shared, out);
      if (out.basis == Basis::kStore) {
        out.basis = Basis::kOverflow;
      }
      return;
    }
    const bool open = store.options.overflow == OverflowPolicy::kAllow;
    out = Decision{};
    out.limit = plan.burst;
    out.outcome = open ? Outcome::kAllowed : Outcome::kDenied;
    out.basis = open ? Basis::kOpen : Basis::kClosed;
    // Nobody counted, so nobody knows when: the table may have room again at the next check.
    out.retry_after = open ? Duration::zero() : Duration(std::chrono::seconds(1));
  }

  // The same loop as in engine_hot.h, without its tricks, for the rare paths.
  static bool Find(const Table& table, uint64_t home, uint64_t identity, Place& place) noexcept {
    for (unsigned distance = 0; distance < Table::kProbe; ++distance) {
      Line& line = table.line(home + distance);
      for (unsigned slot = 0; slot < Layout::kSlots; ++slot) {
        const Snapshot snapshot = Layout::Read(line, slot);
        if (Layout::IdentityAt(line, slot, snapshot) == identity) {
          place = {&line, slot, distance, snapshot};
          return true;
        }
      }
      if (!Overflowed<Layout>(line)) {
        return false;
      }
    }
    return false;
  }

  // Beyond its home a key is charged without the stripe only if nobody can be installing it nearer
  // at this moment: its path carries the current epoch's bits, which may have been set for another
  // key, and its state is live, so that a search under the stripe must have found it.
  static bool ChargeableUnlocked(const Binding& binding, uint64_t home, const Table& table,
                                 uint64_t identity, const Place& place) noexcept {
    return place.distance == 0 ||
           (PathProtected<Layout>(table, home, place.distance) &&
            !ExpiredAt(*binding.store, binding.plan(), identity, place.snapshot.value,
                       binding.store->clock.floor_ns()));
  }

  static void DecideScalar(Binding& binding, Table& table, uint64_t key_hash, uint64_t phase,
                           uint64_t now_ns, const Request& request, Decision& out) noexcept {
    const uint64_t hash = base::MixHash(key_hash, binding.salt);
    const uint64_t home = table.HomeOf(hash);
    const uint64_t identity = Layout::IdentityOf(hash, binding.id);
    for (;;) {
      Place place;
      if (Find(table, home, identity, place) &&
          ChargeableUnlocked(binding, home, table, identity, place)) {
        if (ChargeFound(binding, table, place, identity, key_hash, phase, now_ns, request, out) ==
            Step::kDone) {
          return;
        }
      } else if (Miss(binding, table, key_hash, phase, hash, now_ns, request, out) == Step::kDone) {
        return;
      }
    }
  }

  // `floor_ns` is given under the stripe lock: a state that has expired there starts from it, like
  // that of a key without a slot.
  static Step ChargeFound(Binding& binding, Table& table, Place& place, uint64_t identity,
                          uint64_t key_hash, uint64_t phase, uint64_t now_ns,
                          const Request& request, Decision& out, uint64_t floor_ns = 0) noexcept {
    const Plan& plan = binding.plan();
    const Moment moment = MomentFor(binding, now_ns, phase);
    const Now now = Algo::At(plan, moment);
    const uint64_t hash = base::MixHash(key_hash, binding.salt);
    for (;;) {
      if (Layout::IdentityAt(*place.line, place.slot, place.snapshot) != identity) {
        return Step::kAgain;
      }
      if (Layout::Generation(place.snapshot.value) != plan.generation && &plan != &binding.plan()) {
        return Step::kAgain;
      }
      State state =
          floor_ns != 0 && ExpiredAt(*binding.store, plan, identity, place.snapshot.value, floor_ns)
              ? Algo::Fresh(plan, now, Algo::At(plan, MomentFor(binding, floor_ns, phase)))
              : LoadState(binding, plan, place.snapshot.value, moment, now);
      // Before the commit: a give-back that this receipt must know of is counted after it.
      const uint64_t refunds = table.RefundsOf(hash).load(std::memory_order_acquire);
      const bool write = Apply<false>(plan, state, now, request, out);
      if (write ? Layout::Commit(place.snapshot, plan.generation, Algo::Save(plan, state, now))
                : Layout::StillCurrent(place.snapshot)) {
        if (!Layout::StillOwned(*place.line, place.slot, identity)) {
          return Step::kAgain;
        }
        Issue(binding, plan, state, now, key_hash, phase, refunds, out, request.receipt);
        return Step::kDone;
      }
      if (!write) {
        place.snapshot = Layout::Read(*place.line, place.slot);
      }
      binding.store->counters.Get().Add(&CounterCell::lost_races, 1);
    }
  }

  // What is owed is reckoned as of the latest stamp that a charge of this key can have had by the
  // time its state was read: a charge that came after the refilling of this one was not held back
  // by it, and must not be moved forward.
  static algorithm::Refund GiveBack(Binding& binding, Receipt& receipt, uint64_t now_ns) noexcept {
    const Receipt paid = receipt;
    receipt = Receipt{};
    // Another binding: the quota has become one of another kind since, and its states were made
    // from what was in use then; there is nothing left of this charge to point at.
    if (paid.charged == 0 || paid.binding >> 2 != binding.id) {
      return {};
    }
    Table& table = *binding.table;
    const uint64_t hash = base::MixHash(paid.hash, binding.salt);
    const uint64_t home = table.HomeOf(hash);
    const uint64_t identity = Layout::IdentityOf(hash, binding.id);
    const uint64_t phase = Algo::kUsesWindows ? paid.refunds : 0;
    Stripe& stripe = table.StripeOf(home);
    uint64_t own_ns = 0;  // what failed attempts added to the counter
    for (;;) {
      // One at a time. Otherwise another give-back and a charge of the same size, between our load
      // and our swap, would leave the same word but move this charge, and we would not know.
      const base::SpinLockHolder lock(stripe.lock);
      Place place;
      if (!Find(table, home, identity, place)) {
        return {};
      }
      ProtectPath<Layout>(table, home, place.distance);
      const Plan& plan = binding.plan();
      const uint64_t as_of_ns = WEIR_MUTANT(kRefundToNow)
                                    ? now_ns
                                    : std::max(now_ns, binding.store->clock.LatestStampNs());
      const Moment moment = MomentFor(binding, as_of_ns, phase);
      const Now now = Algo::At(plan, moment);
      uint64_t mark = paid.mark;
      const unsigned generation = paid.binding & 3U;
      if (generation != plan.generation) {
        if constexpr (Algo::kMarkIsState) {
          mark = Algo::Save(plan, LoadOlder(binding, plan, generation, mark, moment), now);
        } else if (binding.PlanOf(generation).family != plan.family) {
          return {};
        }
      }
      State state = LoadState(binding, plan, place.snapshot.value, moment, now);
      // After the state was read: a give-back that it already shows has been counted by now.
      const uint64_t counted = table.RefundsOf(hash).load(std::memory_order_acquire);
      const uint64_t moved_ns =
          Algo::kUsesWindows || WEIR_MUTANT(kRefundUncounted) ? 0 : counted - own_ns - paid.refunds;
      const algorithm::Refund refund =
          Algo::GiveBack(plan, state, now, mark, paid.charged, moved_ns);
      if (!refund.changed) {
        if (Layout::StillCurrent(place.snapshot)) {
          return {};
        }
        continue;
      }
      // Before the commit, and anew for every attempt: receipts issued since the last one do not
      // know of it.
      table.RefundsOf(hash).fetch_add(refund.moved_ns, std::memory_order_acq_rel);
      own_ns += refund.moved_ns;
      WEIR_TEST_POINT(kRefund);
      if (Layout::Commit(place.snapshot, plan.generation, Algo::Save(plan, state, now))) {
        return refund;
      }
    }
  }

  // In use at `at_ns`, when this binding was replaced; nothing if all of it has come back by now,
  // since then the slot might have been reclaimed or swept just as well.
  static uint64_t Used(Binding& binding, uint64_t key_hash, uint64_t phase, uint64_t now_ns,
                       uint64_t at_ns) noexcept {
    const Table& table = *binding.table;
    const uint64_t hash = base::MixHash(key_hash, binding.salt);
    const uint64_t identity = Layout::IdentityOf(hash, binding.id);
    Place place;
    while (Find(table, table.HomeOf(hash), identity, place)) {
      const Plan& plan = binding.plan();
      const Moment moment = MomentFor(binding, now_ns, phase);
      const Now now = Algo::At(plan, moment);
      const Moment then = MomentFor(binding, at_ns, phase);
      const uint64_t value = place.snapshot.value;
      const uint64_t left = Algo::Used(plan, LoadState(binding, plan, value, moment, now), now);
      const uint64_t used =
          left == 0 ? 0
                    : Algo::Used(plan, LoadState(binding, plan, value, then, Algo::At(plan, then)),
                                 Algo::At(plan, then));
      if (Layout::StillCurrent(place.snapshot)) {
        return used;
      }
    }
    if (binding.HasPredecessor(now_ns)) {
      Binding& before = *binding.predecessor;
      return before.ops->used(before, key_hash, phase, now_ns, binding.since_ns);
    }
    return 0;
  }
};

}  // namespace weir::store
