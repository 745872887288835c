// Decisions from a lease: spending one, taking one, and what a denial does about those that others
// hold. lease.h has the rest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "algorithm/fixed_window.h"
#include "algorithm/gcra.h"
#include "algorithm/sliding_window.h"
#include "base/asymmetric_fence.h"
#include "store/memory/engine.h"
#include "store/memory/lease.h"

namespace weir::store {

// How units of a policy may be kept for later. kUsable is false for those that have no units, or
// where a unit is not worth the same at another time.
//   Until    what a lease remembers of the charge that it came from
//   Valid    how many of the units left may be spent now
//   Over     whether the state holds more than the quota admits, so that nothing may be spent
template <class Algo>
struct LeaseRule {
  static constexpr bool kUsable = false;
};

// The units left reach up to `until` on the line of the key's TAT, an emission interval each. Those
// whose interval begins before now have refilled meanwhile, and somebody else may have had them.
template <class Ticks>
struct LeaseRule<algorithm::Gcra<Ticks>> {
  using Algo = algorithm::Gcra<Ticks>;
  static constexpr bool kUsable = true;

  static uint64_t Until(const Plan& plan, uint64_t mark, typename Algo::Now now) noexcept {
    return now.tick + Algo::Load(plan, mark, now).debt;
  }

  static uint64_t Valid(const Plan& plan, typename Algo::State, typename Algo::Now now,
                        uint64_t until, uint64_t left) noexcept {
    if (WEIR_MUTANT(kLeaseNeverFades)) {
      return left;
    }
    const auto reach = static_cast<int64_t>(until - now.tick);
    const uint64_t whole = plan.per_emission.Divide(static_cast<uint64_t>(reach > 0 ? reach : 0));
    return std::min(left, whole);
  }

  static bool Over(const Plan& plan, typename Algo::State state) noexcept {
    return state.debt > plan.tolerance;
  }

  // Give-backs since then may have pulled the units forward by as much.
  static uint64_t Moved(const Plan& plan, uint64_t until, uint64_t moved_ns) noexcept {
    return until - Ticks::FromNsUp(plan, std::min(moved_ns, plan.horizon_ns));
  }
};

// Units of a window are good for that window.
template <class Window>
struct WindowLeaseRule {
  static constexpr bool kUsable = true;

  static uint64_t Until(const Plan&, uint64_t mark, typename Window::Now) noexcept { return mark; }

  static uint64_t Valid(const Plan& plan, const typename Window::State& state,
                        const typename Window::Now& now, uint64_t until, uint64_t left) noexcept {
    return Window::Mark(plan, state, now) == until || WEIR_MUTANT(kLeaseNeverFades) ? left : 0;
  }

  static uint64_t Moved(const Plan&, uint64_t until, uint64_t) noexcept { return until; }
};

template <>
struct LeaseRule<algorithm::FixedWindow> : WindowLeaseRule<algorithm::FixedWindow> {
  static bool Over(const Plan& plan, const algorithm::FixedWindow::State& state) noexcept {
    return state.count > plan.limit;
  }
};

template <>
struct LeaseRule<algorithm::FirstHitWindow> : WindowLeaseRule<algorithm::FirstHitWindow> {
  static bool Over(const Plan& plan, const algorithm::FirstHitWindow::State& state) noexcept {
    return state.count > plan.limit;
  }
};

// The weight of the window before only falls while the window lasts, so what fitted still does; a
// stamp from before the last charge sees more of it, and Over says so.
template <>
struct LeaseRule<algorithm::SlidingWindow> : WindowLeaseRule<algorithm::SlidingWindow> {
  static bool Over(const Plan& plan, const algorithm::SlidingWindow::State& state) noexcept {
    return state.weighted + state.current > plan.limit;
  }
};

template <class Layout, class Algo>
struct Leases {
  using Cold = Engine<Layout, Algo>;
  using Reply = Answer<Algo>;
  using Rule = LeaseRule<Algo>;
  using State = typename Algo::State;
  using Now = typename Algo::Now;

  static constexpr bool kUsable = Rule::kUsable;

  // Not where windows are shifted per key, nor for keys that are as well in the sketch.
  static bool Allowed(const Binding& binding) noexcept {
    return binding.store->leases.enabled && !binding.needs_phase && !binding.sketch_first;
  }

  // A lease is for so many requests of the size that took it, and for no more than this part of
  // what is available.
  static constexpr uint32_t kRequestsMin = 16;
  static constexpr uint32_t kRequestsFirst = 32;
  static constexpr uint32_t kRequestsMax = 1024;
  static constexpr uint64_t kShare = 16;
  // Spent faster than this, it was worth it, and the next one is larger.
  static constexpr uint64_t kHotNsPerRequest = 2000;

  enum class Spent {
    kYes,
    kNotNow,   // the state is over its limit, or the stamp too old
    kUsedUp,   // or faded, or of another window
    kChanged,  // closed by somebody else
  };

  // The calling thread's lease on this key, if it has one.
  [[gnu::always_inline]] static LeaseCell* Find(const Plan& plan, uint64_t hash) noexcept {
    LeaseCell& cell = tls_desk->CellOf(hash);
    return cell.hash == hash && cell.serial == plan.serial ? &cell : nullptr;
  }

  // Whether nothing has changed since the last look, so that all units left are good. The stamp
  // alone would do, were it not for give-backs, and for charges that go over the limit.
  [[gnu::always_inline]] static bool AsKnown(const LeaseCell& cell) noexcept {
    return cell.word->load(std::memory_order_acquire) == cell.known_word &&
           (Algo::kUsesWindows ||
            cell.refunds->load(std::memory_order_acquire) == cell.known_refunds);
  }

  // REQUIRES: AsKnown for this stamp. The decision is not counted yet. If the cell was closed at
  // this very moment it is left pending. Then DecideHeld must come next, for only it can tell
  // whether the units are spent.
  [[gnu::always_inline]] static Spent Take(const Plan& plan, LeaseCell& cell, uint64_t cost,
                                           Decision& out) noexcept {
    const uint64_t left = cell.left.load(std::memory_order_relaxed);
    // One compare for both ends: a cost of 0 is no matter for a lease.
    if (cost - 1 >= left) [[unlikely]] {
      return Spent::kUsedUp;
    }
    const uint64_t after = left - cost;
    Reply::Begin(plan.burst, static_cast<uint32_t>(cost), out);
    Label(Outcome::kAllowed, Basis::kLease, out);
    out.retry_after = Duration::zero();
    out.reset_after = algorithm::ToDuration(cell.known_reset_ns);
    out.remaining = static_cast<uint32_t>(cell.known_available + after);
    WEIR_TEST_POINT(kLeaseSpend);
    base::AsymmetricFence::Publish(cell.left, after);
    WEIR_TEST_POINT(kLeaseSpent);
    if (cell.open.load(std::memory_order_seq_cst) == 0 && !WEIR_MUTANT(kLeaseUnasked))
        [[unlikely]] {
      cell.pending = cost;
      return Spent::kChanged;
    }
    return Spent::kYes;
  }

  // Looks at the key's state and takes from the lease what is no longer good. REQUIRES: the calling
  // thread's cell, of this plan; 0 < cost.
  [[gnu::noinline]] static Spent SpendAnew(const Binding& binding, const Plan& plan,
                                           LeaseCell& cell, uint64_t now_ns, uint64_t cost,
                                           Decision& out) noexcept {
    cell.known_now = {};
    const Now now = Algo::At(plan, Cold::MomentFor(binding, now_ns, 0));
    const Current current =
        Layout::ReadCurrent(*cell.line, cell.slot, cell.wanted, plan.generation_mark);
    if (!current.wanted) {
      return Spent::kUsedUp;
    }
    if constexpr (!Algo::kUsesWindows) {
      const uint64_t refunds = cell.refunds->load(std::memory_order_acquire);
      if (refunds != cell.known_refunds && !WEIR_MUTANT(kLeaseUncounted)) {
        cell.until = Rule::Moved(plan, cell.until, refunds - cell.known_refunds);
      }
      cell.known_refunds = refunds;
    }
    const State state = Algo::Load(plan, current.value, now);
    if (Rule::Over(plan, state) && !WEIR_MUTANT(kLeaseOverdrawn)) {
      return Spent::kNotNow;
    }
    const uint64_t left = cell.left.load(std::memory_order_relaxed);
    const uint64_t valid = Rule::Valid(plan, state, now, cell.until, left);
    if (valid < cost) {
      return Spent::kUsedUp;
    }
    if (valid != left) {
      cell.left.store(valid, std::memory_order_relaxed);
    }
    cell.known_now_ns = now_ns;
    cell.known_word = current.value;
    cell.known_available = Algo::Available(plan, state, now);
    cell.known_reset_ns = Algo::ResetNs(plan, state, now);
    return Take(plan, cell, cost, out);
  }

  // The long way with leases: spends one that only needed a closer look, takes a new one, or does
  // nothing (false).
  static bool Decide(Binding& binding, uint64_t key_hash, uint64_t hash, uint64_t now_ns,
                     uint64_t cost, Decision& out) noexcept {
    if (cost == 0) {
      return false;
    }
    const Plan& plan = binding.plan();
    LeaseCell& cell = tls_desk->CellOf(hash);
    if (cell.hash == hash) {
      tls_lost_race = false;
      return DecideHeld(binding, plan, cell, key_hash, hash, now_ns, cost, out);
    }
    return IsHot(hash) && Grant(binding, plan, key_hash, hash, now_ns, cost, kRequestsFirst, out);
  }

  static bool DecideHeld(Binding& binding, const Plan& plan, LeaseCell& cell, uint64_t key_hash,
                         uint64_t hash, uint64_t now_ns, uint64_t cost, Decision& out) noexcept {
    if (cell.pending != 0 && TakePending(cell, cost)) {
      AnswerPending(binding, plan, cell, now_ns, cost, out);
      return true;
    }
    uint32_t requests = 0;
    if (cell.serial == plan.serial && cell.open.load(std::memory_order_acquire) != 0) {
      switch (SpendAnew(binding, plan, cell, now_ns, cost, out)) {
        case Spent::kYes:
          return true;
        case Spent::kNotNow:
          return false;
        case Spent::kUsedUp:
          requests = NextSize(cell, now_ns);
          break;
        case Spent::kChanged:
          if (cell.pending != 0 && TakePending(cell, cost)) {
            return true;
          }
          break;
      }
    }
    if (requests != 0 && Grant(binding, plan, key_hash, hash, now_ns, cost, requests, out)) {
      LeaseOffice::TidyNowAndThen(kRequestsMin);
      return true;
    }
    LeaseOffice::Drop(cell);
    LeaseOffice::Tidy();
    return false;
  }

  // The cell was closed while its owner spent from it: whether that spending was seen.
  static bool TakePending(LeaseCell& cell, uint64_t cost) noexcept {
    const base::SpinLockHolder lock(cell.lock);
    const bool counted =
        !cell.settled || cell.settled_left <= cell.left.load(std::memory_order_relaxed);
    return std::exchange(cell.pending, 0) == cost && counted;
  }

  static void AnswerPending(const Binding& binding, const Plan& plan, const LeaseCell& cell,
                            uint64_t now_ns, uint64_t cost, Decision& out) noexcept {
    const Now now = Algo::At(plan, Cold::MomentFor(binding, now_ns, 0));
    const Snapshot snapshot = Layout::Read(*cell.line, cell.slot);
    Reply::Allow(plan, Algo::Load(plan, Layout::Payload(snapshot.value), now), now, cost, out);
    out.basis = Basis::kLease;
  }

  // How large the next lease on this key should be; 0: it is not worth one.
  static uint32_t NextSize(const LeaseCell& cell, uint64_t now_ns) noexcept {
    const auto taken_ns = static_cast<int64_t>(now_ns - cell.granted_ns);
    if (taken_ns <= static_cast<int64_t>(cell.requests * kHotNsPerRequest)) {
      return std::min(cell.requests * 2, kRequestsMax);
    }
    return cell.requests > kRequestsMin ? cell.requests / 2 : 0;
  }

  // Takes units for later, and decides the request at hand from them. False: nothing has happened,
  // except that what was left of the lease before may have been given back.
  static bool Grant(Binding& binding, const Plan& plan, uint64_t key_hash, uint64_t hash,
                    uint64_t now_ns, uint64_t cost, uint32_t requests, Decision& out) noexcept {
    Table& table = *binding.table;
    const uint64_t home = table.HomeOf(hash);
    const uint64_t identity = Layout::IdentityOf(hash, binding.id);
    const uint64_t wanted = Layout::Wanted(hash, binding.id, plan);
    if (wanted == 0 || !LeaseOffice::Join()) {
      return false;
    }
    LeaseCell& cell = tls_desk->CellOf(hash);
    if (cell.hash != 0 && cell.hash != hash) {
      LeaseOffice::Tidy();  // the cell is another key's, perhaps not for long
      if (cell.hash != 0) {
        return false;
      }
    }
    LeaseMarks& marks = binding.store->leases.marks;
    const Line& home_line = table.line(home);
    const base::SpinLockHolder lock(cell.lock);
    // A lease that goes over into the next one stays counted.
    const bool counted = !cell.settled;
    if (counted) {
      cell.open.store(0, std::memory_order_relaxed);
      LeaseOffice::GiveBack(cell, cell.left.load(std::memory_order_relaxed));
    } else {
      marks.Begin(home_line);
    }
    cell.settled = true;
    cell.settled_left = cell.left.load(std::memory_order_relaxed);
    cell.hash = 0;
    typename Cold::Place place;
    const Now now = Algo::At(plan, Cold::MomentFor(binding, now_ns, 0));
    const uint64_t units = Units(binding, plan, table, home, identity, now, cost, requests, place);
    Receipt receipt;
    const Request request{.cost = units, .receipt = &receipt};
    // Stopped: asked under the lock, which Stop takes after it has said so.
    if (units == 0 || binding.leases_stopped.load(std::memory_order_seq_cst) != 0 ||
        Cold::ChargeFound(binding, table, place, identity, key_hash, 0, now_ns, request, out) !=
            Step::kDone ||
        !out.allowed()) {
      marks.End(home_line);
      return false;
    }
    out.charged = static_cast<uint32_t>(cost);
    out.basis = Basis::kLease;
    cell.known_available = out.remaining;
    out.remaining += static_cast<uint32_t>(units - cost);
    cell.hash = hash;
    cell.serial = plan.serial;
    cell.known_now = {};  // to be looked at: others may have charged the key already
    cell.known_now_ns = 0;
    cell.refunds = &table.RefundsOf(hash);
    cell.known_refunds = receipt.refunds;
    cell.word = place.snapshot.word;
    cell.allowed = &binding.store->counters.OwnAt(base::tls_thread_index).allowed;
    cell.until = Rule::Until(plan, receipt.mark, now);
    cell.reach = cell.until;
    cell.wanted = wanted;
    cell.line = place.line;
    cell.slot = place.slot;
    cell.requests = static_cast<uint32_t>(units / cost);
    cell.granted_ns = now_ns;
    cell.looked_ns = now_ns;
    cell.looked_left = units - cost;
    cell.binding = &binding;
    cell.home = &home_line;
    cell.receipt = receipt;
    cell.settled = false;
    cell.left.store(units - cost, std::memory_order_relaxed);
    cell.open.store(1, std::memory_order_release);
    binding.store->counters.Get().Add(&CounterCell::leases, 1);
    LeaseOffice::HoldingNow();
    return true;
  }

  // How many to take; 0 if the key has too little, or is not where it can be charged.
  static uint64_t Units(const Binding& binding, const Plan& plan, const Table& table, uint64_t home,
                        uint64_t identity, const Now& now, uint64_t cost, uint32_t requests,
                        typename Cold::Place& place) noexcept {
    if (!Cold::Find(table, home, identity, place) ||
        !Cold::ChargeableUnlocked(binding, home, table, identity, place) ||
        Layout::Generation(place.snapshot.value) != plan.generation) {
      return 0;
    }
    const State state = Algo::Load(plan, Layout::Payload(place.snapshot.value), now);
    const uint64_t most = Algo::Available(plan, state, now) / kShare;
    const uint64_t units = std::min(requests * cost, most);
    return units < kRequestsMin * cost ? 0 : units;
  }

  // Decides by the key's state; before a denial is final, leases on the key come back. `decide` may
  // run more than once and must charge nothing if it denies.
  template <class Decider>
  static void DecideByState(Binding& binding, uint64_t hash, Decision& out,
                            Decider decide) noexcept {
    SharedState& store = *binding.store;
    const Line& home = binding.homes.Of(hash);
    LeaseMarks::Word& mark = store.leases.marks.Of(home);
    // Leases are granted only where there is plenty, so this ends soon; the bound is for a thread
    // that is always overtaken, be it by leases of other keys that share the word.
    constexpr int kTriesMax = 4;
    for (int i = 0; i < kTriesMax; ++i) {
      const uint64_t before = mark.load(std::memory_order_seq_cst);
      decide();
      if (out.allowed() || out.basis != Basis::kStore) {
        return;
      }
      const uint64_t after = mark.load(std::memory_order_seq_cst);
      const bool brought_back = LeaseMarks::AnyOut(after) && LeaseOffice::Revoke(binding, hash);
      if (before == after && !brought_back) {
        return;
      }
    }
  }

  // For charges that take what there is, which would not see what is out on lease.
  static void BringBack(Binding& binding, uint64_t hash) noexcept {
    SharedState& store = *binding.store;
    const LeaseMarks::Word& mark = store.leases.marks.Of(binding.homes.Of(hash));
    if (LeaseMarks::AnyOut(mark.load(std::memory_order_seq_cst))) {
      LeaseOffice::Revoke(binding, hash);
    }
  }
};

}  // namespace weir::store
