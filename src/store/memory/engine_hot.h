// The hot loops: searching a key's line and charging it, one key at a time or many with the memory
// of later keys fetched ahead.
//
// Included once by each engine_<isa>.cc, which defines
//   WEIR_ISA      the namespace for this instruction set
//   WEIR_TARGET   the function attribute that lets the compiler use it
//   Matcher       with Compact(line, identity) and Wide(line, identity): a bit per matching slot
// before it. Only these functions are compiled for the instruction set; all that they call is built
// for the baseline, so no instruction can leak into code that other processors run.

namespace weir::store::WEIR_ISA {

namespace {

// Keys hashed and fetched together. Measured: 16 and 24 are alike, 8 and 32 are slower, and so is
// a rolling window, whose two halves compete for registers.
constexpr size_t kGroup = 16;

template <class Layout, class Algo>
struct Hot {
  using Cold = Engine<Layout, Algo>;
  using State = typename Algo::State;
  using Now = typename Algo::Now;

  WEIR_TARGET static unsigned Match(const Line& line, uint64_t identity) noexcept {
    if constexpr (Layout::kSlot == algorithm::SlotKind::kCompact) {
      return Matcher::Compact(line, identity);
    } else {
      return Matcher::Wide(line, identity);
    }
  }

  // The common case, inlined: the key is on its home line, its state was written under the current
  // plan and nobody else is charging it. False: nothing has happened yet, decide the long way.
  [[gnu::always_inline]] WEIR_TARGET static bool DecideAtHome(const Binding& binding,
                                                              const Plan& plan, Line& line,
                                                              uint64_t hash, const Now& now,
                                                              const Request& request,
                                                              Decision& out) noexcept {
    const uint64_t identity = Layout::IdentityOf(hash, binding.id);
    const unsigned matches = Match(line, identity);
    if (matches == 0) [[unlikely]] {
      return false;
    }
    const auto slot = static_cast<unsigned>(std::countr_zero(matches));
    const Snapshot snapshot = Layout::Read(line, slot);
    if (Layout::IdentityAt(line, slot, snapshot) != identity ||
        Layout::Generation(snapshot.value) != plan.generation) [[unlikely]] {
      return false;
    }
    State state = Algo::Load(plan, Layout::Payload(snapshot.value), now);
    return Cold::template Apply<true>(plan, state, now, request, out)
               ? Layout::CommitOnce(snapshot, plan.generation, Algo::Save(plan, state, now)) &&
                     Layout::StillOwned(line, slot, identity)
               : Layout::StillCurrent(snapshot);
  }

  // All other cases: keys beyond their home, first charges, lost races, changed quotas.
  [[gnu::noinline]] WEIR_TARGET static void DecideAnywhere(Binding& binding, std::string_view key,
                                                           uint64_t hash, uint64_t now_ns,
                                                           const Request& request,
                                                           Decision& out) noexcept {
    Table& table = *binding.table;
    const uint64_t home = table.HomeOf(hash);
    const uint64_t identity = Layout::IdentityOf(hash, binding.id);
    const uint64_t key_hash = base::HashKey(key, binding.store->secret);
    const uint64_t phase = Cold::PhaseFor(binding, key);
    for (unsigned distance = 0; distance < Table::kProbe; ++distance) {
      Line& line = table.line(home + distance);
      const unsigned matches = Match(line, identity);
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

  [[gnu::always_inline]] static void Tally(const Counters::Mine& mine,
                                           const Decision& decision) noexcept {
    mine.Add(decision.allowed() ? &CounterCell::allowed : &CounterCell::denials, 1);
  }

  // A cost that can never fit is answered with what the key has left, and charges nothing.
  [[gnu::noinline]] static void TooCostly(Binding& binding, std::string_view key, uint64_t cost,
                                          uint64_t now_ns, Decision& out) noexcept {
    const uint64_t key_hash = base::HashKey(key, binding.store->secret);
    Cold::DecideScalar(binding, *binding.table, key_hash, Cold::PhaseFor(binding, key), now_ns,
                       Request{.cost = 0}, out);
    out.outcome = Outcome::kRefused;
    out.problem = cost > Cost::kMax ? Problem::kCostTooLarge : Problem::kCostAboveBurst;
    binding.store->counters.Get().Add(&CounterCell::refusals, 1);
  }

  [[gnu::noinline]] static void BadKey(Binding& binding, Problem problem, Decision& out) noexcept {
    out = Refused(problem, binding.plan().burst);
    binding.store->counters.Get().Add(&CounterCell::refusals, 1);
  }

  static bool CostFits(const Plan& plan, uint64_t cost) noexcept {
    return cost <= (Algo::kCountsUnits ? plan.burst : Cost::kMax);
  }

  // Everything out of the ordinary, out of line, so that the ordinary case stays small: the less of
  // it there is, the more of the next decision's memory access overlaps with it.
  [[gnu::noinline]] static void CheckRefused(Binding& binding, std::string_view key, uint64_t cost,
                                             uint64_t now_ns, Decision& out) noexcept {
    const Problem problem = CheckKey(*binding.store, key);
    if (problem != Problem::kNone) {
      BadKey(binding, problem, out);
    } else {
      TooCostly(binding, key, cost, now_ns, out);
    }
  }

  WEIR_TARGET static Decision Check(Binding& binding, std::string_view key, uint64_t cost,
                                    uint64_t now_ns) noexcept {
    Decision out;  // returned on every path, so that it is built where the caller wants it
    SharedState& store = *binding.store;
    const Plan& plan = binding.plan();
    if (CheckKey(store, key) != Problem::kNone || !CostFits(plan, cost)) [[unlikely]] {
      CheckRefused(binding, key, cost, now_ns, out);
      return out;
    }
    const uint64_t hash = base::MixHash(base::HashKey(key, store.secret), binding.salt);
    const uint64_t phase = Algo::kUsesWindows ? Cold::PhaseFor(binding, key) : 0;
    const Moment moment = Cold::MomentFor(binding, now_ns, phase);
    Table& table = *binding.table;
    if (!DecideAtHome(binding, plan, table.line(table.HomeOf(hash)), hash, Algo::At(plan, moment),
                      Request{.cost = cost}, out)) [[unlikely]] {
      DecideAnywhere(binding, key, hash, now_ns, Request{.cost = cost}, out);
    }
    Tally(store.counters.Get(), out);
    return out;
  }

  static void Charge(Binding& binding, std::string_view key, const Request& request,
                     uint64_t now_ns, Decision& out) noexcept {
    SharedState& store = *binding.store;
    if (request.receipt != nullptr) {
      *request.receipt = Receipt{};
    }
    const Problem problem = CheckKey(store, key);
    if (problem != Problem::kNone) [[unlikely]] {
      BadKey(binding, problem, out);
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
    if (request.mode != ChargeMode::kDryRun) {
      Tally(store.counters.Get(), out);
    }
  }

  // In groups: the lines of a whole group are asked for while its keys are hashed, and have arrived
  // by the time the first of them is decided.
  WEIR_TARGET static void CheckMany(Binding& binding, const std::string_view* keys, size_t count,
                                    uint64_t cost, uint64_t now_ns, Decision* out) noexcept {
    SharedState& store = *binding.store;
    const Plan& plan = binding.plan();
    if (!CostFits(plan, cost) || (Algo::kUsesWindows && binding.needs_phase)) {
      for (size_t i = 0; i < count; ++i) {
        out[i] = Check(binding, keys[i], cost, now_ns);
      }
      return;
    }
    const Table& table = *binding.table;
    const Request request{.cost = cost};
    const Now now = Algo::At(plan, Cold::MomentFor(binding, now_ns, 0));
    uint64_t denials = 0;
    uint64_t refusals = 0;
    uint64_t hashes[2][kGroup];
    size_t ready = 0;  // keys of the group before, hashed and fetched
    for (size_t begin = 0; begin < count + kGroup; begin += kGroup) {
      const size_t size = begin < count ? std::min(kGroup, count - begin) : 0;
      uint64_t* const fetched = hashes[(begin / kGroup) % 2];
      for (size_t i = 0; i < size; ++i) {
        const std::string_view key = keys[begin + i];
        const Problem problem = CheckKey(store, key);
        out[begin + i].problem = problem;
        if (problem != Problem::kNone) [[unlikely]] {
          out[begin + i] = Refused(problem, plan.burst);
          ++refusals;
          continue;
        }
        fetched[i] = base::MixHash(base::HashKey(key, store.secret), binding.salt);
        __builtin_prefetch(&table.line(table.HomeOf(fetched[i])), 1, 3);
      }
      const uint64_t* const arrived = hashes[1 - (begin / kGroup) % 2];
      for (size_t i = 0; i < ready; ++i) {
        Decision& decision = out[begin - kGroup + i];
        if (decision.problem != Problem::kNone) [[unlikely]] {
          continue;
        }
        const uint64_t hash = arrived[i];
        if (!DecideAtHome(binding, plan, table.line(table.HomeOf(hash)), hash, now, request,
                          decision)) [[unlikely]] {
          DecideAnywhere(binding, keys[begin - kGroup + i], hash, now_ns, request, decision);
        }
        denials += static_cast<uint64_t>(!decision.allowed());
      }
      ready = size;
    }
    const Counters::Mine mine = store.counters.Get();
    mine.Add(&CounterCell::allowed, count - refusals - denials);
    mine.Add(&CounterCell::denials, denials);
    mine.Add(&CounterCell::refusals, refusals);
  }

  static constexpr EngineOps kOps = {
      .check = &Check,
      .check_many = &CheckMany,
      .charge = &Charge,
      .give_back = &Cold::GiveBack,
      .used = &Cold::Used,
  };
};

}  // namespace

// Not a header to be shared: each engine_<isa>.cc has this once, in a namespace of its own.
// NOLINTNEXTLINE(misc-definitions-in-headers)
const EngineOps& Ops(const algorithm::Plan& plan) noexcept {
  using algorithm::CompactTicks;
  using algorithm::WideTicks;
  const bool gap = plan.algorithm == Algorithm::kMinGap;
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
      break;
  }
  return Hot<WideLayout, algorithm::FixedWindow>::kOps;
}

}  // namespace weir::store::WEIR_ISA
