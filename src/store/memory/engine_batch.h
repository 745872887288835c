// Many keys at one instant, with the memory of later ones fetched ahead; and the choice of the code
// for a plan. Included once by each engine_<isa>.cc, after what engine_hot.h asks for.

#include "store/memory/engine_hot.h"

namespace weir::store::WEIR_ISA {

namespace {

// Keys hashed and fetched together. Measured: few at a time, or the fetches of a group wait for one
// another, and not one by one, since the two halves compete for registers.
constexpr size_t kGroup = 8;

template <class Layout, class Algo>
struct Batch {
  using One = Hot<Layout, Algo>;
  using Cold = Engine<Layout, Algo>;
  using Reply = Answer<Algo>;
  using Leased = Leases<Layout, Algo>;
  using Now = typename Algo::Now;
  using Eights = Eight<Layout, Algo>;

  // A group of keys under way.
  struct Group {
    size_t size = 0;
    uint32_t refused = 0;  // a bit each; the others are hashed, and their lines asked for
    alignas(64) uint64_t hashes[kGroup];
    alignas(64) Line* lines[kGroup];
  };

  // kRest, here and below: for quotas whose keys begin in the sketch.
  template <bool kRest>
  [[gnu::always_inline]] WEIR_TARGET static void Prefetch(const SharedState& store,
                                                          const Plan& plan, uint64_t hash,
                                                          const Line* line) noexcept {
    __builtin_prefetch(line, 0, 3);
    if constexpr (kRest) {
      store.sketch->Prefetch(plan.sketch, Sketch::HashOf(hash, plan.generation));
    }
  }

  template <bool kRest>
  [[gnu::always_inline]] WEIR_TARGET static void Fetch(const Binding& binding, const Plan& plan,
                                                       const std::string_view* keys, size_t size,
                                                       Group& group, Decision* out) noexcept {
    const SharedState& store = *binding.store;
    if constexpr (Eights::kHashes) {
      if (size == kGroup && binding.homes.count >> 32 == 0 &&
          Eights::Hash(keys, store.secret, binding.salt, binding.homes, group.hashes, group.lines))
          [[likely]] {
        for (size_t i = 0; i < kGroup; ++i) {
          Prefetch<kRest>(store, plan, group.hashes[i], group.lines[i]);
        }
        group.size = kGroup;
        group.refused = 0;
        return;
      }
    }
    uint32_t refused = 0;
    for (size_t i = 0; i < size; ++i) {
      const std::string_view key = keys[i];
      uint64_t key_hash = 0;
      if (base::UsualKey::Fits(key) && !base::UsualKey(key).HasNul()) [[likely]] {
        key_hash = base::UsualKey(key).Hash(base::drawn_secret);
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
      Prefetch<kRest>(store, plan, hash, line);
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

  // The short way. `holder`: this thread holds leases.
  [[gnu::always_inline]] WEIR_TARGET static AtHome TryOne(const Binding& binding, const Plan& plan,
                                                          Line& line, uint64_t hash, const Now& now,
                                                          uint64_t now_ns, uint64_t cost,
                                                          bool holder, Decision& out) noexcept {
    AtHome result = AtHome::kElsewhere;
    if (holder) [[unlikely]] {
      result = SpendLease(binding, plan, hash, now_ns, cost, out);
    }
    const uint64_t wanted = Layout::Wanted(hash, binding.id, plan);
    if (result == AtHome::kElsewhere && wanted != 0) [[likely]] {
      Reply::Begin(plan.burst, static_cast<uint32_t>(cost), out);
      result = Home<Layout, Algo>::Decide(*binding.store, plan, line, wanted, now, cost, out);
    }
    return result;
  }

  // Returns a bit for each key that is not at home, as far as was seen. These wait for the lines
  // after their homes and are to be decided before the next group, so that a key is decided in the
  // order of its requests. kPlain: none of the keys was refused, and this thread holds no leases.
  // Match and swap key by key: all matches first and the swaps after them was measured to be slower
  // without vectors, and so was each match before the swap of the key before it.
  template <bool kRest, bool kPlain>
  [[gnu::always_inline]] WEIR_TARGET static uint32_t DecideGroup(
      Binding& binding, const Plan& plan, const Group& group, const std::string_view* keys,
      const Now& now, uint64_t now_ns, uint64_t cost, bool holder, Decision* out,
      uint64_t& denials) noexcept {
    uint32_t absent = 0;
    for (size_t i = 0; i < group.size; ++i) {
      if (!kPlain && (group.refused >> i & 1U) != 0) [[unlikely]] {
        continue;
      }
      Line& line = *group.lines[i];
      if constexpr (kRest) {
        if (One::DecideAtRest(binding, plan, line, group.hashes[i], now_ns, cost, out[i])) {
          continue;
        }
      }
      AtHome result = TryOne(binding, plan, line, group.hashes[i], now, now_ns, cost,
                             !kPlain && holder, out[i]);
      if (result == AtHome::kElsewhere) [[unlikely]] {
        __builtin_prefetch(&line + 1, 0, 3);
        absent |= uint32_t{1} << i;
        continue;
      }
      if (result != AtHome::kAllowed && result != AtHome::kDenied) [[unlikely]] {
        result = DecideOther(binding, result, keys[i], now_ns, cost, out[i]);
      }
      denials += static_cast<uint64_t>(result == AtHome::kDenied);
    }
    return absent;
  }

  // Those keys of a group whose bits are set.
  [[gnu::noinline]] WEIR_TARGET static void DecideSome(Binding& binding, const Plan& plan,
                                                       const Group& group, uint32_t bits,
                                                       const std::string_view* keys, const Now& now,
                                                       uint64_t now_ns, uint64_t cost,
                                                       Decision* out, uint64_t& denials) noexcept {
    for (; bits != 0; bits &= bits - 1) {
      const auto i = static_cast<unsigned>(std::countr_zero(bits));
      AtHome result = TryOne(binding, plan, *group.lines[i], group.hashes[i], now, now_ns, cost,
                             !Counters::HasOwn(), out[i]);
      if (result != AtHome::kAllowed && result != AtHome::kDenied) {
        result = DecideOther(binding, result, keys[i], now_ns, cost, out[i]);
      }
      denials += static_cast<uint64_t>(result == AtHome::kDenied);
    }
  }

  // Looks for the keys of a group that is decided next, so that the lines after their homes have
  // time to arrive too.
  [[gnu::always_inline]] WEIR_TARGET static void Find(const typename Eights::Question& question,
                                                      const Group& group,
                                                      typename Eights::Found& found) noexcept {
    if constexpr (Eights::kDecides) {
      if (group.refused == 0 && group.size == kGroup) [[likely]] {
        Eights::Find(question, group.hashes, group.lines, found);
      }
    }
  }

  // Whether this batch itself has charged a key of the group since it was looked for.
  static bool OvertookItself(const Group& before, const Group& group, unsigned i) noexcept {
    const auto same = [&](uint64_t hash) { return hash == group.hashes[i]; };
    return std::any_of(group.hashes, group.hashes + i, same) ||
           std::any_of(before.hashes, before.hashes + before.size, same);
  }

  // The same as DecideGroup for a plain group of eight that was looked for while the one before it
  // was still to be decided.
  [[gnu::always_inline]] WEIR_TARGET static uint32_t DecideEight(
      Binding& binding, const Plan& plan, const typename Eights::Question& question,
      const Group& before, const Group& group, const typename Eights::Found& found,
      const std::string_view* keys, const Now& now, uint64_t now_ns, uint64_t cost, Decision* out,
      uint64_t& denials) noexcept {
    if constexpr (Eights::kDecides) {
      const auto undone = Eights::Decide(question, found, binding.store->leases.marks, out);
      denials += static_cast<uint64_t>(std::popcount(undone.denied));
      if ((undone.lost | undone.held) != 0) [[unlikely]] {
        DecideUndone(binding, plan, before, group, undone.lost, undone.held, keys, now, now_ns,
                     cost, out, denials);
      }
      return undone.absent;
    }
    return 0;
  }

  // A race that was lost to another thread is the affair of the long way, which may take a lease.
  [[gnu::noinline]] WEIR_TARGET static void DecideUndone(
      Binding& binding, const Plan& plan, const Group& before, const Group& group, uint32_t lost,
      uint32_t held, const std::string_view* keys, const Now& now, uint64_t now_ns, uint64_t cost,
      Decision* out, uint64_t& denials) noexcept {
    for (uint32_t rest = lost | held; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<unsigned>(std::countr_zero(rest));
      if ((lost >> i & 1U) != 0 && !OvertookItself(before, group, i)) {
        const AtHome result = DecideOther(binding, AtHome::kLost, keys[i], now_ns, cost, out[i]);
        denials += static_cast<uint64_t>(result == AtHome::kDenied);
      } else {
        DecideSome(binding, plan, group, uint32_t{1} << i, keys, now, now_ns, cost, out, denials);
      }
    }
  }

  // Whatever is not plain.
  template <bool kRest>
  [[gnu::noinline]] WEIR_TARGET static uint32_t DecideAnyGroup(
      Binding& binding, const Plan& plan, const Group& group, const std::string_view* keys,
      const Now& now, uint64_t now_ns, uint64_t cost, bool holder, Decision* out,
      uint64_t& denials) noexcept {
    return DecideGroup<kRest, false>(binding, plan, group, keys, now, now_ns, cost, holder, out,
                                     denials);
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
    constexpr bool kEights = Eights::kDecides && !kRest;
    // How many groups ahead of deciding them keys are fetched. One more where they are looked for a
    // group before that; one in all where a decision takes as long as several fetches.
    constexpr size_t kGroupsAhead = kRest ? 1 : kEights ? 4 : 3;
    typename Eights::Question question;
    if constexpr (kEights) {
      question = Eights::Ask(plan, now.tick, cost);
    }
    // Under way: those fetched, the one being decided, and the one before it for what it left.
    constexpr size_t kGroups = kGroupsAhead + 2;
    Group groups[kGroups];
    typename Eights::Found found[2];
    uint32_t absent = 0;  // of the group before
    const size_t group_count = (count + kGroup - 1) / kGroup;
    for (size_t turn = 0; turn < group_count + kGroupsAhead; ++turn) {
      if (turn < group_count) [[likely]] {
        const size_t begin = turn * kGroup;
        Fetch<kRest>(binding, plan, keys + begin, std::min(kGroup, count - begin),
                     groups[turn % kGroups], out + begin);
      }
      const size_t due = turn - kGroupsAhead;
      const size_t begin = due * kGroup;
      const Group& before = groups[(due + kGroups - 1) % kGroups];  // of no keys at the beginning
      if (absent != 0) [[unlikely]] {
        DecideSome(binding, plan, before, absent, keys + begin - kGroup, now, now_ns, cost,
                   out + begin - kGroup, denials);
        absent = 0;
      }
      if (kEights && turn + 1 >= kGroupsAhead && turn + 1 < group_count + kGroupsAhead) {
        const size_t next = due + 1;
        Find(question, groups[next % kGroups], found[next % 2]);
      }
      if (turn < kGroupsAhead) [[unlikely]] {
        continue;
      }
      const Group& arrived = groups[due % kGroups];
      if (arrived.refused != 0 || holder) [[unlikely]] {
        absent = DecideAnyGroup<kRest>(binding, plan, arrived, keys + begin, now, now_ns, cost,
                                       holder, out + begin, denials);
        refusals += static_cast<uint64_t>(std::popcount(arrived.refused));
      } else if (kEights && arrived.size == kGroup) [[likely]] {
        absent = DecideEight(binding, plan, question, before, arrived, found[due % 2], keys + begin,
                             now, now_ns, cost, out + begin, denials);
      } else {
        absent = DecideGroup<kRest, true>(binding, plan, arrived, keys + begin, now, now_ns, cost,
                                          false, out + begin, denials);
      }
    }
    if (absent != 0) [[unlikely]] {
      const size_t last = group_count - 1;
      DecideSome(binding, plan, groups[last % kGroups], absent, keys + last * kGroup, now, now_ns,
                 cost, out + last * kGroup, denials);
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
