// The common case of a decision: the key is on its home line, its state was written under the
// current plan and nobody else is charging it. Included by engine_hot.h, which says what for.

namespace weir::store::WEIR_ISA {

namespace {

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
struct Home {
  using Reply = Answer<Algo>;
  using State = typename Algo::State;
  using Now = typename Algo::Now;

  // REQUIRES: 0 < cost <= burst, and Reply::Begin.
  [[gnu::always_inline]] WEIR_TARGET static AtHome Decide(const SharedState& store,
                                                          const Plan& plan, Line& line,
                                                          uint64_t wanted, const Now& now,
                                                          uint64_t cost, Decision& out) noexcept {
    if constexpr (Single<Layout, Algo>::kDecides) {
      return Single<Layout, Algo>::Decide(store.leases.marks, plan, line, wanted, now, cost, out);
    }
    const unsigned matches = Matcher::template Match<Layout, Layout::kWantedMask>(line, wanted);
    if (matches == 0) [[unlikely]] {
      return AtHome::kElsewhere;
    }
    const auto slot = static_cast<unsigned>(std::countr_zero(matches));
    const Current current = Layout::ReadCurrent(line, slot, wanted, plan.generation_mark);
    if (!current.wanted) [[unlikely]] {
      return AtHome::kElsewhere;
    }
    const Attempt<Algo> attempt(plan, current.value, now, cost);
    // The answers read the plan again, rather than keep what the charge was compared with: with
    // that, a frame would be needed.
    const Plan* again = &plan;
    if (!attempt.Fits(plan)) {
      if (!Layout::StillCurrent({current.word, current.value})) [[unlikely]] {
        return AtHome::kElsewhere;
      }
      base::WorkOut(again);
      attempt.AnswerDenied(*again, now, out);
      return MayDeny(store, current) ? AtHome::kDenied : AtHome::kElsewhere;
    }
    // The answer is complete before the swap, so that nothing of it is kept in a register across.
    // If the swap fails, all of it is written anew.
    const State state = attempt.Charged();
    uint64_t desired = WithPayload<Layout>(current, SaveLow<Algo>(plan, state, now));
    base::WorkOut(desired);
    base::WorkOut(again);
    Reply::EndAllowed(*again, state, now, Reply::Left(*again, state, now), out);
    if (!Replace(current, desired) || !Layout::StillOwned(line, slot, wanted)) [[unlikely]] {
      return AtHome::kLost;
    }
    return AtHome::kAllowed;
  }

 private:
  // Whether a denial by this state, on its home line, may stand: no units of that line's keys are
  // out on lease.
  [[gnu::always_inline]] static bool MayDeny(const SharedState& store,
                                             const Current& current) noexcept {
    return !Leases<Layout, Algo>::kUsable || store.leases.marks.Quiet(current.word);
  }
};

}  // namespace

}  // namespace weir::store::WEIR_ISA
