// The hot loops: searching a key's line and charging it, one key at a time or many with the memory
// of later keys fetched ahead.
//
// Included once by each engine_<isa>.cc, which defines
//   WEIR_ISA      the namespace for this instruction set
//   WEIR_TARGET   the function attribute that lets the compiler use it
//   Matcher       with Match<Layout, kMask>(line, wanted): a bit per slot whose identity, under
//                 the mask, is the wanted one
// before it. Only these functions are compiled for the instruction set; all that they call is built
// for the baseline, so no instruction can leak into code that other processors run.

namespace weir::store::WEIR_ISA {

namespace {

// Keys hashed and fetched together. Measured: 16 and 24 are alike, 8 and 32 are slower, and so is
// a rolling window, whose two halves compete for registers.
constexpr size_t kGroup = 16;

// What became of a key on its home line. kElsewhere, kLost: nothing has happened yet, decide the
// long way; somebody else was faster if kLost.
enum class AtHome { kAllowed, kDenied, kElsewhere, kLost };

// What is above the payload means nothing here, which saves some policies a step.
template <class Algo>
[[gnu::always_inline]] inline uint64_t SaveLow(const Plan& plan, const typename Algo::State& state,
                                               const typename Algo::Now& now) noexcept {
  if constexpr (requires { Algo::SaveLow(plan, state, now); }) {
    return Algo::SaveLow(plan, state, now);
  } else {
    return Algo::Save(plan, state, now);
  }
}

template <class Layout, class Algo>
struct Hot {
  using Cold = Engine<Layout, Algo>;
  using Reply = Answer<Algo>;
  using Later = Afterwards<Layout, Algo>;
  using State = typename Algo::State;
  using Now = typename Algo::Now;

  // The common case, inlined: the key is on its home line, its state was written under the current
  // plan and nobody else is charging it. REQUIRES: 0 < cost <= burst, and Reply::Begin.
  [[gnu::always_inline]] WEIR_TARGET static AtHome DecideAtHome(const Plan& plan, Line& line,
                                                                uint64_t wanted, const Now& now,
                                                                uint64_t cost,
                                                                Decision& out) noexcept {
    const unsigned matches = Matcher::template Match<Layout, Layout::kWantedMask>(line, wanted);
    if (matches == 0) [[unlikely]] {
      return AtHome::kElsewhere;
    }
    const auto slot = static_cast<unsigned>(std::countr_zero(matches));
    const Current current = Layout::ReadCurrent(line, slot, wanted, plan.generation_mark);
    if (!current.wanted) [[unlikely]] {
      return AtHome::kElsewhere;
    }
    State state = Algo::Load(plan, current.low, now);
    if (!Algo::Take(plan, state, cost)) {
      if (!Layout::StillCurrent({current.word, current.value})) [[unlikely]] {
        return AtHome::kElsewhere;
      }
      AnswerDenied(plan, state, current.low, now, cost, out);
      return AtHome::kDenied;
    }
    // The answer is complete before the swap, so that nothing of it is kept in a register across.
    // If the swap fails, all of it is written anew.
    uint64_t desired = WithPayload<Layout>(current, SaveLow<Algo>(plan, state, now));
    base::WorkOut(desired);
    Reply::EndAllowed(plan, state, now, out);
    if (!Replace(current, desired) || !Layout::StillOwned(line, slot, wanted)) [[unlikely]] {
      return AtHome::kLost;
    }
    return AtHome::kAllowed;
  }

  // The end of a denial. The state is worked out again from what is kept anyway, rather than kept
  // for this; all but a bucket's wait, which was on its way when the charge did not fit.
  [[gnu::always_inline]] static void AnswerDenied(const Plan& plan, const State& state,
                                                  uint64_t low, const Now& now, uint64_t cost,
                                                  Decision& out) noexcept {
    const Plan* again = &plan;
    base::WorkOut(again);
    base::WorkOut(low);
    if constexpr (requires { Algo::LoadRefused(plan, low, now); }) {
      uint64_t retry_ns = Algo::RetryNs(plan, state, now, cost);
      base::WorkOut(retry_ns);
      Reply::EndDenied(*again, Algo::LoadRefused(*again, low, now), now, out.charged, retry_ns,
                       out);
    } else {
      const State refused = Algo::Load(*again, low, now);
      Reply::EndDenied(*again, refused, now, out.charged,
                       Algo::RetryNs(*again, refused, now, out.charged), out);
    }
  }

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
    if (!Absent(line, identity) || !RestInSketch(binding, plan, hash, nullptr, now_ns, cost, out)) {
      return false;
    }
#if !defined(__x86_64__)
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
    // On x86 the swap in the sketch is the fence.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return Absent(line, identity);
  }

  // All other cases: keys beyond their home, first charges, lost races, changed quotas, peeks.
  [[gnu::noinline]] WEIR_TARGET static void DecideAnywhere(Binding& binding, std::string_view key,
                                                           uint64_t now_ns, uint64_t cost,
                                                           Decision& out) noexcept {
    Table& table = *binding.table;
    const Request request{.cost = cost};
    const uint64_t key_hash = base::HashKey(key, binding.store->secret);
    const uint64_t hash = base::MixHash(key_hash, binding.salt);
    const uint64_t home = table.HomeOf(hash);
    const uint64_t identity = Layout::IdentityOf(hash, binding.id);
    const uint64_t phase = Cold::PhaseFor(binding, key);
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

  static void Tally(const Binding& binding, const Decision& decision) noexcept {
    binding.store->counters.Get().Add(
        decision.allowed() ? &CounterCell::allowed : &CounterCell::denials, 1);
  }

  // A cost that can never fit is answered with what the key has left, and charges nothing.
  static void TooCostly(Binding& binding, std::string_view key, uint64_t cost, uint64_t now_ns,
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

  // What the short way does not take: windows shifted per key, and a thread's first decision.
  [[gnu::always_inline]] static bool NeedsLongWay(const Binding& binding) noexcept {
    return !Counters::HasOwn() || (Algo::kUsesWindows && binding.needs_phase);
  }

  // The second half of the short way, from the moment that the key's line is known.
  [[gnu::always_inline]] WEIR_TARGET static bool Finish(const Binding& binding, const Plan& plan,
                                                        Line& line, uint64_t hash, uint64_t now_ns,
                                                        uint64_t cost, Decision& out) noexcept {
    uint64_t wanted = Layout::Wanted(hash, binding.id, plan);
    if (wanted == 0) [[unlikely]] {
      return false;
    }
    CounterCell* cell = &binding.store->counters.Own();
    base::WorkOut(wanted);
    base::WorkOut(cell);
    Now now = Algo::At(plan, Cold::MomentFor(binding, now_ns, 0));
    if constexpr (!Algo::kUsesWindows) {
      base::WorkOut(now.tick);
    }
    switch (DecideAtHome(plan, line, wanted, now, cost, out)) {
      [[likely]] case AtHome::kAllowed:
        Counters::Increment(cell->allowed);
        return true;
      case AtHome::kDenied:
        Counters::Increment(cell->denials);
        return true;
      case AtHome::kLost:
        Counters::Increment(cell->lost_races);
        break;
      case AtHome::kElsewhere:
        break;
    }
    return false;
  }

  // The first half: from the hash to what else can still send a question the long way.
  [[gnu::always_inline]] WEIR_TARGET static bool TryHashed(const Binding& binding, uint64_t hash,
                                                           Timestamp now, uint64_t cost,
                                                           Decision& out) noexcept {
    base::WorkOut(hash);
    Line* line = &binding.homes.Of(hash);
    base::WorkOut(line);
    const Plan& plan = binding.plan();
    const TableClock& clock = binding.store->clock;
    const uint64_t now_ns = clock.ToStore(now);
    const uint32_t burst = plan.burst;
    Reply::Begin(burst, static_cast<uint32_t>(cost), out);
    if (cost - 1 >= burst || !clock.Accepts(now_ns) || NeedsLongWay(binding)) [[unlikely]] {
      return false;
    }
    return Finish(binding, plan, *line, hash, now_ns, cost, out);
  }

  // Reading a clock waits for all loads before it, but not for what is being fetched: so the line
  // is asked for first.
  [[gnu::always_inline]] WEIR_TARGET static bool TryHashedNow(const Binding& binding, uint64_t hash,
                                                              uint64_t cost,
                                                              Decision& out) noexcept {
    Line& line = binding.homes.Of(hash);
    __builtin_prefetch(&line, 1, 3);
    const Plan& plan = binding.plan();
    const uint32_t burst = plan.burst;
    Reply::Begin(burst, static_cast<uint32_t>(cost), out);
    if (cost - 1 >= burst || NeedsLongWay(binding)) [[unlikely]] {
      return false;
    }
    return Finish(binding, plan, line, hash, binding.store->ReadClock(), cost, out);
  }

  static uint64_t HashFor(const Binding& binding, std::string_view key) noexcept {
    return base::MixHash(base::HashKey(key, binding.store->secret), binding.salt);
  }

  // Keys of other lengths: the same with a frame, for the hash is a call.
  [[gnu::noinline]] WEIR_TARGET static bool TryCheckOther(Binding& binding, std::string_view key,
                                                          Timestamp now, uint64_t cost,
                                                          Decision& out) noexcept {
    return CheckKey(*binding.store, key) == Problem::kNone &&
           TryHashed(binding, HashFor(binding, key), now, cost, out);
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
    const base::UsualKey usual(key);
    if (usual.HasNul()) [[unlikely]] {
      return TryCheckOther(binding, key, now, cost, out);
    }
    const uint64_t hash = base::MixHash(usual.Hash(binding.store->secret), binding.salt);
    return TryHashed(binding, hash, now, cost, out);
  }

  WEIR_TARGET static bool TryCheckNow(Binding& binding, std::string_view key, uint64_t cost,
                                      Decision& out) noexcept {
    if (!base::UsualKey::Fits(key)) [[unlikely]] {
      return TryCheckOtherNow(binding, key, cost, out);
    }
    const base::UsualKey usual(key);
    if (usual.HasNul()) [[unlikely]] {
      return TryCheckOtherNow(binding, key, cost, out);
    }
    const uint64_t hash = base::MixHash(usual.Hash(binding.store->secret), binding.salt);
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
    if (cost - 1 >= plan.burst || NeedsLongWay(binding) ||
        CheckKey(*binding.store, key) != Problem::kNone) [[unlikely]] {
      return false;
    }
    const uint64_t hash = HashFor(binding, key);
    Line& line = binding.homes.Of(hash);
    if (DecideAtRest(binding, plan, line, hash, now_ns, cost, out)) {
      Counters::Increment(binding.store->counters.Own().allowed);
      return true;
    }
    return Finish(binding, plan, line, hash, now_ns, cost, out);
  }

  // Any key, any cost.
  WEIR_TARGET static void Check(Binding& binding, std::string_view key, uint64_t cost,
                                uint64_t now_ns, Decision& out) noexcept {
    const Problem problem = CheckKey(*binding.store, key);
    if (problem != Problem::kNone) {
      Refuse(binding, problem, out);
    } else if (!CostFits(binding.plan(), cost)) {
      TooCostly(binding, key, cost, now_ns, out);
    } else {
      DecideAnywhere(binding, key, now_ns, cost, out);
      Tally(binding, out);
    }
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
      TooCostly(binding, key, request.cost, now_ns, out);
      return;
    }
    const uint64_t key_hash = base::HashKey(key, store.secret);
    Cold::DecideScalar(binding, *binding.table, key_hash, Cold::PhaseFor(binding, key), now_ns,
                       request, out);
    if (out.outcome == Outcome::kRefused) [[unlikely]] {
      store.counters.Get().Add(&CounterCell::refusals, 1);
    } else if (request.mode != ChargeMode::kDryRun) {
      Tally(binding, out);
    }
  }

  static void ChargeHashed(Binding& binding, uint64_t key_hash, uint64_t phase,
                           const Request& request, uint64_t now_ns, Decision& out) noexcept {
    Cold::DecideScalar(binding, *binding.table, key_hash, phase, now_ns, request, out);
    Tally(binding, out);
  }

  // A group of keys under way.
  struct Group {
    size_t size = 0;
    uint32_t refused = 0;  // a bit each; the others are hashed, and their lines asked for
    uint64_t hashes[kGroup];
  };

  [[gnu::always_inline]] WEIR_TARGET static void Fetch(const Binding& binding, const Plan& plan,
                                                       const std::string_view* keys, size_t size,
                                                       Group& group, Decision* out) noexcept {
    const SharedState& store = *binding.store;
    const bool sketch_first = binding.sketch_first;
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
      group.hashes[i] = base::MixHash(key_hash, binding.salt);
      __builtin_prefetch(&binding.homes.Of(group.hashes[i]), 1, 3);
      if (sketch_first) {
        store.sketch->Prefetch(plan.sketch, Sketch::HashOf(group.hashes[i], plan.generation));
      }
    }
    group.size = size;
    group.refused = refused;
  }

  // Returns how many were denied. Match and swap key by key: all matches first and the swaps after
  // them was measured to be slower.
  [[gnu::always_inline]] WEIR_TARGET static uint64_t DecideGroup(
      Binding& binding, const Plan& plan, const Group& group, const std::string_view* keys,
      const Now& now, uint64_t now_ns, uint64_t cost, Decision* out) noexcept {
    uint64_t denied = 0;
    for (size_t i = 0; i < group.size; ++i) {
      if ((group.refused >> i & 1U) != 0) [[unlikely]] {
        continue;
      }
      const uint64_t hash = group.hashes[i];
      const uint64_t wanted = Layout::Wanted(hash, binding.id, plan);
      AtHome result = AtHome::kElsewhere;
      if (wanted != 0) [[likely]] {
        Reply::Begin(plan.burst, static_cast<uint32_t>(cost), out[i]);
        result = DecideAtHome(plan, binding.homes.Of(hash), wanted, now, cost, out[i]);
      }
      if (result == AtHome::kElsewhere || result == AtHome::kLost) [[unlikely]] {
        if (result == AtHome::kLost) {
          binding.store->counters.Get().Add(&CounterCell::lost_races, 1);
        }
        if (!binding.sketch_first ||
            !DecideAtRest(binding, plan, binding.homes.Of(hash), hash, now_ns, cost, out[i])) {
          DecideAnywhere(binding, keys[i], now_ns, cost, out[i]);
        }
        result = out[i].allowed() ? AtHome::kAllowed : AtHome::kDenied;
      }
      denied += static_cast<uint64_t>(result == AtHome::kDenied);
    }
    return denied;
  }

  // In groups: the lines of a whole group are asked for while its keys are hashed, and have arrived
  // by the time the first of them is decided.
  WEIR_TARGET static void CheckMany(Binding& binding, const std::string_view* keys, size_t count,
                                    uint64_t cost, uint64_t now_ns, Decision* out) noexcept {
    const Plan& plan = binding.plan();
    if (cost - 1 >= plan.burst || (Algo::kUsesWindows && binding.needs_phase)) [[unlikely]] {
      for (size_t i = 0; i < count; ++i) {
        Check(binding, keys[i], cost, now_ns, out[i]);
      }
      return;
    }
    const Now now = Algo::At(plan, Cold::MomentFor(binding, now_ns, 0));
    uint64_t denials = 0;
    uint64_t refusals = 0;
    Group groups[2];
    for (size_t begin = 0; begin < count + kGroup; begin += kGroup) {
      if (begin < count) [[likely]] {
        const size_t size = std::min(kGroup, count - begin);
        Fetch(binding, plan, keys + begin, size, groups[begin / kGroup % 2], out + begin);
      }
      if (begin != 0) [[likely]] {
        const Group& arrived = groups[1 - begin / kGroup % 2];
        denials += DecideGroup(binding, plan, arrived, keys + (begin - kGroup), now, now_ns, cost,
                               out + (begin - kGroup));
        refusals += static_cast<uint64_t>(std::popcount(arrived.refused));
      }
    }
    const Counters::Mine mine = binding.store->counters.Get();
    mine.Add(&CounterCell::allowed, count - refusals - denials);
    mine.Add(&CounterCell::denials, denials);
    mine.Add(&CounterCell::refusals, refusals);
  }

  static constexpr EngineOps kOps = {
      .try_check = &TryCheck,
      .try_check_now = &TryCheckNow,
      .try_rest = &TryRest,
      .try_rest_now = &TryRestNow,
      .check = &Check,
      .check_many = &CheckMany,
      .charge = &Charge,
      .charge_hashed = &ChargeHashed,
      .give_back = &Later::GiveBack,
      .used = &Later::Used,
  };
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
               ? Hot<CompactLayout, algorithm::GcraQueue<CompactTicks>>::kOps
               : Hot<WideLayout, algorithm::GcraQueue<WideTicks>>::kOps;
  }
  if (plan.slot == algorithm::SlotKind::kCompact) {
    return gap ? Hot<CompactLayout, algorithm::MinGap<CompactTicks>>::kOps
               : Hot<CompactLayout, algorithm::Gcra<CompactTicks>>::kOps;
  }
  switch (plan.algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      return Hot<WideLayout, algorithm::Gcra<WideTicks>>::kOps;
    case Algorithm::kMinGap:
      return Hot<WideLayout, algorithm::MinGap<WideTicks>>::kOps;
    case Algorithm::kFixedWindow:
      if (plan.start == WindowStart::kFirstHit) {
        return Hot<WideLayout, algorithm::FirstHitWindow>::kOps;
      }
      break;
    case Algorithm::kSlidingWindow:
      return Hot<WideLayout, algorithm::SlidingWindow>::kOps;
    case Algorithm::kCalendar:
    case Algorithm::kSlidingLog:  // records: record_engine.cc
    case Algorithm::kSlicedWindow:
    case Algorithm::kConcurrency:
      break;
  }
  return Hot<WideLayout, algorithm::FixedWindow>::kOps;
}

}  // namespace weir::store::WEIR_ISA
