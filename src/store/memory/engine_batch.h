// Many keys at one instant, with the memory of later ones fetched ahead; and the choice of the code
// for a plan. Included once by each engine_<isa>.cc, after what engine_hot.h asks for.

#include "store/memory/engine_hot.h"

namespace weir::store::WEIR_ISA {

namespace {

// Keys hashed and fetched together, and how many groups that is ahead of deciding them. Measured:
// few at a time, or the fetches of a group wait for one another, and not one by one, since the two
// halves compete for registers.
constexpr size_t kGroup = 8;
constexpr size_t kGroupsAhead = 3;

template <class Layout, class Algo>
struct Batch {
  using One = Hot<Layout, Algo>;
  using Cold = Engine<Layout, Algo>;
  using Reply = Answer<Algo>;
  using Leased = Leases<Layout, Algo>;
  using Now = typename Algo::Now;

  // A group of keys under way.
  struct Group {
    size_t size = 0;
    uint32_t refused = 0;  // a bit each; the others are hashed, and their lines asked for
    uint64_t hashes[kGroup];
    Line* lines[kGroup];
  };

  // kRest: for quotas whose keys begin in the sketch.
  template <bool kRest>
  [[gnu::always_inline]] WEIR_TARGET static void Fetch(const Binding& binding, const Plan& plan,
                                                       const std::string_view* keys, size_t size,
                                                       Group& group, Decision* out) noexcept {
    const SharedState& store = *binding.store;
    uint32_t refused = 0;
    for (size_t i = 0; i < size; ++i) {
      const std::string_view key = keys[i];
      uint64_t key_hash = 0;
      if (base::UsualKey::Fits(key) && !base::UsualKey(key).HasNul()) [[likely]] {
        key_hash = base::UsualKey(key).Hash(store.secret);
      } else if (const Problem problem = CheckKey(store, key); problem == Problem::kNone) {
        key_hash = base::HashKey(key, store.secret);
      } else {
        refused |= uint32_t{1} << i;
        out[i] = Refused(problem, plan.burst);
        continue;
      }
      const uint64_t hash = base::MixHash(key_hash, binding.salt);
      Line* const line = &binding.homes.Of(hash);
      group.hashes[i] = hash;
      group.lines[i] = line;
      __builtin_prefetch(line, 1, 3);
      if constexpr (kRest) {
        store.sketch->Prefetch(plan.sketch, Sketch::HashOf(hash, plan.generation));
      }
    }
    group.size = size;
    group.refused = refused;
  }

  // For a thread that holds leases: kAllowed from one, kHeld, or kElsewhere if none is on this key.
  [[gnu::noinline]] static AtHome SpendLease(const Binding& binding, const Plan& plan,
                                             uint64_t hash, uint64_t now_ns, uint64_t cost,
                                             Decision& out) noexcept {
    if constexpr (Leased::kUsable) {
      if (LeaseCell* const cell = Leased::Find(plan, hash); cell != nullptr) {
        const bool known = cell->known_now_ns == now_ns && Leased::AsKnown(*cell);
        const auto spent = known ? Leased::Take(plan, *cell, cost, out)
                                 : Leased::SpendAnew(binding, plan, *cell, now_ns, cost, out);
        return spent == Leased::Spent::kYes ? AtHome::kAllowed : AtHome::kHeld;
      }
    }
    LeaseOffice::TidyNowAndThen(1);
    return AtHome::kElsewhere;
  }

  // The long way, for what the short one left undone.
  [[gnu::noinline]] static AtHome DecideOther(Binding& binding, AtHome result, std::string_view key,
                                              uint64_t now_ns, uint64_t cost,
                                              Decision& out) noexcept {
    if (result == AtHome::kLost) {
      binding.store->counters.Get().Add(&CounterCell::lost_races, 1);
      tls_lost_race = true;
    }
    One::DecideSlowly(binding, Hashed(binding, key), now_ns, cost, out);
    return out.allowed() ? AtHome::kAllowed : AtHome::kDenied;
  }

  // Returns how many were denied. kPlain: none of the keys was refused, and this thread holds no
  // leases. Match and swap key by key: all matches first and the swaps after them was measured to
  // be slower, and so was each match before the swap of the key before it.
  template <bool kRest, bool kPlain>
  [[gnu::always_inline]] WEIR_TARGET static uint64_t DecideGroup(
      Binding& binding, const Plan& plan, const Group& group, const std::string_view* keys,
      const Now& now, uint64_t now_ns, uint64_t cost, bool holder, Decision* out) noexcept {
    uint64_t denied = 0;
    for (size_t i = 0; i < group.size; ++i) {
      if (!kPlain && (group.refused >> i & 1U) != 0) [[unlikely]] {
        continue;
      }
      const uint64_t hash = group.hashes[i];
      if constexpr (kRest) {
        if (One::DecideAtRest(binding, plan, *group.lines[i], hash, now_ns, cost, out[i])) {
          continue;
        }
      }
      const uint64_t wanted = Layout::Wanted(hash, binding.id, plan);
      AtHome result = AtHome::kElsewhere;
      if (!kPlain && holder) {
        result = SpendLease(binding, plan, hash, now_ns, cost, out[i]);
      }
      if (result == AtHome::kElsewhere && wanted != 0) [[likely]] {
        Reply::Begin(plan.burst, static_cast<uint32_t>(cost), out[i]);
        result = One::DecideAtHome(binding, plan, *group.lines[i], wanted, now, cost, out[i]);
      }
      if (result != AtHome::kAllowed && result != AtHome::kDenied) [[unlikely]] {
        result = DecideOther(binding, result, keys[i], now_ns, cost, out[i]);
      }
      denied += static_cast<uint64_t>(result == AtHome::kDenied);
    }
    return denied;
  }

  // Whatever is not plain.
  template <bool kRest>
  [[gnu::noinline]] WEIR_TARGET static uint64_t DecideAnyGroup(
      Binding& binding, const Plan& plan, const Group& group, const std::string_view* keys,
      const Now& now, uint64_t now_ns, uint64_t cost, bool holder, Decision* out) noexcept {
    return DecideGroup<kRest, false>(binding, plan, group, keys, now, now_ns, cost, holder, out);
  }

  // In groups: the lines of a group are asked for while its keys are hashed, and have arrived by
  // the time it is decided.
  template <bool kRest>
  WEIR_TARGET static void CheckMany(Binding& binding, const std::string_view* keys, size_t count,
                                    uint64_t cost, uint64_t now_ns, Decision* out) noexcept {
    const Plan& plan = binding.plan();
    if (cost - 1 >= plan.burst || (Algo::kUsesWindows && binding.needs_phase)) [[unlikely]] {
      for (size_t i = 0; i < count; ++i) {
        One::Check(binding, keys[i], cost, now_ns, out[i]);
      }
      return;
    }
    const Now now = Algo::At(plan, Cold::MomentFor(binding, now_ns, 0));
    uint64_t denials = 0;
    uint64_t refusals = 0;
    const bool holder = !Counters::HasOwn();
    constexpr size_t kAhead = kGroup * kGroupsAhead;
    Group groups[kGroupsAhead + 1];
    for (size_t begin = 0; begin < count + kAhead; begin += kGroup) {
      if (begin < count) [[likely]] {
        const size_t size = std::min(kGroup, count - begin);
        Fetch<kRest>(binding, plan, keys + begin, size, groups[begin / kGroup % (kGroupsAhead + 1)],
                     out + begin);
      }
      if (begin >= kAhead) [[likely]] {
        const size_t due = begin - kAhead;
        const Group& arrived = groups[due / kGroup % (kGroupsAhead + 1)];
        if (arrived.refused == 0 && !holder) [[likely]] {
          denials += DecideGroup<kRest, true>(binding, plan, arrived, keys + due, now, now_ns, cost,
                                              false, out + due);
        } else {
          denials += DecideAnyGroup<kRest>(binding, plan, arrived, keys + due, now, now_ns, cost,
                                           holder, out + due);
          refusals += static_cast<uint64_t>(std::popcount(arrived.refused));
        }
      }
    }
    const Counters::Mine mine = binding.store->counters.Get();
    mine.Add(&CounterCell::allowed, count - refusals - denials);
    mine.Add(&CounterCell::denials, denials);
    mine.Add(&CounterCell::refusals, refusals);
  }
};

template <class Layout, class Algo>
constexpr EngineOps kOps = {
    .try_check = &Hot<Layout, Algo>::TryCheck,
    .try_check_now = &Hot<Layout, Algo>::TryCheckNow,
    .try_rest = &Hot<Layout, Algo>::TryRest,
    .try_rest_now = &Hot<Layout, Algo>::TryRestNow,
    .rest_many = &Batch<Layout, Algo>::template CheckMany<true>,
    .check = &Hot<Layout, Algo>::Check,
    .try_check_hashed = &Hot<Layout, Algo>::TryCheckHashed,
    .check_hashed = &Hot<Layout, Algo>::CheckHashed,
    .check_many = &Batch<Layout, Algo>::template CheckMany<false>,
    .charge = &Hot<Layout, Algo>::Charge,
    .charge_hashed = &Hot<Layout, Algo>::ChargeHashed,
    .give_back = &Afterwards<Layout, Algo>::GiveBack,
    .used = &Afterwards<Layout, Algo>::Used,
    .reset = &Afterwards<Layout, Algo>::Reset,
};

}  // namespace

// Not a header to be shared: each engine_<isa>.cc has this once, in a namespace of its own.
// NOLINTNEXTLINE(misc-definitions-in-headers)
const EngineOps& Ops(const algorithm::Plan& plan) noexcept {
  using algorithm::CompactTicks;
  using algorithm::WideTicks;
  const bool gap = plan.algorithm == Algorithm::kMinGap;
  if (plan.undelayed != 0) {
    return plan.slot == algorithm::SlotKind::kCompact
               ? kOps<CompactLayout, algorithm::GcraQueue<CompactTicks>>
               : kOps<WideLayout, algorithm::GcraQueue<WideTicks>>;
  }
  if (plan.slot == algorithm::SlotKind::kCompact) {
    return gap ? kOps<CompactLayout, algorithm::MinGap<CompactTicks>>
               : kOps<CompactLayout, algorithm::Gcra<CompactTicks>>;
  }
  switch (plan.algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      return kOps<WideLayout, algorithm::Gcra<WideTicks>>;
    case Algorithm::kMinGap:
      return kOps<WideLayout, algorithm::MinGap<WideTicks>>;
    case Algorithm::kFixedWindow:
      if (plan.start == WindowStart::kFirstHit) {
        return kOps<WideLayout, algorithm::FirstHitWindow>;
      }
      break;
    case Algorithm::kSlidingWindow:
      return kOps<WideLayout, algorithm::SlidingWindow>;
    case Algorithm::kCalendar:
    case Algorithm::kSlidingLog:  // records: record_engine.cc
    case Algorithm::kSlicedWindow:
    case Algorithm::kConcurrency:
      break;
  }
  return kOps<WideLayout, algorithm::FixedWindow>;
}

}  // namespace weir::store::WEIR_ISA
