// The hot path: searching a key's line and charging it. engine_batch.h does so for many keys.
//
// Included, through that, once by each engine_<isa>.cc, which defines
//   WEIR_ISA      the namespace for this instruction set
//   WEIR_TARGET   the function attribute that lets the compiler use it
//   Matcher       with Match<Layout, kMask>(line, wanted): a bit per slot whose identity, under
//                 the mask, is the wanted one; and HasNul(key)
//   Eight         code for eight keys at once, or NoEights
//   Single        code for one key in vectors, or NoSingle
// before it. Only these functions are compiled for the instruction set; all that they call is built
// for the baseline, so no instruction can leak into code that other processors run.

#include "store/memory/engine_home.h"

namespace weir::store::WEIR_ISA {

namespace {

template <class Layout, class Algo>
struct Hot {
  using Cold = Engine<Layout, Algo>;
  using Reply = Answer<Algo>;
  using Later = Afterwards<Layout, Algo>;
  using Leased = Leases<Layout, Algo>;
  using State = typename Algo::State;
  using Now = typename Algo::Now;

  // Whether a search for the key ends on its home line without it.
  [[gnu::always_inline]] WEIR_TARGET static bool Absent(Line& line, uint64_t identity) noexcept {
    return Matcher::template Match<Layout, Layout::kIdentityMask>(line, identity) == 0 &&
           !Overflowed<Layout>(line);
  }

  // A key that rests in the sketch: it has no slot, and it still had none after it was charged
  // there. False: decide the long way; the charge in the sketch, if there was one, only makes that
  // stricter.
  [[gnu::noinline]] WEIR_TARGET static bool DecideAtRest(const Binding& binding, const Plan& plan,
                                                         Line& line, uint64_t hash, uint64_t now_ns,
                                                         uint64_t cost, Decision& out) noexcept {
    const uint64_t identity = Layout::IdentityOf(hash, binding.id);
    if (!Absent(line, identity) || !RestInSketch(binding, plan, hash, now_ns, cost, out)) {
      return false;
    }
    return Absent(line, identity);
  }

  // All other cases: keys beyond their home, first charges, lost races, changed quotas, peeks.
  [[gnu::noinline]] WEIR_TARGET static void DecideAnywhere(Binding& binding, HashedKey key,
                                                           uint64_t now_ns, uint64_t cost,
                                                           Decision& out) noexcept {
    Table& table = *binding.table;
    const Request request{.cost = cost};
    const auto [key_hash, phase] = key;
    const uint64_t hash = base::MixHash(key_hash, binding.salt);
    const uint64_t home = table.HomeOf(hash);
    const uint64_t identity = Layout::IdentityOf(hash, binding.id);
    if (binding.sketch_first && cost != 0 &&
        DecideAtRest(binding, binding.plan(), table.line(home), hash, now_ns, cost, out)) {
      return;
    }
    for (unsigned distance = 0; distance < Table::kProbe; ++distance) {
      Line& line = table.line(home + distance);
      const unsigned matches =
          Matcher::template Match<Layout, Layout::kIdentityMask>(line, identity);
      if (matches != 0) {
        const auto slot = static_cast<unsigned>(std::countr_zero(matches));
        typename Cold::Place place{&line, slot, distance, Layout::Read(line, slot)};
        if (!Cold::ChargeableUnlocked(binding, home, table, identity, place)) {
          break;
        }
        if (Cold::ChargeFound(binding, table, place, identity, key_hash, phase, now_ns, request,
                              out) == Step::kDone) {
          return;
        }
        break;
      }
      if (!Overflowed<Layout>(line)) {
        break;
      }
    }
    Cold::DecideScalar(binding, table, key_hash, phase, now_ns, request, out);
  }

  // The same where leases may have to do with it.
  static void DecideSlowly(Binding& binding, HashedKey key, uint64_t now_ns, uint64_t cost,
                           Decision& out) noexcept {
    if constexpr (Leased::kUsable) {
      if (Leased::Allowed(binding)) {
        const uint64_t hash = base::MixHash(key.hash, binding.salt);
        if (!Leased::Decide(binding, key.hash, hash, now_ns, cost, out)) {
          Leased::DecideByState(binding, hash, out,
                                [&] { DecideAnywhere(binding, key, now_ns, cost, out); });
        }
        return;
      }
    }
    tls_lost_race = false;  // or it would count for the next key that comes this way
    DecideAnywhere(binding, key, now_ns, cost, out);
  }

  static void Tally(const Binding& binding, const Decision& decision) noexcept {
    binding.store->counters.Get().Add(
        decision.allowed() ? &CounterCell::allowed : &CounterCell::denials, 1);
  }

  // A cost that can never fit is answered with what the key has left, and charges nothing.
  static void TooCostly(Binding& binding, HashedKey key, uint64_t cost, uint64_t now_ns,
                        Decision& out) noexcept {
    DecideAnywhere(binding, key, now_ns, 0, out);
    out.outcome = Outcome::kRefused;
    out.problem = cost > Cost::kMax ? Problem::kCostTooLarge : Problem::kCostAboveBurst;
    binding.store->counters.Get().Add(&CounterCell::refusals, 1);
  }

  static void Refuse(Binding& binding, Problem problem, Decision& out) noexcept {
    out = Refused(problem, binding.plan().burst);
    binding.store->counters.Get().Add(&CounterCell::refusals, 1);
  }

  static bool CostFits(const Plan& plan, uint64_t cost) noexcept {
    return cost <= (Algo::kCountsUnits ? plan.burst : Cost::kMax);
  }

  // What the short way does not take: windows shifted per key.
  [[gnu::always_inline]] static bool NeedsPhase(const Binding& binding) noexcept {
    return Algo::kUsesWindows && binding.needs_phase;
  }

  // The calling thread's, which has one. By the index that a thread has even while it holds leases,
  // and not by the one that HasOwn has looked at: that would be kept in a register until here.
  static CounterCell& CellOf(SharedState& store) noexcept {
    return store.counters.OwnAt(base::tls_thread_index);
  }

  // The second half of the short way, from the moment that the key's line is known. The store is
  // the binding's: who has it need not keep the binding.
  [[gnu::always_inline]] WEIR_TARGET static bool Finish(const Binding& binding, SharedState& store,
                                                        const Plan& plan, Line& line, uint64_t hash,
                                                        uint64_t now_ns, uint64_t cost,
                                                        Decision& out) noexcept {
    uint64_t wanted = Layout::Wanted(hash, binding.id, plan);
    if (wanted == 0) [[unlikely]] {
      return false;
    }
    base::WorkOut(wanted);
    Now now = Algo::At(plan, Cold::MomentFor(binding, now_ns, 0));
    if constexpr (!Algo::kUsesWindows) {
      base::WorkOut(now.tick);
    }
    switch (Home<Layout, Algo>::Decide(store, plan, line, wanted, now, cost, out)) {
      [[likely]] case AtHome::kAllowed:
        Counters::Increment(CellOf(store).allowed);
        return true;
      case AtHome::kDenied:
        Counters::Increment(CellOf(store).denials);
        return true;
      case AtHome::kLost:
        Counters::Increment(CellOf(store).lost_races);
        tls_lost_race = true;
        break;
      case AtHome::kElsewhere:
      case AtHome::kHeld:
        break;
    }
    return false;
  }

  // The short way for a thread that holds leases, though none on this key.
  [[gnu::noinline]] WEIR_TARGET static bool TryBeside(const Binding& binding, const Plan& plan,
                                                      uint64_t hash, uint64_t now_ns, uint64_t cost,
                                                      Decision& out) noexcept {
    if (cost - 1 >= plan.burst || base::tls_thread_index >= Counters::kOwnCells ||
        (Algo::kUsesWindows && binding.needs_phase)) {
      return false;
    }
    LeaseOffice::TidyNowAndThen(1);
    Reply::Begin(plan.burst, static_cast<uint32_t>(cost), out);
    return Finish(binding, *binding.store, plan, binding.homes.Of(hash), hash, now_ns, cost, out);
  }

  // For a thread that holds leases, perhaps one on this key.
  [[gnu::noinline]] static bool TryHoldingAt(const Binding& binding, uint64_t hash, uint64_t now_ns,
                                             uint64_t cost, Decision& out) noexcept {
    const Plan& plan = binding.plan();
    if constexpr (Leased::kUsable) {
      if (LeaseCell* const cell = Leased::Find(plan, hash); cell != nullptr && cost != 0) {
        if (Leased::SpendAnew(binding, plan, *cell, now_ns, cost, out) != Leased::Spent::kYes) {
          return false;
        }
        Counters::Increment(*cell->allowed);
        return true;
      }
    }
    return TryBeside(binding, plan, hash, now_ns, cost, out);
  }

  [[gnu::noinline]] static bool TryHoldingAnew(const Binding& binding, uint64_t hash, Timestamp now,
                                               uint64_t cost, Decision& out) noexcept {
    const TableClock& clock = binding.store->clock;
    const uint64_t now_ns = clock.ToStore(now);
    if (!clock.Accepts(now_ns) || !TryHoldingAt(binding, hash, now_ns, cost, out)) {
      return false;
    }
    if (out.basis == Basis::kLease) {
      tls_desk->CellOf(hash).known_now = now;
    }
    return true;
  }

  // The same, as short as can be where nothing has changed since the last time: not even the stamp,
  // which was believed then.
  [[gnu::noinline]] WEIR_TARGET static bool TryHolding(const Binding& binding, uint64_t hash,
                                                       Timestamp now, uint64_t cost,
                                                       Decision& out) noexcept {
    if constexpr (Leased::kUsable) {
      const Plan& plan = binding.plan();
      LeaseCell* const cell = Leased::Find(plan, hash);
      if (cell != nullptr && cell->known_now == now && Leased::AsKnown(*cell)) [[likely]] {
        if (Leased::Take(plan, *cell, cost, out) != Leased::Spent::kYes) [[unlikely]] {
          return false;
        }
        Counters::Increment(*cell->allowed);
        return true;
      }
    }
    return TryHoldingAnew(binding, hash, now, cost, out);
  }

  // The first half: from the hash to what else can still send a question the long way. REQUIRES:
  // Counters::HasOwn().
  [[gnu::always_inline]] WEIR_TARGET static bool TryHashed(const Binding& binding, uint64_t hash,
                                                           Timestamp now, uint64_t cost,
                                                           Decision& out) noexcept {
    Line* line = &binding.homes.Of(hash);
    base::WorkOut(line);
    // As early as can be, so that it is still within the window of instructions when the decisions
    // before this one wait for theirs. For reading: a key that is denied on several processors
    // would otherwise go from one to the other.
    __builtin_prefetch(line, 0, 3);
    SharedState& store = *binding.store;
    const Plan& plan = binding.plan();
    const TableClock& clock = store.clock;
    const uint64_t now_ns = clock.ToStore(now);
    const uint32_t burst = plan.burst;
    Reply::Begin(burst, static_cast<uint32_t>(cost), out);
    if (cost - 1 >= burst || !clock.Accepts(now_ns) || NeedsPhase(binding)) [[unlikely]] {
      return false;
    }
    return Finish(binding, store, plan, *line, hash, now_ns, cost, out);
  }

  // Apart, so that who holds a lease on a prepared key needs no frame.
  [[gnu::noinline]] WEIR_TARGET static bool TryPrepared(Binding& binding, uint64_t hash,
                                                        Timestamp now, uint64_t cost,
                                                        Decision& out) noexcept {
    return TryHashed(binding, hash, now, cost, out);
  }

  // Reading a clock waits for all loads before it, but not for what is being fetched: so the line
  // is asked for first.
  [[gnu::always_inline]] WEIR_TARGET static bool TryHashedNow(const Binding& binding, uint64_t hash,
                                                              uint64_t cost,
                                                              Decision& out) noexcept {
    Line& line = binding.homes.Of(hash);
    __builtin_prefetch(&line, 0, 3);
    if (!Counters::HasOwn()) [[unlikely]] {
      return TryHoldingAt(binding, hash, binding.store->ReadClock(), cost, out);
    }
    const Plan& plan = binding.plan();
    const uint32_t burst = plan.burst;
    Reply::Begin(burst, static_cast<uint32_t>(cost), out);
    if (cost - 1 >= burst || NeedsPhase(binding)) [[unlikely]] {
      return false;
    }
    return Finish(binding, *binding.store, plan, line, hash, binding.store->ReadClock(), cost, out);
  }

  static uint64_t HashFor(const Binding& binding, std::string_view key) noexcept {
    return base::MixHash(base::HashKey(key, binding.store->secret), binding.salt);
  }

  // The same with a frame, for the hash is a call: keys of other lengths.
  [[gnu::noinline]] WEIR_TARGET static bool TryCheckOther(Binding& binding, std::string_view key,
                                                          Timestamp now, uint64_t cost,
                                                          Decision& out) noexcept {
    if (CheckKey(*binding.store, key) != Problem::kNone) [[unlikely]] {
      return false;
    }
    return TryCheckHashed(binding, base::HashKey(key, binding.store->secret), now, cost, out);
  }

  // A usual key, asked for by a thread that holds leases.
  [[gnu::noinline]] WEIR_TARGET static bool TryCheckHolding(Binding& binding, std::string_view key,
                                                            Timestamp now, uint64_t cost,
                                                            Decision& out) noexcept {
    const base::UsualKey usual(key);
    if (Matcher::HasNul(usual)) [[unlikely]] {
      return TryCheckOther(binding, key, now, cost, out);
    }
    const uint64_t key_hash = usual.Hash(base::drawn_secret);
    return TryHolding(binding, base::MixHash(key_hash, binding.salt), now, cost, out);
  }

  [[gnu::noinline]] WEIR_TARGET static bool TryCheckOtherNow(Binding& binding, std::string_view key,
                                                             uint64_t cost,
                                                             Decision& out) noexcept {
    return CheckKey(*binding.store, key) == Problem::kNone &&
           TryHashedNow(binding, HashFor(binding, key), cost, out);
  }

  // As short as can be: docs/decisions/0014.
  WEIR_TARGET static bool TryCheck(Binding& binding, std::string_view key, Timestamp now,
                                   uint64_t cost, Decision& out) noexcept {
    if (!base::UsualKey::Fits(key)) [[unlikely]] {
      return TryCheckOther(binding, key, now, cost, out);
    }
    if (!Counters::HasOwn()) [[unlikely]] {
      return TryCheckHolding(binding, key, now, cost, out);
    }
    const base::UsualKey usual(key);
    if (Matcher::HasNul(usual)) [[unlikely]] {
      return TryCheckOther(binding, key, now, cost, out);
    }
    const uint64_t hash = base::MixHash(usual.Hash(base::drawn_secret), binding.salt);
    return TryHashed(binding, hash, now, cost, out);
  }

  WEIR_TARGET static bool TryCheckNow(Binding& binding, std::string_view key, uint64_t cost,
                                      Decision& out) noexcept {
    if (!base::UsualKey::Fits(key)) [[unlikely]] {
      return TryCheckOtherNow(binding, key, cost, out);
    }
    const base::UsualKey usual(key);
    if (Matcher::HasNul(usual)) [[unlikely]] {
      return TryCheckOtherNow(binding, key, cost, out);
    }
    const uint64_t hash = base::MixHash(usual.Hash(base::drawn_secret), binding.salt);
    return TryHashedNow(binding, hash, cost, out);
  }

  // The short way of quotas whose keys begin in the sketch.
  WEIR_TARGET static bool TryRest(Binding& binding, std::string_view key, Timestamp now,
                                  uint64_t cost, Decision& out) noexcept {
    const TableClock& clock = binding.store->clock;
    const uint64_t now_ns = clock.ToStore(now);
    return clock.Accepts(now_ns) && TryRestAt(binding, key, now_ns, cost, out);
  }

  WEIR_TARGET static bool TryRestNow(Binding& binding, std::string_view key, uint64_t cost,
                                     Decision& out) noexcept {
    return TryRestAt(binding, key, binding.store->ReadClock(), cost, out);
  }

  [[gnu::always_inline]] WEIR_TARGET static bool TryRestAt(const Binding& binding,
                                                           std::string_view key, uint64_t now_ns,
                                                           uint64_t cost, Decision& out) noexcept {
    const Plan& plan = binding.plan();
    if (cost - 1 >= plan.burst || !Counters::HasOwn() || NeedsPhase(binding) ||
        CheckKey(*binding.store, key) != Problem::kNone) [[unlikely]] {
      return false;
    }
    const uint64_t hash = HashFor(binding, key);
    Line& line = binding.homes.Of(hash);
    if (DecideAtRest(binding, plan, line, hash, now_ns, cost, out)) {
      Counters::Increment(binding.store->counters.Own().allowed);
      return true;
    }
    Reply::Begin(plan.burst, static_cast<uint32_t>(cost), out);
    return Finish(binding, *binding.store, plan, line, hash, now_ns, cost, out);
  }

  // Any key, any cost.
  WEIR_TARGET static void Check(Binding& binding, std::string_view key, uint64_t cost,
                                uint64_t now_ns, Decision& out) noexcept {
    const Problem problem = CheckKey(*binding.store, key);
    if (problem != Problem::kNone) {
      Refuse(binding, problem, out);
    } else {
      CheckHashed(binding, Hashed(binding, key), cost, now_ns, out);
    }
  }

  WEIR_TARGET static void CheckHashed(Binding& binding, HashedKey key, uint64_t cost,
                                      uint64_t now_ns, Decision& out) noexcept {
    if (!CostFits(binding.plan(), cost)) {
      TooCostly(binding, key, cost, now_ns, out);
    } else {
      DecideSlowly(binding, key, now_ns, cost, out);
      Tally(binding, out);
    }
  }

  WEIR_TARGET static bool TryCheckHashed(Binding& binding, uint64_t key_hash, Timestamp now,
                                         uint64_t cost, Decision& out) noexcept {
    const uint64_t hash = base::MixHash(key_hash, binding.salt);
    if (!Counters::HasOwn()) [[unlikely]] {
      return TryHolding(binding, hash, now, cost, out);
    }
    return TryPrepared(binding, hash, now, cost, out);
  }

  static void Charge(Binding& binding, std::string_view key, const Request& request,
                     uint64_t now_ns, Decision& out) noexcept {
    SharedState& store = *binding.store;
    if (request.receipt != nullptr) {
      *request.receipt = Receipt{};
    }
    const Problem problem = CheckKey(store, key);
    if (problem != Problem::kNone) [[unlikely]] {
      Refuse(binding, problem, out);
      return;
    }
    const bool bounded = request.mode == ChargeMode::kAdmit || request.mode == ChargeMode::kDryRun;
    if (request.cost > Cost::kMax || (bounded && !CostFits(binding.plan(), request.cost))) {
      TooCostly(binding, Hashed(binding, key), request.cost, now_ns, out);
      return;
    }
    DecideCharge(binding, Hashed(binding, key), request, now_ns, out);
    if (out.outcome == Outcome::kRefused) [[unlikely]] {
      store.counters.Get().Add(&CounterCell::refusals, 1);
    } else if (request.mode != ChargeMode::kDryRun) {
      Tally(binding, out);
    }
  }

  static void ChargeHashed(Binding& binding, uint64_t key_hash, uint64_t phase,
                           const Request& request, uint64_t now_ns, Decision& out) noexcept {
    DecideCharge(binding, {key_hash, phase}, request, now_ns, out);
    Tally(binding, out);
  }

  static void DecideCharge(Binding& binding, HashedKey key, const Request& request, uint64_t now_ns,
                           Decision& out) noexcept {
    const auto decide = [&] {
      Cold::DecideScalar(binding, *binding.table, key.hash, key.phase, now_ns, request, out);
    };
    if constexpr (Leased::kUsable) {
      if (Leased::Allowed(binding) && request.cost != 0) {
        const uint64_t hash = base::MixHash(key.hash, binding.salt);
        if (request.mode == ChargeMode::kAdmit || request.mode == ChargeMode::kDryRun) {
          Leased::DecideByState(binding, hash, out, decide);
          return;
        }
        Leased::BringBack(binding, hash);
      }
    }
    decide();
  }
};

}  // namespace

}  // namespace weir::store::WEIR_ISA
