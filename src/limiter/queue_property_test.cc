// The leaky bucket as a queue, against a server that serves one unit after the other and against
// nginx's limit_req: admitted iff, start and retry_after exact, and no give-back that lets anyone
// start sooner than the rate allows.
#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "weir/limiter.h"

#include "testing/queue_oracle.h"
#include "testing/twin.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::FifoServer;
using testing::Noon;
using testing::SmallStore;
using testing::Start;

// One request of a history. Times are in sixteenths of the time that a unit takes.
struct Ask {
  uint32_t wait = 0;
  uint32_t cost = 1;
  int32_t max_wait = -1;  // -1: none given
  ChargeMode mode = ChargeMode::kAdmit;
  uint32_t cancel = 0;  // 0: nobody; n: the n-th from the end is given back first
};

void showValue(const Ask& ask, std::ostream& out) {
  out << "{wait " << ask.wait << " cost " << ask.cost << " max_wait " << ask.max_wait << " mode "
      << static_cast<int>(ask.mode) << " cancel " << ask.cancel << "}";
}

rc::Gen<std::vector<Ask>> Histories(uint32_t burst) {
  using rc::gen::inRange;
  return rc::gen::container<std::vector<Ask>>(rc::gen::build<Ask>(
      rc::gen::set(&Ask::wait, rc::gen::weightedOneOf<uint32_t>({{3, rc::gen::just(0U)},
                                                                 {1, rc::gen::just(16U)},
                                                                 {2, inRange(0U, 17U)},
                                                                 {1, inRange(0U, 16 * burst)}})),
      rc::gen::set(&Ask::cost, rc::gen::weightedOneOf<uint32_t>({{4, rc::gen::just(1U)},
                                                                 {2, inRange(0U, 4U)},
                                                                 {1, inRange(0U, burst + 1)}})),
      rc::gen::set(&Ask::max_wait,
                   rc::gen::weightedOneOf<int32_t>(
                       {{2, rc::gen::just(-1)},
                        {1, inRange<int32_t>(0, static_cast<int32_t>(16 * burst))}})),
      rc::gen::set(&Ask::mode, rc::gen::element(ChargeMode::kAdmit, ChargeMode::kAdmit,
                                                ChargeMode::kUpTo, ChargeMode::kDryRun)),
      rc::gen::set(&Ask::cancel, rc::gen::weightedOneOf<uint32_t>(
                                     {{2, rc::gen::just(0U)}, {1, inRange(1U, 6U)}}))));
}

// Queues whose unit takes 16 times `step`, in either layout.
struct Line {
  Quota quota;
  Duration step;
};

Line AnyQueue() {
  const auto limit = *rc::gen::inRange<int64_t>(1, 12);
  const auto burst = *rc::gen::inRange<int64_t>(1, 14);
  const auto undelayed = *rc::gen::inRange<int64_t>(1, burst + 1);
  const Duration tick = *rc::gen::element(Duration(1000), Duration(1), Duration(1'000'000));
  const Duration step = tick * *rc::gen::inRange<int64_t>(tick.count() == 1 ? 63 : 1, 100);
  return {*Quota::Queue(limit, 16 * step * limit, burst, undelayed), step};
}

class Twin {
 public:
  explicit Twin(const Line& line)
      : line_(line),
        tick_(testing::TickOf(line.quota)),
        clock_(Noon()),
        limiter_(*Limiter::Create(line.quota, SmallStore(clock_))),
        server_(line.quota) {}

  void Take(const Ask& ask) {
    clock_.Advance(line_.step * ask.wait);
    const std::optional<int64_t> max_wait =
        ask.max_wait < 0 ? std::nullopt : std::optional((line_.step * ask.max_wait).count());
    const uint64_t cost = std::min(ask.cost, line_.quota.burst());
    const uint64_t remaining = server_.Remaining(now(), max_wait);
    const uint64_t taken = ask.mode == ChargeMode::kUpTo ? std::min(cost, remaining) : cost;
    const bool turned_away = cost != 0 && (taken == 0 || !Wait(taken, max_wait).has_value());
    const Decision decision = Put(cost, ask.mode, max_wait);
    if (!decision.allowed() || cost == 0) {
      RC_ASSERT(decision.remaining == remaining);
    }
    if (cost == 0) {
      RC_ASSERT(decision.allowed() && decision.start_after() == Duration::zero());
    } else if (ask.mode != ChargeMode::kUpTo && IsHopeless(cost, max_wait)) {
      RC_ASSERT(decision.problem == Problem::kMaxWaitTooShort);
    } else if (turned_away) {
      RC_ASSERT(decision.outcome == Outcome::kDenied && decision.charged == 0U);
      RC_ASSERT(decision.start_after() == Duration::zero());
      CheckRetry(decision, ask.mode == ChargeMode::kUpTo ? 1 : cost, max_wait);
    } else {
      RC_ASSERT(decision.allowed());
      RC_ASSERT(decision.start_after().count() * server_.scale() == *Wait(taken, max_wait));
      RC_ASSERT(decision.start_after() <= line_.quota.longest_wait());
      RC_ASSERT(decision.charged == (ask.mode == ChargeMode::kDryRun ? 0 : taken));
      if (ask.mode != ChargeMode::kDryRun) {
        server_.Admit(now(), taken);
        RC_ASSERT(decision.remaining == server_.Remaining(now(), max_wait));
      }
    }
  }

 private:
  [[nodiscard]] int64_t now() const { return clock_.WallNow().time_since_epoch().count(); }

  [[nodiscard]] std::optional<testing::Int128> Wait(uint64_t cost,
                                                    std::optional<int64_t> max_wait) const {
    return server_.WaitOf(now(), cost, max_wait);
  }

  // Whether an idle server would make it wait too long.
  [[nodiscard]] bool IsHopeless(uint64_t cost, std::optional<int64_t> max_wait) const {
    return !FifoServer(line_.quota).WaitOf(now(), cost, max_wait).has_value();
  }

  Decision Put(uint64_t cost, ChargeMode mode, std::optional<int64_t> max_wait) {
    const bool plain = mode == ChargeMode::kAdmit && !max_wait.has_value();
    if (plain && ++calls_ % 3 == 0) {
      return limiter_.Check("key", cost);
    }
    if (plain && calls_ % 3 == 1) {
      const std::string_view keys[] = {"key"};
      Decision decisions[1];
      limiter_.CheckMany(keys, decisions, cost);
      return decisions[0];
    }
    return limiter_.Check(
        "key", {.cost = cost,
                .mode = mode,
                .max_wait = max_wait.has_value() ? Duration(*max_wait) : Duration::max()});
  }

  // Waiting retry_after, alone, is enough to start within the maximum; a tick less is not.
  void CheckRetry(const Decision& decision, uint64_t cost, std::optional<int64_t> max_wait) {
    RC_ASSERT(decision.retry_after > Duration::zero());
    clock_.Advance(decision.retry_after - tick_);
    RC_ASSERT(!Wait(cost, max_wait).has_value());
    RC_ASSERT(!Put(cost, ChargeMode::kDryRun, max_wait).allowed());
    clock_.Advance(tick_);
    RC_ASSERT(Wait(cost, max_wait).has_value());
    const Decision second = Put(cost, ChargeMode::kDryRun, max_wait);
    RC_ASSERT(second.allowed());
    RC_ASSERT(second.start_after().count() <=
              max_wait.value_or(line_.quota.longest_wait().count()));
  }

  const Line line_;
  const Duration tick_;
  ManualClock clock_;
  Limiter limiter_;
  FifoServer server_;
  unsigned calls_ = 0;
};

RC_GTEST_PROP(Queue, AnswersAsAServerThatServesOneAfterTheOther, ()) {
  const Line line = AnyQueue();
  Twin twin(line);
  for (const Ask& ask : *Histories(line.quota.burst())) {
    twin.Take(ask);
  }
}

// A rate that no tick divides: a unit takes up to a millionth longer, never less.
RC_GTEST_PROP(Queue, OfAnOddRateIsAtMostAMillionthLate, ()) {
  const auto limit = *rc::gen::inRange<int64_t>(3, 1000);
  const Duration window(*rc::gen::inRange<int64_t>(1'000'000, 10'000'000'000));
  const auto burst = *rc::gen::inRange<int64_t>(2, 40);
  const Quota quota = *Quota::Queue(limit, window, burst, *rc::gen::inRange<int64_t>(1, burst + 1));
  RC_PRE(!testing::IsExact(quota));
  ManualClock clock(Noon());
  Limiter limiter = *Limiter::Create(quota, SmallStore(clock));
  FifoServer server(quota);
  int64_t units = 0;
  for (const auto wait : *rc::gen::container<std::vector<int64_t>>(
           rc::gen::inRange<int64_t>(0, 2 * window.count() / limit))) {
    clock.Advance(Duration(wait));
    const int64_t now = clock.WallNow().time_since_epoch().count();
    const Decision decision = limiter.Check("key");
    if (!decision.allowed()) {
      continue;
    }
    const auto exact = server.WaitOf(now, 1, std::nullopt);
    RC_ASSERT(exact.has_value());
    server.Admit(now, 1);
    ++units;
    const testing::Int128 late = decision.start_after().count() * server.scale() - *exact;
    RC_ASSERT(late >= 0);
    // A millionth of each unit served without a pause, and a nanosecond for what is shown.
    RC_ASSERT(late * 1'000'000 <= window.count() * units + server.scale() * 1'000'000);
  }
}

struct Waiting {
  Receipt receipt;
  Start start;
  bool given_back = false;  // but its place could not be taken back
};

// The starts of all that was never given back, whoever gives back what and when.
RC_GTEST_PROP(Queue, NoGiveBackLetsAnybodyStartSoonerThanTheRate, ()) {
  const Line line = AnyQueue();
  ManualClock clock(Noon());
  Limiter limiter = *Limiter::Create(line.quota, SmallStore(clock));
  const auto now = [&] { return clock.WallNow().time_since_epoch().count(); };
  std::vector<Waiting> admitted;
  for (const Ask& ask : *Histories(line.quota.burst())) {
    clock.Advance(line.step * ask.wait);
    if (ask.cancel != 0 && ask.cancel <= admitted.size()) {
      const auto at = admitted.end() - static_cast<std::ptrdiff_t>(ask.cancel);
      const uint32_t charged = at->receipt.charged;
      const bool waits = at->start.at > now();
      const uint32_t back = limiter.GiveBack(at->receipt);
      // The last place, with nobody of it served yet, comes back whole.
      RC_ASSERT(back <= charged);
      RC_ASSERT(!(waits && ask.cancel == 1) || charged > line.quota.undelayed() || back == charged);
      if (back == charged && !at->given_back) {
        admitted.erase(at);
      } else {
        at->given_back = true;
      }
    }
    const uint64_t cost = std::clamp(ask.cost, 1U, line.quota.burst());
    Receipt receipt;
    const Decision decision = limiter.Check("key", {.cost = cost, .receipt = &receipt});
    if (decision.allowed()) {
      admitted.push_back({receipt, {now() + decision.start_after().count(), cost}, false});
    }
  }
  std::vector<Start> starts;
  for (const Waiting& one : admitted) {
    if (!one.given_back) {
      starts.push_back(one.start);
    }
  }
  RC_ASSERT(testing::ObeyTheRate(line.quota, starts));
}

// nginx's `limit_req zone=... burst=b delay=d` is our burst b + 1 with d + 1 undelayed; nodelay is
// all of them. It counts whole milliseconds, we do not.
RC_GTEST_PROP(Queue, AnswersAsNginxDoes, ()) {
  const auto rate = *rc::gen::element<int64_t>(1, 2, 4, 5, 8, 10, 20, 25, 40, 50, 100, 125, 250);
  const auto burst = *rc::gen::inRange<int64_t>(0, 30);
  const auto delay = *rc::gen::inRange<int64_t>(0, 40);
  testing::NginxLimitReq nginx(rate, burst, delay);
  ManualClock clock(Noon());
  Limiter limiter = *Limiter::Create(
      *Quota::Queue(rate, seconds(1), burst + 1, std::min(delay, burst) + 1), SmallStore(clock));
  int64_t now_ms = 0;
  for (const auto wait : *rc::gen::container<std::vector<int64_t>>(
           rc::gen::weightedOneOf<int64_t>({{2, rc::gen::just<int64_t>(0)},
                                            {2, rc::gen::inRange<int64_t>(0, 2000 / rate)},
                                            {1, rc::gen::inRange<int64_t>(0, 3000)}}))) {
    clock.Advance(milliseconds(wait));
    now_ms += wait;
    const std::optional<int64_t> expected = nginx.Request(now_ms);
    const Decision decision = limiter.Check("key");
    RC_ASSERT(decision.allowed() == expected.has_value());
    if (expected.has_value()) {
      RC_ASSERT(std::chrono::floor<milliseconds>(decision.start_after()).count() == *expected);
    }
  }
}

// A raise of rate or burst never denies, and nobody is told a longer wait than before.
RC_GTEST_PROP(Queue, ARaiseDeniesNobodyAndDelaysNobodyLonger, ()) {
  const Line line = AnyQueue();
  const Quota& quota = line.quota;
  ManualClock clock(Noon());
  Limiter kept = *Limiter::Create(quota, SmallStore(clock));
  MemoryOptions options = SmallStore(clock);
  options.wide_percent = 50;  // the new rate may need the other layout
  Limiter raised = *Limiter::Create(quota, options);
  const auto history = *Histories(quota.burst());
  const auto change_at = *rc::gen::inRange<size_t>(0, history.size() + 1);
  const auto factor = *rc::gen::inRange<int64_t>(1, 4);
  for (size_t i = 0; i < history.size(); ++i) {
    clock.Advance(line.step * history[i].wait);
    if (i == change_at) {
      RC_ASSERT(raised
                    .Update(*Quota::Queue(quota.limit() * factor, quota.window(),
                                          quota.burst() * factor, quota.undelayed()))
                    .ok());
    }
    const uint64_t cost = std::clamp(history[i].cost, 1U, quota.burst());
    const Decision a = kept.Check("key", {.cost = cost, .mode = ChargeMode::kDryRun});
    const Decision b = raised.Check("key", {.cost = cost, .mode = ChargeMode::kDryRun});
    RC_ASSERT(!a.allowed() || b.allowed());
    // A microsecond: what the other layout may be off by.
    RC_ASSERT(!a.allowed() || b.start_after() <= a.start_after() + std::chrono::microseconds(1));
    if (a.allowed()) {
      kept.Check("key", cost);
      raised.Check("key", cost);
    }
  }
}

}  // namespace
}  // namespace weir
