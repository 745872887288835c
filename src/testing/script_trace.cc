#include "testing/script_trace.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "weir/limiter.h"

#include "store/redis/charge_call.h"
#include "store/redis/other_calls.h"
#include "testing/oracle.h"
#include "testing/shared_model.h"
#include "testing/twin.h"

namespace weir::testing {

namespace {

using script::Ask;
using script::ChargeCall;
using script::Digest;
using script::Mark;
using script::SharedPlan;

constexpr size_t kKeys = 3;
constexpr int64_t kDayUs = 86'400'000'000;

const script::KeySecret& Secret() {
  static const script::KeySecret secret("a fleet's secret");
  return secret;
}

int64_t NoonUs() {
  return Noon().time_since_epoch().count() / 1000;
}

Duration WholeUs(Duration wait) {
  return Duration((wait.count() + 999) / 1000 * 1000);
}

std::string Describe(const Decision& d) {
  std::ostringstream out;
  out << "outcome " << static_cast<int>(d.outcome) << " limit " << d.limit << " remaining "
      << d.remaining << " charged " << d.charged << " retry " << d.retry_after.count() << " reset "
      << d.reset_after.count() << " problem " << static_cast<int>(d.problem);
  return out.str();
}

bool Same(const Decision& a, const Decision& b, bool with_reset) {
  return a.outcome == b.outcome && a.limit == b.limit && a.remaining == b.remaining &&
         a.charged == b.charged && WholeUs(a.retry_after) == WholeUs(b.retry_after) &&
         (!with_reset || WholeUs(a.reset_after) == WholeUs(b.reset_after)) &&
         a.problem == b.problem;
}

ScriptQuestion QuestionOf(script::Id id, std::span<const std::string_view> keys,
                          std::span<const std::string_view> arguments) {
  return {id, {keys.begin(), keys.end()}, {arguments.begin(), arguments.end()}};
}

// Time and costs that find edges.
class Steps {
 public:
  Steps(Random& random, const Quota& quota, const SharedPlan& plan, const TraceOptions& options)
      : random_(random), quota_(quota), options_(options), now_us_(NoonUs()) {
    const bool calendar = quota.algorithm() == Algorithm::kCalendar;
    window_us_ = calendar ? kDayUs * (random.OneIn(2) ? 1 : 30)
                          : std::max<int64_t>(1, quota.window().count() / 1000);
    interval_us_ = std::max<int64_t>(1, window_us_ / quota.limit());
    if (plan.script() == script::Id::kHold) {
      interval_us_ = std::max<int64_t>(1, window_us_ / 4);
    }
  }

  int64_t Now() {
    const auto window = static_cast<uint64_t>(window_us_);
    const auto interval = static_cast<uint64_t>(interval_us_);
    int64_t wait = 0;
    switch (random_.Below(8)) {
      case 3:
        wait = interval_us_;
        break;
      case 4:
        wait = interval_us_ > 1 ? interval_us_ - 1 : 1;
        break;
      case 5:
        wait = static_cast<int64_t>(random_.Scaled(1, window));
        break;
      case 6:
        wait = window_us_ - static_cast<int64_t>(random_.Below(std::min<uint64_t>(window, 2)));
        break;
      case 7:
        wait = static_cast<int64_t>(random_.Scaled(1, std::min(interval * 4, window)));
        break;
      default:
        break;  // at once
    }
    now_us_ += wait;
    if (options_.steps_back && random_.OneIn(12)) {
      const auto step = static_cast<int64_t>(random_.Scaled(1, window * 4));
      now_us_ = std::max<int64_t>(now_us_ + (random_.OneIn(2) ? step : -step), NoonUs() / 2);
    }
    return now_us_;
  }

  Ask Next(const SharedPlan& plan, const Digest& key) {
    Ask ask{.plan = &plan, .key = key};
    const uint64_t burst = quota_.burst();
    ask.cost = random_.OneIn(3)    ? random_.Scaled(1, burst + 1)
               : random_.OneIn(12) ? 0
                                   : random_.Between(1, std::min<uint64_t>(burst, 3));
    ask.mode = random_.OneIn(3) ? static_cast<ChargeMode>(random_.Below(4)) : ChargeMode::kAdmit;
    if (plan.is_queue() && random_.OneIn(4)) {
      ask.max_wait_ns =
          random_.Scaled(1, static_cast<uint64_t>(quota_.longest_wait().count()) + 1) / 1000 * 1000;
    }
    if (plan.script() == script::Id::kHold && random_.OneIn(4)) {
      ask.lease_us = random_.Scaled(1, static_cast<uint64_t>(window_us_) * 2);
    }
    return ask;
  }

 private:
  Random& random_;
  const Quota& quota_;
  const TraceOptions& options_;
  int64_t now_us_;
  int64_t window_us_ = 1;
  int64_t interval_us_ = 1;
};

bool IsRefused(const Decision& decision) {
  return decision.outcome == Outcome::kRefused;
}

// What the law says to an ask; what can never be admitted is looked at.
Decision Expected(SharedModel& model, int64_t now_us, const Ask& ask, const Decision& got) {
  Ask asked = ask;
  if (IsRefused(got)) {
    asked.cost = 0;
    asked.max_wait_ns = script::kAnyWait;
  }
  Decision decision = model.Charge(now_us, asked);
  if (IsRefused(got)) {
    decision.outcome = Outcome::kRefused;
    decision.problem = got.problem;
  }
  return decision;
}

bool MustRefuse(const Ask& ask) {
  const bool bounded = ask.mode == ChargeMode::kAdmit || ask.mode == ChargeMode::kDryRun;
  const algorithm::Plan& law = ask.plan->law();
  if (!bounded || !ask.plan->counts_units()) {
    return false;
  }
  const bool waits =
      ask.plan->is_queue() && ask.max_wait_ns != script::kAnyWait &&
      ask.cost * law.emission >
          std::min(law.tolerance, law.undelayed + std::min(ask.max_wait_ns, law.horizon_ns) / 1000 *
                                                      law.subdivision);
  return ask.cost > law.burst || waits;
}

class ModelTrace {
 public:
  ModelTrace(ScriptHost& host, const Quota& quota, const SharedPlan& plan, Random& random,
             const TraceOptions& options)
      : host_(host),
        quota_(quota),
        plan_(plan),
        random_(random),
        options_(options),
        steps_(random, quota, plan, options) {
    for (size_t i = 0; i < kKeys; ++i) {
      digests_[i] = Secret().Of(7, plan.kind(), options.name + std::to_string(i));
      models_[i] = MakeSharedModel(plan, digests_[i]);
    }
  }

  std::string Run() {
    while (at_ < options_.steps && problem_.str().empty()) {
      RunBatch();
      if (problem_.str().empty() && random_.OneIn(3)) {
        GiveBack();
      }
    }
    return problem_.str();
  }

 private:
  struct Charged {
    size_t key;
    Mark mark;
  };

  void Fail(std::string_view what, const Decision& got, const Decision& expected) {
    problem_ << quota_.ToString() << ", step " << at_ << ": " << what << "\n  got      "
             << Describe(got) << "\n  expected " << Describe(expected);
  }

  script::CallOptions CallAt(int64_t now_us) {
    script::CallOptions call;
    call.around_us = now_us;
    if (options_.clock == TraceClock::kArgument) {
      call.now_us = now_us;
    } else if (options_.clock == TraceClock::kHost) {
      host_.SetTime(now_us);
    } else {
      call.around_us = SystemClock().WallNow().time_since_epoch().count() / 1000;
    }
    return call;
  }

  void RunBatch() {
    const size_t size = options_.clock == TraceClock::kHost ? 1 : random_.Between(1, 64);
    std::deque<ChargeCall> calls;
    std::vector<Ask> asks;
    std::vector<size_t> keys;
    std::vector<ScriptQuestion> questions;
    for (size_t i = 0; i < size; ++i) {
      keys.push_back(random_.OneIn(4) ? random_.Below(kKeys) : 0);
      asks.push_back(steps_.Next(plan_, digests_[keys.back()]));
      last_us_ = options_.clock == TraceClock::kOwn ? last_us_ : steps_.Now();
      calls.emplace_back();
      script::CallOptions options = CallAt(last_us_);
      options.marks = options_.clock != TraceClock::kHost || random_.OneIn(2);
      calls.back().Encode({&asks.back(), 1}, options);
      questions.push_back(
          QuestionOf(calls.back().script(), calls.back().keys(), calls.back().arguments()));
    }
    const std::vector<ScriptReply> replies = host_.Run(questions);
    for (size_t i = 0; i < size && problem_.str().empty(); ++i, ++at_) {
      const bool is_short = replies[i].integers.size() == 1;
      Check(calls[i], asks[i], keys[i], replies[i], is_short);
    }
  }

  // A short reply has neither a time nor a mark; then the test has moved the clock, and knows it.
  void Check(ChargeCall& call, const Ask& ask, size_t key, const ScriptReply& reply,
             bool is_short) {
    Decision got;
    Mark mark;
    const script::Reading reading = call.Decode(reply.integers, {&got, 1}, {&mark, 1});
    if (reading != script::Reading::kDone || !reply.error.empty()) {
      Fail("not a reply (" + std::to_string(static_cast<int>(reading)) + ") " + reply.error, got,
           got);
      return;
    }
    last_us_ = is_short ? last_us_ : call.now_us();
    const Decision expected = Expected(*models_[key], last_us_, ask, got);
    if (!Same(got, expected, models_[key]->knows_reset()) ||
        (is_short || got.charged == 0) != (mark.charged == 0) ||
        (ask.cost != 0 && IsRefused(got) != MustRefuse(ask))) {
      Fail("key " + std::to_string(key) + " cost " + std::to_string(ask.cost) + " mode " +
               std::to_string(static_cast<int>(ask.mode)) + " at " +
               std::to_string(last_us_ - NoonUs()) + " us",
           got, expected);
      return;
    }
    if (mark.charged != 0) {
      models_[key]->Note(mark);
      charged_.push_back({key, mark});
    }
  }

  void GiveBack() {
    if (charged_.empty()) {
      return;
    }
    const size_t which = random_.OneIn(2) ? charged_.size() - 1 : random_.Below(charged_.size());
    const Charged charged = charged_[which];
    charged_.erase(charged_.begin() + static_cast<std::ptrdiff_t>(which));
    const script::Paid paid{&plan_, digests_[charged.key], charged.mark};
    script::GiveBackCall call;
    call.Encode({&paid, 1}, options_.clock == TraceClock::kArgument ? last_us_ : 0);
    const ScriptQuestion question = QuestionOf(call.script(), call.keys(), call.arguments());
    const ScriptReply reply = host_.Run({&question, 1})[0];
    uint32_t units = 0;
    if (!reply.error.empty() || !call.Decode(reply.integers, {&units, 1})) {
      Fail("give back: not a reply " + reply.error, {}, {});
      return;
    }
    last_us_ = reply.integers[0];
    const uint32_t expected = models_[charged.key]->GiveBack(last_us_, charged.mark);
    if (units != expected) {
      problem_ << quota_.ToString() << ", step " << at_ << ": gave back " << units << " of "
               << charged.mark.charged << ", expected " << expected << "; mark "
               << static_cast<int64_t>(charged.mark.words[0]) - NoonUs() << " + "
               << charged.mark.words[1] << " moved " << charged.mark.words[2] << " at "
               << last_us_ - NoonUs() << " us";
    }
  }

  ScriptHost& host_;
  const Quota& quota_;
  const SharedPlan& plan_;
  Random& random_;
  const TraceOptions& options_;
  Steps steps_;
  std::array<Digest, kKeys> digests_{};
  std::array<std::unique_ptr<SharedModel>, kKeys> models_;
  std::vector<Charged> charged_;
  std::ostringstream problem_;
  size_t at_ = 0;
  int64_t last_us_ = NoonUs();
};

}  // namespace

std::string FollowModel(ScriptHost& host, const Quota& quota, Random& random,
                        const TraceOptions& options) {
  const auto plan = SharedPlan::Compile(quota);
  return plan.ok() ? ModelTrace(host, quota, *plan, random, options).Run() : plan.error().message;
}

std::string FollowModels(ScriptHost& host, const std::vector<Quota>& quotas, Random& random,
                         const TraceOptions& options) {
  std::deque<SharedPlan> plans;
  std::vector<Digest> keys;
  std::vector<std::unique_ptr<SharedModel>> models;
  std::deque<Steps> steps;
  for (const Quota& quota : quotas) {
    plans.push_back(*SharedPlan::Compile(quota));
    keys.push_back(Secret().Of(models.size(), plans.back().kind(), options.name));
    models.push_back(MakeSharedModel(plans.back(), keys.back()));
    steps.emplace_back(random, quota, plans.back(), options);
  }
  ChargeCall call;
  int64_t now_us = NoonUs();
  for (size_t step = 0; step < options.steps; ++step) {
    now_us = std::max(now_us, steps[random.Below(steps.size())].Now());
    std::vector<Ask> asks;
    for (size_t i = 0; i < quotas.size(); ++i) {
      asks.push_back(steps[i].Next(plans[i], keys[i]));
      asks.back().apart = random.OneIn(5);
      if (asks.back().mode == ChargeMode::kUpTo && !asks.back().apart) {
        asks.back().mode = ChargeMode::kAdmit;
      }
    }
    host.SetTime(now_us);
    call.Encode(
        asks, {.around_us = now_us, .now_us = options.clock == TraceClock::kArgument ? now_us : 0});
    const ScriptQuestion question = QuestionOf(call.script(), call.keys(), call.arguments());
    const ScriptReply reply = host.Run({&question, 1})[0];
    std::vector<Decision> got(asks.size());
    if (!reply.error.empty() || call.Decode(reply.integers, got) != script::Reading::kDone) {
      return "not a reply " + reply.error;
    }
    // What each would answer by itself, and with that what becomes of all.
    bool all = true;
    std::vector<bool> fits;
    for (size_t i = 0; i < asks.size(); ++i) {
      Ask look = asks[i];
      look.mode = look.mode == ChargeMode::kAdmit ? ChargeMode::kDryRun : look.mode;
      bool fit = !MustRefuse(asks[i]);
      if (fit && look.mode == ChargeMode::kDryRun) {
        fit = look.cost == 0 || models[i]->Charge(now_us, look).allowed();
      } else if (look.mode == ChargeMode::kCountAlways) {
        look.mode = ChargeMode::kDryRun;
        fit = look.cost == 0 || (look.cost <= look.plan->law().burst || !look.plan->counts_units());
        look.max_wait_ns = script::kAnyWait;
        fit = fit && (look.cost == 0 || models[i]->Charge(now_us, look).allowed());
      }
      fits.push_back(fit);
      all = all && (fit || asks[i].apart);
    }
    for (size_t i = 0; i < asks.size(); ++i) {
      Ask asked = asks[i];
      const bool bounded = asked.mode == ChargeMode::kAdmit || asked.mode == ChargeMode::kDryRun;
      if (bounded && !asked.apart && !all && fits[i]) {
        asked.cost = 0;
        asked.max_wait_ns = script::kAnyWait;
      }
      const Decision expected = Expected(*models[i], now_us, asked, got[i]);
      if (!Same(got[i], expected, models[i]->knows_reset()) ||
          IsRefused(got[i]) != MustRefuse(asks[i]) || call.all_admitted() != all) {
        return quotas[i].ToString() + ", step " + std::to_string(step) + ", ask " +
               std::to_string(i) + " of " + std::to_string(asks.size()) + " cost " +
               std::to_string(asks[i].cost) + " mode " +
               std::to_string(static_cast<int>(asks[i].mode)) + "\n  got      " + Describe(got[i]) +
               "\n  expected " + Describe(expected) + " all " +
               std::to_string(static_cast<int>(all));
      }
    }
  }
  return "";
}

std::string FollowMemory(ScriptHost& host, const Quota& quota, Random& random,
                         const TraceOptions& options) {
  const auto plan = SharedPlan::Compile(quota);
  if (!plan.ok()) {
    return plan.error().message;
  }
  ManualClock clock(Noon());
  auto limiter = Limiter::Create(quota, SmallStore(clock));
  if (!limiter.ok()) {
    return limiter.error().message;
  }
  const Digest key = Secret().Of(9, plan->kind(), options.name);
  const std::unique_ptr<Oracle> oracle =
      quota.algorithm() == Algorithm::kConcurrency ? nullptr : MakeOracle(quota);
  Steps steps(random, quota, *plan, options);
  ChargeCall call;
  int64_t now_us = NoonUs();
  for (size_t step = 0; step < options.steps; ++step) {
    const int64_t next_us = steps.Now();
    clock.Advance(std::chrono::microseconds(next_us - now_us));
    now_us = next_us;
    Ask ask = steps.Next(*plan, key);
    ask.max_wait_ns = script::kAnyWait;
    ask.lease_us = 0;
    const int64_t now_ns = now_us * 1000;
    const bool counts_units = plan->counts_units();
    const uint64_t left = oracle != nullptr ? oracle->Remaining(now_ns, quota.burst()) : 1;
    if (ask.mode == ChargeMode::kCountAlways &&
        ((counts_units && left == 0) || ask.cost > quota.burst())) {
      ask.mode = ChargeMode::kAdmit;  // deeper overdraft saturates, which the oracle does not
    }
    host.SetTime(now_us);
    call.Encode({&ask, 1}, {.around_us = now_us});
    const ScriptQuestion question = QuestionOf(call.script(), call.keys(), call.arguments());
    const ScriptReply reply = host.Run({&question, 1})[0];
    Decision got;
    if (!reply.error.empty() || call.Decode(reply.integers, {&got, 1}) != script::Reading::kDone) {
      return quota.ToString() + ": not a reply " + reply.error + " cost " +
             std::to_string(ask.cost) + " mode " + std::to_string(static_cast<int>(ask.mode));
    }
    const Decision expected =
        limiter->Check("key", CheckOptions{.cost = ask.cost, .mode = ask.mode});
    const bool lawful = oracle == nullptr || ask.cost == 0 || IsRefused(got) ||
                        ask.mode == ChargeMode::kUpTo ||
                        got.allowed() == oracle->Fits(now_ns, ask.cost);
    if (!Same(got, expected, true) || !lawful) {
      return quota.ToString() + ", step " + std::to_string(step) + " cost " +
             std::to_string(ask.cost) + " mode " + std::to_string(static_cast<int>(ask.mode)) +
             (lawful ? "" : ": against the law") + "\n  got      " + Describe(got) +
             "\n  memory   " + Describe(expected);
    }
    if (oracle != nullptr && got.charged != 0) {
      oracle->Charge(now_ns, counts_units ? got.charged : 1);
    } else if (oracle != nullptr && !counts_units && ask.cost != 0 &&
               ask.mode == ChargeMode::kCountAlways) {
      oracle->Charge(now_ns, 1);
    }
  }
  return "";
}

}  // namespace weir::testing
