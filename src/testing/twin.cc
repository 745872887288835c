#include "testing/twin.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "algorithm/plan.h"
#include "base/key_hash.h"

namespace weir::testing {

namespace {

constexpr std::array<std::string_view, 3> kKeys = {"alice", "bob", "carol"};
constexpr uint64_t kFleetSecret = 0x5eed;

bool IsBucket(const Quota& quota) {
  return quota.algorithm() == Algorithm::kTokenBucket ||
         quota.algorithm() == Algorithm::kLeakyBucket;
}

// The laws that one key is held to: what is admitted must fit `most`, what fits `least` must be
// admitted. For exact quotas they are the same.
struct Laws {
  std::unique_ptr<Oracle> most;
  std::unique_ptr<Oracle> least;  // nullptr: as `most`

  [[nodiscard]] const Oracle& floor() const { return least != nullptr ? *least : *most; }

  void Charge(int64_t now, uint64_t cost) {
    most->Charge(now, cost);
    if (least != nullptr) {
      least->Charge(now, cost);
    }
  }
};

int64_t PhaseOf(const Quota& quota, std::string_view key) {
  if (quota.start() != WindowStart::kPerKey) {
    return 0;
  }
  const auto window = static_cast<uint64_t>(quota.window().count());
  return static_cast<int64_t>(base::HashKeySeeded(key, kFleetSecret) % window);
}

class Twin {
 public:
  explicit Twin(const Quota& quota)
      : quota_(quota), tick_(TickOf(quota)), exact_(IsExact(quota)), clock_(Noon()) {
    MemoryOptions options = SmallStore(clock_);
    options.fleet_secret = kFleetSecret;
    auto limiter = Limiter::Create(quota, options);
    if (!limiter) {
      problem_ << "no limiter: " << limiter.error().message;
      return;
    }
    limiter_ = std::make_unique<Limiter>(*std::move(limiter));
    for (size_t i = 0; i < kKeys.size(); ++i) {
      laws_[i].most = MakeOracle(quota, PhaseOf(quota, kKeys[i]));
      laws_[i].least = exact_ ? nullptr : MakeSlowerOracle(quota);
    }
  }

  std::string Run(const std::vector<Step>& steps) {
    for (at_ = 0; at_ < steps.size() && problem_.str().empty(); ++at_) {
      Take(steps[at_]);
    }
    return problem_.str();
  }

 private:
  [[nodiscard]] int64_t now() const { return clock_.WallNow().time_since_epoch().count(); }

  void Expect(bool holds, const Decision& decision, std::string_view what) {
    if (holds || !problem_.str().empty()) {
      return;
    }
    problem_ << quota_.ToString() << " (tick " << tick_.count() << " ns), step " << at_ << " at "
             << (clock_.WallNow() - Noon()).count() << " ns: " << what << "; key " << key_
             << " cost " << cost_ << " mode " << static_cast<int>(mode_) << " -> outcome "
             << static_cast<int>(decision.outcome) << " remaining " << decision.remaining
             << " charged " << decision.charged << " retry " << decision.retry_after.count()
             << " reset " << decision.reset_after.count() << "; oracle remaining "
             << laws_[key_].floor().Remaining(now(), quota_.burst()) << ".."
             << laws_[key_].most->Remaining(now(), quota_.burst());
  }

  [[nodiscard]] uint64_t CostOf(const Step& step) const {
    if (quota_.algorithm() == Algorithm::kMinGap) {
      return std::min(step.cost, Cost::kMax - 1);
    }
    const uint64_t bound = uint64_t{quota_.burst()} + 2;  // one above the burst at times
    return step.cost < bound ? step.cost : step.cost % bound;
  }

  Decision Ask(uint64_t cost, ChargeMode mode) {
    // Both ways in: the plain call and the one with options.
    if (mode == ChargeMode::kAdmit && at_ % 2 == 0) {
      return limiter_->Check(kKeys[key_], cost);
    }
    return limiter_->Check(kKeys[key_], CheckOptions{.cost = cost, .mode = mode});
  }

  void Take(const Step& step) {
    clock_.Advance(tick_ * static_cast<int64_t>(step.wait));
    key_ = step.key % kKeys.size();
    cost_ = CostOf(step);
    mode_ = step.mode;
    Laws& laws = laws_[key_];
    const uint64_t least = laws.floor().Remaining(now(), quota_.burst());
    const uint64_t most = laws.most->Remaining(now(), quota_.burst());
    const bool counts_units = quota_.algorithm() != Algorithm::kMinGap;
    if (mode_ == ChargeMode::kCountAlways &&
        ((counts_units && least == 0) || cost_ > quota_.burst())) {
      mode_ = ChargeMode::kAdmit;  // deeper overdraft saturates, which has tests of its own
    }
    const Decision decision = Ask(cost_, mode_);
    Expect(decision.limit == quota_.burst() && decision.basis == Basis::kStore, decision, "limit");
    if (cost_ == 0) {
      Expect(decision.allowed() && decision.charged == 0, decision, "a peek is allowed and free");
    } else if (mode_ == ChargeMode::kUpTo) {
      const uint64_t wanted = counts_units ? cost_ : 1;
      Expect(decision.charged >= std::min(wanted, least) &&
                 decision.charged <= std::min(wanted, most) &&
                 decision.allowed() == (decision.charged != 0),
             decision, "takes what fits");
    } else if (counts_units && cost_ > quota_.burst()) {
      Expect(decision.outcome == Outcome::kRefused && decision.charged == 0 &&
                 decision.problem == Problem::kCostAboveBurst,
             decision, "a cost above the burst is refused");
    } else {
      const bool may = laws.most->Fits(now(), cost_);
      const bool must = laws.floor().Fits(now(), cost_);
      Expect(!decision.allowed() || may, decision, "admitted beyond the law");
      Expect(decision.allowed() || !must, decision, "denied what the law admits");
      const bool charged =
          mode_ == ChargeMode::kCountAlways || (mode_ == ChargeMode::kAdmit && decision.allowed());
      // A gap counts requests: one that comes too early moves the last one, and none can be given
      // back, so nothing is shown as charged.
      const bool moved = charged && !counts_units && !decision.allowed();
      Expect(decision.charged == (charged && !moved ? cost_ : 0), decision, "charged");
      if (moved) {
        laws.Charge(now(), 1);
      }
    }
    if (decision.charged != 0) {
      laws.Charge(now(), decision.charged);
    }
    if (mode_ != ChargeMode::kDryRun || !decision.allowed()) {
      CheckNumbers(decision);
    }
    if (decision.outcome == Outcome::kDenied) {
      CheckRetry(decision, mode_ == ChargeMode::kUpTo ? 1 : cost_, step.wait_for_retry);
    }
    if (step.wait_for_reset) {
      WaitForReset();
    }
  }

  void CheckNumbers(const Decision& decision) {
    const Laws& laws = laws_[key_];
    const uint64_t burst = quota_.burst();
    Expect(decision.remaining >= laws.floor().Remaining(now(), burst) &&
               decision.remaining <= laws.most->Remaining(now(), burst),
           decision, "remaining");
    if (decision.remaining != 0) {
      Expect(Ask(decision.remaining, ChargeMode::kDryRun).allowed(), decision, "remaining fits");
    }
    if (quota_.algorithm() != Algorithm::kMinGap) {
      Expect(!Ask(decision.remaining + uint64_t{1}, ChargeMode::kDryRun).allowed(), decision,
             "one more than remaining does not fit");
    }
    const int64_t reset = decision.reset_after.count();
    Expect(reset >= 0 && reset % tick_.count() == 0, decision, "reset in whole ticks");
    Expect(laws.most->IsFresh(now() + reset), decision, "fresh after reset_after");
    Expect(reset == 0 || !laws.floor().IsFresh(now() + reset - tick_.count()), decision,
           "not fresh before reset_after");
  }

  void CheckRetry(const Decision& decision, uint64_t cost, bool wait) {
    const Laws& laws = laws_[key_];
    const int64_t retry = decision.retry_after.count();
    Expect(retry > 0 && retry % tick_.count() == 0, decision, "retry in whole ticks");
    Expect(laws.most->Fits(now() + retry, cost), decision, "fits after retry_after");
    Expect(!laws.floor().Fits(now() + retry - tick_.count(), cost), decision,
           "does not fit a tick before retry_after");
    if (!wait) {
      return;
    }
    clock_.Advance(decision.retry_after - tick_);
    Expect(!Ask(cost, ChargeMode::kDryRun).allowed(), decision, "waited a tick less, admitted");
    clock_.Advance(tick_);
    Expect(Ask(cost, ChargeMode::kDryRun).allowed(), decision, "waited retry_after, denied");
  }

  void WaitForReset() {
    const Decision before = Ask(0, ChargeMode::kAdmit);
    if (before.reset_after == Duration::zero()) {
      return;
    }
    clock_.Advance(before.reset_after - tick_);
    Expect(Ask(0, ChargeMode::kAdmit).reset_after > Duration::zero(), before,
           "fresh a tick before reset_after");
    clock_.Advance(tick_);
    const Decision fresh = Ask(0, ChargeMode::kAdmit);
    Expect(fresh.remaining == quota_.burst() && fresh.reset_after == Duration::zero(), fresh,
           "not fresh after reset_after");
  }

  const Quota quota_;
  const Duration tick_;
  const bool exact_;
  ManualClock clock_;
  std::unique_ptr<Limiter> limiter_;
  std::array<Laws, kKeys.size()> laws_;
  std::ostringstream problem_;
  size_t at_ = 0;
  size_t key_ = 0;
  uint64_t cost_ = 0;
  ChargeMode mode_ = ChargeMode::kAdmit;
};

algorithm::Plan PlanFor(const Quota& quota) {
  const auto slot = algorithm::NeedsRecord(quota)   ? algorithm::SlotKind::kRecord
                    : algorithm::FitsCompact(quota) ? algorithm::SlotKind::kCompact
                                                    : algorithm::SlotKind::kWide;
  return *algorithm::Compile(quota, slot);
}

uint64_t BurstFor(Random& random, uint64_t limit) {
  return random.OneIn(3) ? limit : random.OneIn(2) ? random.Between(1, 5) : random.Scaled(1, 1000);
}

Quota BucketOf(Random& random, uint64_t limit, uint64_t window_ns) {
  const auto burst = static_cast<int64_t>(BurstFor(random, limit));
  const auto window = Duration(static_cast<int64_t>(window_ns));
  const auto count = static_cast<int64_t>(limit);
  return random.OneIn(4) ? *Quota::LeakyBucket(count, window, burst)
                         : *Quota::TokenBucket(count, window, burst);
}

}  // namespace

MemoryOptions SmallStore(const Clock& clock) {
  MemoryOptions options;
  options.budget_bytes = MemoryStore::kMinBudgetBytes;
  options.huge_pages = false;
  options.clock = &clock;
  return options;
}

WallTime Noon() noexcept {
  return WallTime(std::chrono::seconds(1'772'366'400));
}

Duration TickOf(const Quota& quota) {
  const algorithm::Plan plan = PlanFor(quota);
  if (plan.slot == algorithm::SlotKind::kCompact) {
    return std::chrono::microseconds(1);
  }
  return Duration(plan.shift < 0 ? int64_t{1} << -plan.shift : 1);
}

bool IsExact(const Quota& quota) {
  const int64_t tick = TickOf(quota).count();
  if (IsBucket(quota)) {
    return quota.window().count() % (tick * int64_t{quota.limit()}) == 0;
  }
  return quota.window().count() % tick == 0;
}

std::string FollowOracle(const Quota& quota, const std::vector<Step>& steps) {
  return Twin(quota).Run(steps);
}

Quota RandomBucket(Random& random) {
  const bool micro = random.OneIn(2);  // 8-byte slots
  const uint64_t limit = random.OneIn(2) ? random.Between(1, 20) : random.Scaled(1, 100'000);
  const uint64_t unit_ns = micro ? 1000 : 1;
  const uint64_t least = (1000 + unit_ns * limit - 1) / (unit_ns * limit);
  const uint64_t interval = random.Scaled(std::max<uint64_t>(least, 1), 2'000'000'000 / unit_ns);
  return BucketOf(random, limit, interval * limit * unit_ns);
}

Quota RandomOddBucket(Random& random) {
  for (;;) {
    const uint64_t limit = random.OneIn(2) ? random.Between(3, 20) : random.Scaled(3, 1'000'000);
    const Quota quota = BucketOf(random, limit, random.Scaled(100'000, 100'000'000'000'000));
    if (!IsExact(quota)) {
      return quota;
    }
  }
}

Quota RandomWindow(Random& random) {
  const auto limit =
      static_cast<int64_t>(random.OneIn(2) ? random.Between(1, 20) : random.Scaled(1, 1'000'000));
  Duration window(static_cast<int64_t>(random.Scaled(1000, 1'000'000'000'000'000)));
  if (random.OneIn(2)) {
    window = std::chrono::milliseconds(random.Scaled(1, 100'000));
  }
  switch (random.Below(4)) {
    case 0:
      return *Quota::FixedWindow(limit, window);
    case 1:
      return *Quota::FixedWindow(limit, window, WindowStart::kPerKey);
    case 2: {
      // Such a window is rounded up to its ticks, and its limit is bounded for short ones.
      const auto odd = Quota::FixedWindow(limit, window, WindowStart::kFirstHit);
      if (!odd) {
        return *Quota::FixedWindow(limit, std::chrono::minutes(1), WindowStart::kFirstHit);
      }
      const Duration tick = TickOf(*odd);
      return *Quota::FixedWindow(limit, std::max(window / tick, int64_t{1}) * tick,
                                 WindowStart::kFirstHit);
    }
    default:
      break;
  }
  const auto sliding = Quota::SlidingWindow(limit, window);
  return sliding ? *sliding : *Quota::SlidingWindow(limit, std::chrono::seconds(1));
}

Quota RandomGap(Random& random) {
  const uint64_t unit_ns = random.OneIn(2) ? 1000 : 1;
  return *Quota::MinGap(Duration(
      static_cast<int64_t>(random.Scaled(1000 / unit_ns, 1'000'000'000'000 / unit_ns) * unit_ns)));
}

Quota RandomCalendar(Random& random) {
  const auto limit = static_cast<int64_t>(random.Scaled(1, 1'000'000));
  return *Quota::Calendar(limit, static_cast<CalendarPeriod>(random.Below(4)));
}

Quota RandomZonedCalendar(Random& random) {
  // Both halves of the year, an hour and half an hour of daylight saving, none but half an hour
  // off.
  constexpr const char* kZones[] = {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
                                    "Asia/Kolkata"};
  const Quota plain = RandomCalendar(random);
  return *Quota::Calendar(plain.limit(), plain.period(), kZones[random.Below(4)]);
}

Quota RandomRecord(Random& random) {
  const auto limit =
      static_cast<int64_t>(random.OneIn(2) ? random.Between(1, 20) : random.Scaled(1, 500));
  if (random.OneIn(2)) {
    const Duration window(static_cast<int64_t>(random.Scaled(1000, 1'000'000'000'000)));
    return *Quota::SlidingLog(limit, window);
  }
  const auto slices =
      static_cast<int64_t>(random.OneIn(3) ? random.Scaled(1, 300) : random.Between(1, 12));
  const Duration slice(static_cast<int64_t>(random.Scaled(1000, 1'000'000'000)));
  return *Quota::SlicedWindow(limit, slice * slices, slices);
}

std::vector<Step> RandomHistory(Random& random, const Quota& quota, size_t steps) {
  const uint64_t day_ticks = 86'400'000'000'000;
  const bool calendar = quota.algorithm() == Algorithm::kCalendar;
  const auto tick = static_cast<uint64_t>(TickOf(quota).count());
  const uint64_t window =
      calendar ? day_ticks * (random.OneIn(2) ? 1 : 30)
               : std::max<uint64_t>(1, static_cast<uint64_t>(quota.window().count()) / tick);
  const uint64_t interval = std::max<uint64_t>(1, window / quota.limit());
  std::vector<Step> history(steps);
  for (Step& step : history) {
    switch (random.Below(8)) {
      case 0:
      case 1:
      case 2:
        break;  // at once
      case 3:
        step.wait = interval;
        break;
      case 4:
        step.wait = interval > 1 ? interval - 1 : 1;
        break;
      case 5:
        step.wait = random.Scaled(1, window);
        break;
      case 6:
        step.wait = window - random.Below(std::min<uint64_t>(window, 2));
        break;
      default:
        step.wait = random.Scaled(1, std::min(interval * 4, window));
        break;
    }
    step.cost = random.OneIn(3)    ? random.Scaled(1, uint64_t{quota.burst()} + 1)
                : random.OneIn(12) ? 0
                                   : random.Between(1, std::min<uint64_t>(quota.burst(), 3));
    step.key = static_cast<uint32_t>(random.OneIn(4) ? random.Below(3) : 0);
    step.mode = random.OneIn(3) ? static_cast<ChargeMode>(random.Below(4)) : ChargeMode::kAdmit;
    step.wait_for_retry = random.OneIn(6);
    step.wait_for_reset = random.OneIn(20);
  }
  return history;
}

}  // namespace weir::testing
