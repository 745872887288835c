// After the decision: charges that are given back, and what a key had in use when another binding
// took over. Rare, so without the tricks of engine_hot.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "store/memory/engine.h"

namespace weir::store {

template <class Layout, class Algo>
struct Afterwards {
  using Cold = Engine<Layout, Algo>;
  using State = typename Algo::State;
  using Now = typename Algo::Now;
  using Place = typename Cold::Place;

  // Whether a place in a queue cannot be told from others since the quota has changed.
  static bool IsLostInQueue(const Plan& plan, const State& state, unsigned generation) noexcept {
    if constexpr (Delays<Algo>) {
      return generation != plan.generation && Algo::SomebodyWaits(plan, state);
    }
    return false;
  }

  // What is owed is reckoned as of the latest stamp that a charge of this key can have had by the
  // time its state was read: a charge that came after the refilling of this one was not held back
  // by it, and must not be moved forward.
  static algorithm::Refund GiveBack(Binding& binding, Receipt& receipt, uint64_t now_ns) noexcept {
    const Receipt paid = receipt;
    receipt = Receipt{};
    // Another binding: the quota has become one of another kind since, and its states were made
    // from what was in use then; there is nothing left of this charge to point at.
    if (paid.charged == 0 || ChargedUnder::Id(paid) != binding.id) {
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
      // What was paid before a reset is not owed any more.
      const uint32_t resets = binding.store->ResetsOf(hash).load(std::memory_order_acquire);
      Place place;
      if (!ChargedUnder::IsSince(paid, resets) || !Cold::Find(table, home, identity, place)) {
        return {};
      }
      ProtectPath<Layout>(table, home, place.distance);
      const Plan& plan = binding.plan();
      const auto as_of_ns = [&] {
        return WEIR_MUTANT(kRefundToNow) ? now_ns
                                         : std::max(now_ns, binding.store->clock.LatestStampNs());
      };
      const Moment moment = Cold::MomentFor(binding, as_of_ns(), phase);
      const Now now = Algo::At(plan, moment);
      uint64_t mark = paid.mark;
      const unsigned generation = ChargedUnder::Generation(paid);
      // All of it has come back by itself. Asked here because a mark cannot say so for ever: it
      // wraps with the clock of the slot, and would seem to lie ahead again.
      if (moment.ns > base::SaturatingAdd(paid.at_ns, binding.PlanOf(generation).horizon_ns)) {
        return {};
      }
      if (generation != plan.generation) {
        if constexpr (Algo::kMarkIsState) {
          mark = Algo::Save(plan, Cold::LoadOlder(binding, plan, generation, mark, moment), now);
        } else if (binding.PlanOf(generation).family != plan.family) {
          return {};
        }
      }
      State state = Cold::LoadState(binding, plan, place.snapshot.value, moment, now);
      // After the state was read: a give-back that it already shows has been counted by now.
      const uint64_t counted = table.RefundsOf(hash).load(std::memory_order_acquire);
      const uint64_t moved_ns =
          Algo::kUsesWindows || WEIR_MUTANT(kRefundUncounted) ? 0 : counted - own_ns - paid.refunds;
      algorithm::Refund refund;
      if (!IsLostInQueue(plan, state, generation)) {
        refund = Algo::GiveBack(plan, state, now, mark, paid.charged, moved_ns);
      }
      if (!refund.changed) {
        if (Layout::StillCurrent(place.snapshot)) {
          return {};
        }
        continue;
      }
      Now later = now;
      WEIR_TEST_POINT(kReckoned);
      // Before the commit, and anew for every attempt: receipts issued since the last one do not
      // know of it.
      table.RefundsOf(hash).fetch_add(refund.moved_ns, std::memory_order_acq_rel);
      own_ns += refund.moved_ns;
      WEIR_TEST_POINT(kRefund);
      if constexpr (!Algo::kUsesWindows) {
        // A lease may have been spent from since, which the swap would not notice. Its thread had
        // not seen the counter move, so its stamp is no later than this, and what is given back
        // may only be less than was counted.
        const uint64_t counted_ns = refund.moved_ns;
        const Moment anew = Cold::MomentFor(binding, as_of_ns(), phase);
        later = WEIR_MUTANT(kRefundBeforeSpends) ? now : Algo::At(plan, anew);
        state = Cold::LoadState(binding, plan, place.snapshot.value, anew, later);
        refund = Algo::GiveBack(plan, state, later, mark, paid.charged, moved_ns);
        if (!refund.changed) {
          return {};
        }
        refund.moved_ns = counted_ns;
      }
      if (Layout::Commit(place.snapshot, plan.generation, Algo::Save(plan, state, later))) {
        return refund;
      }
    }
  }

  // Nobody holds units of the key, and give-backs wait for the stripe; a charge between our look
  // and our swap makes us look again. Those bindings that this one took over from come first: until
  // then a key without a slot would start from what it owed there.
  static bool Reset(Binding& binding, uint64_t key_hash, uint64_t phase, uint64_t now_ns) noexcept {
    const bool known_before = binding.ResetPredecessor(key_hash, phase, now_ns);
    Table& table = *binding.table;
    const uint64_t hash = base::MixHash(key_hash, binding.salt);
    const uint64_t home = table.HomeOf(hash);
    const uint64_t identity = Layout::IdentityOf(hash, binding.id);
    const base::SpinLockHolder lock(table.StripeOf(home).lock);
    // Acquire keeps the emptying below behind it: who reads the number after a state that was
    // emptied reads the new one. Release for those who read the number alone.
    binding.store->ResetsOf(hash).fetch_add(1, std::memory_order_acq_rel);
    Place place;
    while (Cold::Find(table, home, identity, place)) {
      ProtectPath<Layout>(table, home, place.distance);
      const Plan& plan = binding.plan();
      // As when all of it is given back: never from before a stamp that may have been charged.
      const uint64_t as_of_ns = std::max(now_ns, binding.store->clock.LatestStampNs());
      const Now now = Algo::At(plan, Cold::MomentFor(binding, as_of_ns, phase));
      const uint64_t fresh = Algo::Save(plan, Algo::Fresh(plan, now, now), now);
      if (Layout::Commit(place.snapshot, plan.generation, fresh)) {
        return true;
      }
    }
    return known_before;
  }

  // What a key had at `at_ns`, when this binding was replaced; nothing if all of it has come back
  // by now, since then the slot might have been reclaimed or swept just as well. A key that was
  // never here is asked for one binding further back, as of the same instant: what it would owe
  // there.
  static algorithm::Carried Used(Binding& binding, uint64_t key_hash, uint64_t phase,
                                 uint64_t now_ns, uint64_t at_ns) noexcept {
    const Table& table = *binding.table;
    const uint64_t hash = base::MixHash(key_hash, binding.salt);
    const uint64_t identity = Layout::IdentityOf(hash, binding.id);
    Place place;
    while (Cold::Find(table, table.HomeOf(hash), identity, place)) {
      const Plan& plan = binding.plan();
      const auto carried_at = [&](uint64_t ns) {
        const Moment moment = Cold::MomentFor(binding, ns, phase);
        const Now now = Algo::At(plan, moment);
        const State state = Cold::LoadState(binding, plan, place.snapshot.value, moment, now);
        return Algo::Carry(plan, state, now);
      };
      const algorithm::Carried carried =
          carried_at(now_ns).used == 0 ? algorithm::Carried{} : carried_at(at_ns);
      if (Layout::StillCurrent(place.snapshot)) {
        return carried;
      }
    }
    if (binding.HasPredecessor(now_ns)) {
      Binding& before = *binding.predecessor;
      return before.ops.used(before, key_hash, phase, now_ns, at_ns);
    }
    return {};
  }
};

}  // namespace weir::store
