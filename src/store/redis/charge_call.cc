#include "store/redis/charge_call.h"

#include <algorithm>
#include <array>

#include "algorithm/fixed_window.h"
#include "algorithm/gcra.h"
#include "algorithm/gcra_queue.h"
#include "algorithm/min_gap.h"
#include "algorithm/sliced_window.h"
#include "algorithm/sliding_window.h"
#include "base/assert.h"
#include "store/memory/answer.h"

namespace weir::script {

namespace {

using algorithm::Plan;
using Bucket = algorithm::Gcra<SharedTicks>;
using Queue = algorithm::GcraQueue<SharedTicks>;
using Gap = algorithm::MinGap<SharedTicks>;

constexpr uint64_t kUsNs = SharedTicks::kUsNs;

// As the scripts number them (lua/prelude.lua).
enum class WireMode : uint8_t { kAdmit, kAlways, kUpTo, kDryRun, kNever };

WireMode WireOf(ChargeMode mode) {
  switch (mode) {
    case ChargeMode::kAdmit:
      return WireMode::kAdmit;
    case ChargeMode::kCountAlways:
      return WireMode::kAlways;
    case ChargeMode::kUpTo:
      return WireMode::kUpTo;
    case ChargeMode::kDryRun:
      break;
  }
  return WireMode::kDryRun;
}

bool IsBounded(ChargeMode mode) {
  return mode == ChargeMode::kAdmit || mode == ChargeMode::kDryRun;
}

// A queue's law for those who do not wait longer than that.
Plan LawFor(const Ask& ask) {
  const Plan& law = ask.plan->law();
  const bool bounded =
      ask.plan->is_queue() && ask.max_wait_ns != kAnyWait && ask.mode != ChargeMode::kCountAlways;
  return bounded ? Queue::Within(law, ask.max_wait_ns) : law;
}

// Why it can never be answered as asked.
Problem ProblemOf(const Ask& ask) {
  if (ask.cost > Cost::kMax) {
    return Problem::kCostTooLarge;
  }
  if (IsBounded(ask.mode) && ask.plan->counts_units() && ask.cost > ask.plan->law().burst) {
    return Problem::kCostAboveBurst;
  }
  if (IsBounded(ask.mode) && ask.plan->is_queue() && ask.cost != 0 &&
      !Queue::Possible(LawFor(ask), ask.cost)) {
    return Problem::kMaxWaitTooShort;
  }
  return Problem::kNone;
}

// Ticks as (microseconds, ticks beyond them).
struct Split {
  uint64_t us;
  uint64_t ticks;
};

Split SplitTicks(const Plan& law, uint64_t ticks) {
  return {ticks / law.subdivision, ticks % law.subdivision};
}

// A bucket's charge in whole microseconds that may be denied: three numbers say all of it.
bool IsUsual(const Ask& ask) {
  return ask.plan->script() == Id::kBucket && ask.plan->interval_code() != 0 &&
         ask.mode == ChargeMode::kAdmit && ask.cost != 0 && ask.max_wait_ns == kAnyWait &&
         ProblemOf(ask) == Problem::kNone;
}

void PutBucket(const Ask& ask, uint64_t cost, TextList& out) {
  const Plan law = LawFor(ask);
  if (IsUsual(ask)) {
    out.Put(cost * law.emission);
    out.Put(law.tolerance);
    out.Put(uint64_t{ask.plan->interval_code()});
    return;
  }
  const Split increment =
      SplitTicks(law, std::min(base::SaturatingMul(cost, law.emission), law.debt_max));
  const Split tolerance = SplitTicks(law, law.tolerance);
  const Split most = SplitTicks(law, law.debt_max);
  const Split interval = SplitTicks(law, law.emission);
  out.Put(increment.us);
  out.Put(tolerance.us);
  out.Put(most.us);
  out.Put(interval.us);
  out.Put(uint64_t{ask.plan->interval_code()});
  if (law.subdivision != 1) {
    out.Put(law.subdivision);
    out.Put(increment.ticks);
    out.Put(tolerance.ticks);
    out.Put(most.ticks);
    out.Put(interval.ticks);
  }
}

void PutPeriods(const SharedPlan& plan, int64_t around_us, TextList& out) {
  const auto us = [](int64_t ns) { return static_cast<double>(ns / static_cast<int64_t>(kUsNs)); };
  const algorithm::Period now = plan.PeriodAt(around_us);
  const auto at = [&](int64_t ns) { return plan.PeriodAt(ns / static_cast<int64_t>(kUsNs)); };
  out.Put(us(at(now.begin_ns - static_cast<int64_t>(kUsNs)).begin_ns));
  out.Put(us(now.begin_ns));
  out.Put(us(now.end_ns));
  out.Put(us(at(now.end_ns).end_ns));
}

void PutWindow(const Ask& ask, uint64_t cost, int64_t around_us, TextList& out) {
  const SharedPlan& plan = *ask.plan;
  const Plan& law = plan.law();
  const uint64_t window_us = law.window_ns / kUsNs;
  const bool calendar = law.algorithm == Algorithm::kCalendar;
  const bool first_hit = law.start == WindowStart::kFirstHit;
  out.Put(cost);
  out.Put(uint64_t{law.limit});
  out.Put(law.count_max);
  out.Put(plan.family());
  out.Put(uint64_t{calendar ? 2U : first_hit ? 1U : 0U});
  out.Put(window_us);
  if (calendar) {
    PutPeriods(plan, around_us, out);
  } else if (!first_hit) {
    out.Put(law.start == WindowStart::kPerKey ? ask.key[0] % window_us : uint64_t{0});
  }
}

// The ask as its script reads it: see the head of each lua/*.lua.
void PutAsk(const Ask& ask, int64_t around_us, TextList& out) {
  const Plan& law = ask.plan->law();
  const bool never = ProblemOf(ask) != Problem::kNone;
  const uint64_t cost = never ? 0 : ask.cost;
  out.Put(static_cast<uint64_t>(never ? WireMode::kNever : WireOf(ask.mode)));
  switch (ask.plan->script()) {
    case Id::kBucket:
      PutBucket(ask, cost, out);
      break;
    case Id::kGap:
      out.Put(cost);
      out.Put(law.emission);
      out.Put(uint64_t{ask.plan->interval_code()});
      break;
    case Id::kWindow:
      PutWindow(ask, cost, around_us, out);
      break;
    case Id::kSliding:
      out.Put(cost);
      out.Put(uint64_t{law.limit});
      out.Put(law.count_max);
      out.Put(law.window_ns / kUsNs);
      break;
    case Id::kSliced:
      out.Put(cost);
      out.Put(uint64_t{law.limit});
      out.Put(law.count_max);
      out.Put(law.slice_ns / kUsNs);
      out.Put(uint64_t{law.slices});
      break;
    case Id::kLog:
      out.Put(cost);
      out.Put(uint64_t{law.limit});
      out.Put(law.window_ns / kUsNs);
      break;
    default:  // holds
      out.Put(cost);
      out.Put(uint64_t{law.limit});
      out.Put(ask.lease_us != 0 ? ask.lease_us : (law.window_ns + kUsNs - 1) / kUsNs);
      break;
  }
  out.End();
}

// What logs, slices and holds come to: the units in use, and instants that their scripts looked up.
struct Counted {
  static constexpr bool kCountsUnits = true;
  struct Now {};
  struct State {
    uint64_t used;
    uint64_t added;
    uint64_t most;  // that one call adds
    uint64_t retry_ns;
    uint64_t reset_ns;
    uint64_t reset_charged_ns;  // if this call adds anything
  };

  static bool Take(const Plan& plan, State& state, uint64_t cost) noexcept {
    if (state.used + state.added + cost > plan.limit) {
      return false;
    }
    state.added += cost;
    return true;
  }
  static uint64_t Available(const Plan& plan, const State& state, Now) noexcept {
    return algorithm::WindowCount::Available(plan, state.used + state.added);
  }
  static void Count(const Plan&, State& state, uint64_t cost) noexcept {
    state.added = std::min(base::SaturatingAdd(state.added, cost), state.most);
  }
  static uint64_t ResetNs(const Plan&, const State& state, Now) noexcept {
    return state.added != 0 ? state.reset_charged_ns : state.reset_ns;
  }
  static uint64_t RetryNs(const Plan&, const State& state, Now, uint64_t) noexcept {
    return state.retry_ns;
  }
  static uint64_t Used(const Plan&, const State& state, Now) noexcept {
    return (state.used + state.added) << algorithm::kUsedFractionBits;
  }
};

// One ask's part of a reply, and where the answer goes.
struct Part {
  const Ask& ask;
  std::span<const int64_t> values;
  uint64_t now_us;
  store::Request request;  // what was asked, or a look

  [[nodiscard]] uint64_t Value(size_t i) const { return static_cast<uint64_t>(values[i]); }
  // From now until an instant of the store; 0 if that has passed.
  [[nodiscard]] uint64_t NsUntil(int64_t us) const {
    const int64_t left = us - static_cast<int64_t>(now_us);
    return left > 0 ? static_cast<uint64_t>(left) * kUsNs : 0;
  }
};

template <class Algo>
void ReadBucket(const Part& part, Decision& out, Mark& mark) {
  const Plan& law = part.ask.plan->law();
  const auto now = Algo::At(law, {.ns = part.now_us * kUsNs});
  const uint64_t tat = part.Value(0) * law.subdivision + part.Value(1);
  auto state = Algo::Load(law, tat, now);
  store::Answer<Algo>::Apply(law, state, now, part.request, out);
  const Split after = SplitTicks(law, state.debt);
  mark.words = {part.now_us + after.us, after.ticks, part.Value(2), part.now_us};
}

void ReadGap(const Part& part, Decision& out, Mark& mark) {
  const Plan& law = part.ask.plan->law();
  const Gap::Now now = Gap::At(law, {.ns = part.now_us * kUsNs});
  Gap::State state = Gap::Load(law, part.Value(0), now);
  store::Answer<Gap>::Apply(law, state, now, part.request, out);
  mark.words = {part.now_us + state.debt, 0, 0, part.now_us};
}

void ReadWindow(const Part& part, Decision& out, Mark& mark) {
  const Plan& law = part.ask.plan->law();
  const uint64_t left_ns = part.NsUntil(part.values[0]);
  algorithm::FixedWindow::State state{0, part.Value(1), left_ns};
  store::Answer<algorithm::FixedWindow>::Apply(law, state, {0, left_ns}, part.request, out);
  mark.words = {part.Value(0), 0, 0, part.now_us};
}

void ReadSliding(const Part& part, Decision& out, Mark& mark) {
  using algorithm::SlidingWindow;
  const Plan& law = part.ask.plan->law();
  const uint64_t left_ns = part.NsUntil(part.values[0]);
  // A window that has not begun yet: for this key it is its first instant.
  const uint64_t weighted =
      SlidingWindow::Weigh(law, part.Value(1), std::min(left_ns, law.window_ns));
  SlidingWindow::State state{0, part.Value(1), part.Value(2), left_ns, weighted};
  store::Answer<SlidingWindow>::Apply(law, state, {0, left_ns}, part.request, out);
  mark.words = {part.Value(0), 0, 0, part.now_us};
}

void ReadCounted(const Part& part, Decision& out, Mark& mark) {
  using algorithm::SlicedWindow;
  const Plan& law = part.ask.plan->law();
  Counted::State state{};
  const std::span<const int64_t> v = part.values;
  switch (part.ask.plan->script()) {
    case Id::kSliced: {
      const auto until = [&](int64_t slice) {
        return slice < 0
                   ? 0
                   : SlicedWindow::EndOf(law, static_cast<uint64_t>(slice)) - part.now_us * kUsNs;
      };
      state = {part.Value(1), 0, law.count_max, until(v[2]), until(v[3]), until(v[0])};
      mark.words = {part.Value(0), 0, 0, part.now_us};
      break;
    }
    case Id::kLog: {
      const auto until = [&](int64_t stamp) {
        return stamp < 0 ? 0 : part.NsUntil(stamp + static_cast<int64_t>(law.window_ns / kUsNs));
      };
      state = {part.Value(0), 0, law.limit, until(v[2]), until(v[3]), until(v[1])};
      mark.words = {part.Value(4), 0, 0, part.now_us};
      break;
    }
    default:  // holds
      state = {part.Value(0),      0,
               base::LowBits(16),  part.NsUntil(v[3]),
               part.NsUntil(v[4]), part.NsUntil(std::max(v[2], v[4]))};
      mark.words = {part.Value(1), part.Value(2), 0, part.now_us};
      break;
  }
  store::Answer<Counted>::Apply(law, state, {}, part.request, out);
}

size_t ValuesOf(const Ask& ask) {
  constexpr size_t kValues[] = {3, 1, 2, 3, 4, 5, 5};
  return kValues[static_cast<size_t>(ask.plan->script())];
}

// The scripts tell time in microseconds, so a wait ends at a whole one.
Duration WholeUs(Duration wait) {
  constexpr auto kUs = static_cast<int64_t>(kUsNs);
  return Duration((wait.count() + kUs - 1) / kUs * kUs);
}

// False: the script and the law disagree, which means that it is not our script.
bool Read(const Part& part, bool fits, bool charges, Decision& out, Mark& mark) {
  if (part.ask.plan->script() == Id::kBucket) {
    part.ask.plan->is_queue() ? ReadBucket<Queue>(part, out, mark)
                              : ReadBucket<Bucket>(part, out, mark);
  } else if (part.ask.plan->script() == Id::kGap) {
    ReadGap(part, out, mark);
  } else if (part.ask.plan->script() == Id::kWindow) {
    ReadWindow(part, out, mark);
  } else if (part.ask.plan->script() == Id::kSliding) {
    ReadSliding(part, out, mark);
  } else {
    ReadCounted(part, out, mark);
  }
  out.retry_after = WholeUs(out.retry_after);
  out.reset_after = WholeUs(out.reset_after);
  mark.charged = out.charged;
  if (const Problem problem = ProblemOf(part.ask); problem != Problem::kNone) {
    out.outcome = Outcome::kRefused;
    out.problem = problem;
    return !fits;
  }
  return !charges || out.allowed() == fits;
}

}  // namespace

void ChargeCall::Encode(std::span<const Ask> asks, const CallOptions& options) {
  WEIR_ASSERT(!asks.empty() && asks.size() <= kAsksMax);
  asks_.assign(asks.begin(), asks.end());
  texts_.Clear();
  short_ = false;
  for (const Ask& ask : asks_) {
    texts_.AddKey(KeyName::OfState(ask.key));
  }
  if (options.id != nullptr) {
    texts_.AddKey(KeyName::OfId(asks_.front().key, *options.id));
  }
  const int64_t around_us = options.around_us != 0 ? options.around_us : now_us_;
  const uint64_t memory_ms =
      options.id != nullptr ? std::max<uint64_t>(options.id_memory_ms, 1) : 0;
  const auto now_us = static_cast<uint64_t>(options.now_us);
  if (asks_.size() == 1) {
    const Ask& ask = asks_.front();
    script_ = ask.plan->script();
    if (memory_ms == 0 && now_us == 0 && IsUsual(ask)) {  // lua/bucket_fast.lua
      texts_.AddNumber(ask.cost * ask.plan->law().emission);
      texts_.AddNumber(ask.plan->law().tolerance);
      texts_.Add(ask.plan->interval_name());
      short_ = !options.marks;
      if (!short_) {
        texts_.Add("1");
      }
      texts_.Seal();
      return;
    }
    PutAsk(ask, around_us, texts_);
    if (memory_ms != 0 || now_us != 0) {
      texts_.AddNumber(memory_ms);
      texts_.AddNumber(now_us);
    }
  } else {
    script_ = Id::kMany;
    for (const Ask& ask : asks_) {
      const char letter = ask.plan->letter();
      const char shown = ask.apart ? static_cast<char>(letter - 'a' + 'A') : letter;
      texts_.Put(std::string_view(&shown, 1));
    }
    texts_.End();
    texts_.AddNumber(memory_ms);
    texts_.AddNumber(now_us);
    for (const Ask& ask : asks_) {
      PutAsk(ask, around_us, texts_);
    }
  }
  if (options.id != nullptr && !options.claim.view().empty()) {
    texts_.Put(std::string_view(".", options.tells_nobody ? 1 : 0));
    texts_.Put(options.claim.view());
    texts_.End();
  }
  texts_.Seal();
}

Reading ChargeCall::Decode(std::span<const int64_t> reply, std::span<Decision> decisions,
                           std::span<Mark> marks) {
  if (decisions.size() < asks_.size()) {
    return Reading::kBad;
  }
  if (short_ && reply.size() == 1) {
    return DecodeShort(reply[0], decisions[0], marks);
  }
  if (reply.size() < 2 || reply[1] < 0) {
    return Reading::kBad;
  }
  now_us_ = reply[1];
  if (reply[0] == -1) {
    return Reading::kAgain;
  }
  if (reply[0] < 0 || reply[0] > 3) {
    return Reading::kBad;
  }
  all_admitted_ = (reply[0] & 1) != 0;
  repeated_ = (reply[0] & 2) != 0;
  if (script_ == Id::kMany) {
    return DecodeMany(reply, decisions, marks);
  }
  const Ask& ask = asks_.front();
  // The short form of a bucket's reply leaves out what is 0.
  std::array<int64_t, 5> filled{};
  if (script_ == Id::kBucket && reply.size() == 3) {
    std::copy(reply.begin(), reply.end(), filled.begin());
    reply = filled;
  }
  if (reply.size() != 2 + ValuesOf(ask)) {
    return Reading::kBad;
  }
  const bool refused = ProblemOf(ask) != Problem::kNone;
  const Part part{ask,
                  reply.subspan(2),
                  static_cast<uint64_t>(now_us_),
                  {.cost = refused ? 0 : ask.cost,
                   .mode = ask.mode,
                   .max_wait_ns = refused ? kAnyWait : ask.max_wait_ns}};
  Mark mark;
  if (!Read(part, all_admitted_, true, decisions[0], mark)) {
    return Reading::kBad;
  }
  if (!marks.empty()) {
    marks[0] = mark;
  }
  return Reading::kDone;
}

// Of a bucket: what it owed, and whether the charge fits. A debt is the same at any time.
Reading ChargeCall::DecodeShort(int64_t reply, Decision& decision, std::span<Mark> marks) {
  constexpr int64_t kDebtMax = int64_t{1} << 53;
  all_admitted_ = reply >= 0;
  repeated_ = false;
  const std::array<int64_t, 3> values = {all_admitted_ ? reply : -1 - reply, 0, 0};
  if (values[0] > kDebtMax) {
    return Reading::kBad;
  }
  const Ask& ask = asks_.front();
  const Part part{ask, values, 0, {.cost = ask.cost, .mode = ask.mode}};
  Mark unused;
  std::fill(marks.begin(), marks.end(), Mark{});
  return Read(part, all_admitted_, true, decision, unused) ? Reading::kDone : Reading::kBad;
}

Reading ChargeCall::DecodeMany(std::span<const int64_t> reply, std::span<Decision> decisions,
                               std::span<Mark> marks) {
  size_t at = 2;
  for (size_t i = 0; i < asks_.size(); ++i) {
    const Ask& ask = asks_[i];
    const size_t values = ValuesOf(ask);
    if (reply.size() < at + 2 + values || reply[at + 1] != static_cast<int64_t>(values)) {
      return Reading::kBad;
    }
    const bool fits = reply[at] != 0;
    // It would have fitted by itself: show what is left without it.
    const bool spared = fits && !all_admitted_ && !ask.apart && IsBounded(ask.mode);
    const bool refused = ProblemOf(ask) != Problem::kNone;
    const Part part{ask,
                    reply.subspan(at + 2, values),
                    static_cast<uint64_t>(now_us_),
                    {.cost = refused || spared ? 0 : ask.cost,
                     .mode = ask.mode,
                     .max_wait_ns = refused || spared ? kAnyWait : ask.max_wait_ns}};
    Mark mark;
    if (!Read(part, fits, !spared, decisions[i], mark)) {
      return Reading::kBad;
    }
    if (i < marks.size()) {
      marks[i] = mark;
    }
    at += 2 + values;
  }
  return at == reply.size() ? Reading::kDone : Reading::kBad;
}

}  // namespace weir::script
