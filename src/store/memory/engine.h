// The decision, apart from the common case: the first charge of a key, keys beyond their home line,
// lost races, changed quotas, a full table. The common case is in engine_hot.h, once per
// instruction set.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "algorithm/gcra.h"
#include "algorithm/plan.h"
#include "base/key_hash.h"
#include "store/memory/answer.h"
#include "store/memory/binding.h"
#include "store/memory/generations.h"
#include "store/memory/shared_state.h"
#include "store/memory/sketch_engine.h"
#include "store/memory/table.h"

namespace weir::store {

using algorithm::Moment;
using algorithm::Plan;

[[nodiscard]] inline Problem CheckKey(const SharedState& store, std::string_view key) noexcept {
  // One compare for both ends: the size of an empty key wraps around.
  if (key.size() - 1 >= kMaxKeyBytes) [[unlikely]] {
    return key.empty() ? Problem::kKeyEmpty : Problem::kKeyTooLong;
  }
  if (store.options.keys == KeyPolicy::kText && std::memchr(key.data(), 0, key.size()) != nullptr)
      [[unlikely]] {
    return Problem::kKeyHasNul;
  }
  return Problem::kNone;
}

// The phase of a key's windows, where they, or those of a quota before, are shifted per key.
[[nodiscard]] inline uint64_t PhaseFor(const Binding& binding, std::string_view key) noexcept {
  return binding.needs_phase ? base::HashKeySeeded(key, binding.store->options.fleet_secret) : 0;
}

[[nodiscard]] inline HashedKey Hashed(const Binding& binding, std::string_view key) noexcept {
  return {base::HashKey(key, binding.store->secret), PhaseFor(binding, key)};
}

[[nodiscard]] inline Decision Refused(Problem problem, uint32_t limit) noexcept {
  Decision decision;
  decision.outcome = Outcome::kRefused;
  decision.problem = problem;
  decision.limit = limit;
  return decision;
}

// The answer for a key that found no room, where no shared state takes it.
inline void AnswerUncounted(const SharedState& store, const Plan& plan, Decision& out) noexcept {
  const bool open = store.options.overflow == OverflowPolicy::kAllow;
  out = Decision{};
  out.limit = plan.burst;
  out.outcome = open ? Outcome::kAllowed : Outcome::kDenied;
  out.basis = open ? Basis::kOpen : Basis::kClosed;
  // Nobody counted, so nobody knows when: there may be room again at the next check.
  out.retry_after = open ? Duration::zero() : Duration(std::chrono::seconds(1));
}

// How a slow step ended.
enum class Step { kDone, kAgain };

// Whether keys that find no room are counted in the sketch, if that is the store's policy.
template <class Reply>
constexpr bool kUsesSketch = true;

template <class Layout, class Algo, class Reply = Answer<Algo>>
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

  // What a receipt must know of the time before its charge.
  struct Before {
    uint64_t refunds = 0;
    uint32_t resets = 0;
  };

  // Before the commit: a give-back or a reset that the receipt must know of is counted after it.
  static Before LookBefore(const Binding& binding, const Table& table, uint64_t hash,
                           const Request& request) noexcept {
    if (request.receipt == nullptr) {  // as nearly always, and the counters are seldom in a cache
      return {};
    }
    return {table.RefundsOf(hash).load(std::memory_order_acquire),
            binding.store->ResetsOf(hash).load(std::memory_order_acquire)};
  }

  static void Issue(const Binding& binding, const Plan& plan, const State& state, const Now& now,
                    uint64_t key_hash, uint64_t phase, const Before& before, uint64_t now_ns,
                    const Decision& decision, Receipt* receipt) noexcept {
    if (receipt == nullptr) {
      return;
    }
    // Windows need no refund counter and keep the key's phase in its place.
    *receipt = Receipt{.hash = key_hash,
                       .mark = Algo::Mark(plan, state, now),
                       .refunds = Algo::kUsesWindows ? phase : before.refunds,
                       .at_ns = now_ns,
                       .charged = decision.charged,
                       .binding = ChargedUnder::Pack(binding.id, plan.generation, before.resets)};
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
      const algorithm::Carried carried =
          before.ops.used(before, key_hash, phase, now_ns, binding.since_ns);
      if (carried.used != 0) {
        // What was owed at the change, from then on under this plan.
        Moment seed = binding.seed;
        seed.phase = phase;
        const Now since = Algo::At(plan, seed);
        return Algo::Load(plan, Algo::Save(plan, Algo::Seed(plan, since, carried), since), now);
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
  static bool Search(const Binding& binding, const Table& table, const Plan& plan, uint64_t home,
                     uint64_t identity, uint64_t floor_ns, Place& found, Place& victim) noexcept {
    // Most slots of a full table are often of one quota, whose floor is worked out once.
    const Now floor = Algo::At(plan, MomentFor(binding, floor_ns, 0));
    const auto reclaimable = [&](uint64_t there, uint64_t value) {
      if constexpr (Layout::kSlot == algorithm::SlotKind::kWide) {
        if (Layout::QuotaOf(there) == binding.id && Layout::Generation(value) == plan.generation) {
          return Reclaimable<Algo>(plan, Layout::Payload(value), floor);
        }
      }
      return ExpiredAt(*binding.store, plan, there, value, floor_ns);
    };
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
        if (victim.line == nullptr && (there == 0 || reclaimable(there, snapshot.value))) {
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
    if (Search(binding, table, plan, home, identity, reclaim_ns, found, victim)) {
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
    // Not those that want a receipt, or more than a plain answer: the sketch gives none back.
    const bool plain = request.mode == ChargeMode::kAdmit && request.receipt == nullptr;
    if (binding.sketch_first && plain && request.cost != 0 &&
        (OlderPlanCounts(binding, plan, now_ns)
             ? RestInSketchAfterChange(binding, plan, {key_hash, phase}, now_ns, request.cost, out)
             : RestInSketch(binding, plan, hash, now_ns, request.cost, out))) {
      return Step::kDone;
    }
    if (victim.line == nullptr ? store.options.overflow == OverflowPolicy::kSketch
                               : StaysInSketch(binding, plan, key_hash, now_ns)) [[unlikely]] {
      Overflow(binding, {key_hash, phase}, now_ns, request, out);
      return Step::kDone;
    }
    const Moment moment = MomentFor(binding, now_ns, phase);
    const Now now = Algo::At(plan, moment);
    State state = FirstState(binding, plan, key_hash, phase, now_ns, floor_ns, now);
    algorithm::Carried carried;
    if (binding.SketchMayKnow(now_ns)) [[unlikely]] {
      carried = CarriedFromSketch(binding, plan, key_hash, moment);
      if (carried.used > Algo::Used(plan, state, now)) {
        state = Algo::Seed(plan, now, carried);
      }
    }
    const bool writes = request.cost != 0 && request.mode != ChargeMode::kDryRun;
    if (binding.sketch_first && writes && victim.line != nullptr) [[unlikely]] {
      return Promote(binding, table, plan, key_hash, phase, hash, moment, victim, carried,
                     Algo::Save(plan, state, now));
    }
    const Before before = LookBefore(binding, table, hash, request);
    if (!Reply::Apply(plan, state, now, request, out)) {
      Issue(binding, plan, state, now, key_hash, phase, before, now_ns, out, request.receipt);
      return Step::kDone;
    }
    if (victim.line == nullptr) {
      Overflow(binding, {key_hash, phase}, now_ns, request, out);
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
    Issue(binding, plan, state, now, key_hash, phase, before, now_ns, out, request.receipt);
    return Step::kDone;
  }

  // Gives a key that began in the sketch a slot, with what it has in use there, and leaves the
  // request to be asked again. Others may charge the key in the sketch meanwhile, without the
  // stripe: they look for a slot after their charge, and here the sketch is looked at again after
  // the slot was written. One of the two sees the other, so no charge is lost; if both do, it
  // counts twice.
  static Step Promote(Binding& binding, Table& table, const Plan& plan, uint64_t key_hash,
                      uint64_t phase, uint64_t hash, const Moment& moment, Place& victim,
                      const algorithm::Carried& carried, uint64_t payload) noexcept {
    const uint64_t home = table.HomeOf(hash);
    const uint64_t identity = Layout::IdentityOf(hash, binding.id);
    const bool reclaimed = victim.snapshot.value != 0;
    ProtectPath<Layout>(table, home, victim.distance);
    if (!InstallAt(victim, identity, plan, payload)) {
      return Step::kAgain;
    }
    const Counters::Mine mine = binding.store->counters.Get();
    mine.Add(&CounterCell::promotions, 1);
    mine.Add(&CounterCell::reclaims, static_cast<uint64_t>(reclaimed));
    binding.store->sketch->OrderWith(plan.sketch, Sketch::HashOf(hash, plan.generation));
    const uint64_t used = CarriedFromSketch(binding, plan, key_hash, moment).used;
    Place place;
    if (used > carried.used && Find(table, home, identity, place)) {
      const uint64_t units = ((used - carried.used) >> algorithm::kUsedFractionBits) + 1;
      Decision unused;
      ChargeFound(binding, table, place, identity, key_hash, phase, moment.ns,
                  Request{.cost = units, .mode = ChargeMode::kCountAlways}, unused);
    }
    return Step::kAgain;
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
  static void Overflow(const Binding& binding, HashedKey key, uint64_t now_ns,
                       const Request& request, Decision& out) noexcept {
    SharedState& store = *binding.store;
    if (request.receipt != nullptr) {
      *request.receipt = Receipt{};
    }
    if (request.cost != 0 && request.mode != ChargeMode::kDryRun) {
      store.counters.Get().Add(&CounterCell::overflow, 1);
    }
    if (kUsesSketch<Reply> && store.options.overflow == OverflowPolicy::kSketch) {
      DecideInSketch(binding, key, now_ns, request, out);
    } else {
      AnswerUncounted(store, binding.plan(), out);
    }
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
      const Before before = LookBefore(binding, table, hash, request);
      const bool write = Reply::Apply(plan, state, now, request, out);
      if (write ? Layout::Commit(place.snapshot, plan.generation, Algo::Save(plan, state, now))
                : Layout::StillCurrent(place.snapshot)) {
        if (!Layout::StillOwned(*place.line, place.slot, identity)) {
          return Step::kAgain;
        }
        Issue(binding, plan, state, now, key_hash, phase, before, now_ns, out, request.receipt);
        return Step::kDone;
      }
      if (!write) {
        place.snapshot = Layout::Read(*place.line, place.slot);
      }
      binding.store->counters.Get().Add(&CounterCell::lost_races, 1);
    }
  }
};

}  // namespace weir::store
