// A fleet of nodes, a store that comes and goes, and what gets admitted in all: the arithmetic of
// local_share.h and key_book.h in the order in which RedisStore uses them, on virtual time.
#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "weir/decision.h"
#include "weir/quota.h"

#include "shared/key_book.h"
#include "testing/random.h"

namespace weir::shared {
namespace {

using testing::Random;

constexpr BookKey kKey{.low = 42, .high = 4711};

// One key of an exact token bucket, as the store's script keeps it, in nanoseconds.
class Bucket {
 public:
  Bucket(int64_t unit_ns, int64_t burst) : unit_ns_(unit_ns), burst_(burst) {}

  Decision Take(int64_t cost, int64_t now) {
    const int64_t debt = std::max<int64_t>(tat_ - now, 0);
    const int64_t over = debt + cost * unit_ns_ - burst_ * unit_ns_;
    Decision decision;
    decision.limit = static_cast<uint32_t>(burst_);
    if (over <= 0) {
      tat_ = now + debt + cost * unit_ns_;
      decision.outcome = Outcome::kAllowed;
    }
    decision.retry_after = Duration(std::max<int64_t>(over, 0));
    decision.reset_after = Duration(std::max<int64_t>(tat_ - now, 0));
    const int64_t left = burst_ * unit_ns_ - decision.reset_after.count();
    decision.remaining = static_cast<uint32_t>(std::max<int64_t>(left, 0) / unit_ns_);
    return decision;
  }

  void Count(int64_t cost, int64_t now) { tat_ = std::max(tat_, now) + cost * unit_ns_; }

 private:
  int64_t unit_ns_;
  int64_t burst_;
  int64_t tat_ = 0;
};

struct Fleet {
  Fleet(uint32_t count, int64_t limit, Duration window, int64_t burst)
      : quota(*Quota::TokenBucket(limit, window, burst)),
        store(window.count() / limit, burst),
        own{.number = 0, .plan = MakeLocalPlan(quota, count)} {
    for (uint32_t i = 0; i < count; ++i) {
      nodes.push_back(*KeyBook::Create(KeyBook::kMinBytes));
    }
  }

  bool Ask(size_t node, uint64_t cost, bool away) {
    KeyBook& book = *nodes[node];
    Decision decision;
    if (away) {
      book.Take(kKey, own, cost, ChargeMode::kAdmit, MayHaveRun::kNo, now, decision, nullptr);
      local += decision.allowed() ? cost : 0;
    } else {
      Repay(book.TakeOwed(kKey, own, now));
      decision = store.Take(static_cast<int64_t>(cost), now);
      book.NoteReply(kKey, own, decision, cost, now, KeyBook::Denial::kRemember);
    }
    admitted += decision.allowed() ? cost : 0;
    return decision.allowed();
  }

  void Return() {
    const BookQuota* const quotas[] = {&own};
    for (auto& book : nodes) {
      size_t cursor = 0;
      std::vector<OwedUnits> owed(64);
      while (cursor < book->cells()) {
        const size_t found = book->Sweep(cursor, quotas, owed, now);
        for (size_t i = 0; i < found; ++i) {
          Repay(owed[i].units);
        }
      }
    }
  }

  void Repay(uint32_t units) { store.Count(units, now); }

  const Quota quota;
  Bucket store;
  const BookQuota own;
  std::vector<std::unique_ptr<KeyBook>> nodes;
  int64_t now = 1'000'000'000;
  uint64_t admitted = 0;
  uint64_t local = 0;
};

struct Shape {
  uint32_t nodes;
  int64_t limit;
  Duration window;
  int64_t burst;

  static Shape From(Random& random) {
    const auto limit = static_cast<int64_t>(random.Scaled(1, 2000));
    return {.nodes = static_cast<uint32_t>(random.Between(1, 6)),
            .limit = limit,
            .window = Duration(limit * static_cast<int64_t>(random.Scaled(1000, 1'000'000'000))),
            .burst = static_cast<int64_t>(random.Scaled(1, 2000))};
  }
  [[nodiscard]] int64_t unit_ns() const { return window.count() / limit; }
};

// Every node asks far more often than it may, the store is away again and again: the fleet stays
// within 5 % of the oracle's bound and one burst, however often it switches.
RC_GTEST_PROP(LocalShare, SwitchesGrantNobodyAFreshBucket, (uint64_t seed)) {
  Random random(seed);
  const Shape shape = Shape::From(random);
  Fleet fleet(shape.nodes, shape.limit, shape.window, shape.burst);
  const int64_t start = fleet.now;
  const int64_t step = std::max<int64_t>(shape.unit_ns() / (shape.nodes * 3), 1);
  bool away = random.OneIn(2);
  for (int i = 0; i < 4000; ++i) {
    if (random.OneIn(200)) {
      away = !away;
      if (!away) {
        fleet.Return();
      }
    }
    for (size_t node = 0; node < shape.nodes; ++node) {
      fleet.Ask(node, 1, away);
    }
    fleet.now += step;
  }
  const double bound = static_cast<double>(shape.burst) + static_cast<double>(fleet.now - start) /
                                                              static_cast<double>(shape.unit_ns());
  RC_ASSERT(static_cast<double>(fleet.admitted) <= 1.05 * bound + static_cast<double>(shape.burst));
}

// The worst traffic: whoever asks next, at any pace, with any cost; nodes that the key is a
// stranger to. The debt beyond the quota is never more than one burst, and is paid before anything
// else.
RC_GTEST_PROP(LocalShare, TheWorstTrafficGetsOneMoreBurst, (uint64_t seed)) {
  Random random(seed);
  const Shape shape = Shape::From(random);
  Fleet fleet(shape.nodes, shape.limit, shape.window, shape.burst);
  const int64_t start = fleet.now;
  bool away = false;
  uint64_t largest = 0;
  for (int i = 0; i < 2000; ++i) {
    if (random.OneIn(50)) {
      away = !away;
      if (!away) {
        fleet.Return();
      }
    }
    const uint64_t cost =
        random.OneIn(3) ? random.Between(1, static_cast<uint64_t>(shape.burst)) : 1;
    largest = std::max(largest, cost);
    fleet.Ask(random.Below(shape.nodes), cost, away);
    fleet.now += static_cast<int64_t>(
        random.OneIn(4) ? random.Scaled(1, 1000) * static_cast<uint64_t>(shape.unit_ns())
                        : random.Below(static_cast<uint64_t>(shape.unit_ns())));
  }
  // What saves up is one cost a node at the most.
  const auto saved = static_cast<double>(shape.nodes * largest);
  const double elapsed =
      static_cast<double>(fleet.now - start) / static_cast<double>(shape.unit_ns());
  RC_ASSERT(static_cast<double>(fleet.admitted) <=
            elapsed + 2.0 * static_cast<double>(shape.burst) + saved + shape.nodes);
}

// A whole outage, strangers, 10x load: at most B + r*t, whatever N is and whatever the cost.
RC_GTEST_PROP(LocalShare, AnOutageAdmitsWhatOneQuotaWould, (uint64_t seed)) {
  Random random(seed);
  const Shape shape = Shape::From(random);
  Fleet fleet(shape.nodes, shape.limit, shape.window, shape.burst);
  const int64_t start = fleet.now;
  const uint64_t cost = random.OneIn(2) ? 1 : random.Between(1, static_cast<uint64_t>(shape.burst));
  for (int i = 0; i < 3000; ++i) {
    fleet.Ask(random.Below(shape.nodes), cost, true);
    fleet.now += static_cast<int64_t>(random.Below(static_cast<uint64_t>(shape.unit_ns())));
  }
  const auto elapsed =
      static_cast<double>(fleet.now - start) / static_cast<double>(shape.unit_ns());
  RC_ASSERT(static_cast<double>(fleet.local) <= static_cast<double>(shape.burst) + elapsed + 1e-6);
}

// It is a share, not a refusal: under steady load each node gets its part of the rate, and a
// denial's retry time is exact.
RC_GTEST_PROP(LocalShare, RetryTimesAreExact, (uint64_t seed)) {
  Random random(seed);
  const Shape shape = Shape::From(random);
  const LocalPlan plan =
      MakeLocalPlan(*Quota::TokenBucket(shape.limit, shape.window, shape.burst), shape.nodes);
  const uint64_t cost = random.Between(1, static_cast<uint64_t>(shape.burst));
  const int64_t now = 1'000'000'000'000;
  const LocalState state{now + static_cast<int64_t>(random.Below(3 * plan.burst_ns + 1)) -
                         static_cast<int64_t>(plan.burst_ns)};
  const LocalStep step = TryLocally(plan, state, cost, now);
  if (step.fits) {
    RC_ASSERT(step.debt_ns <= static_cast<int64_t>(plan.burst_ns));
  } else {
    RC_ASSERT(TryLocally(plan, state, cost, now + step.retry_ns).fits);
    RC_ASSERT(!TryLocally(plan, state, cost, now + step.retry_ns - 1).fits);
  }
}

// What the store is told later is never more than what was admitted, and nothing of it once it has
// drained.
RC_GTEST_PROP(LocalShare, OwesWhatHasNotDrained, (uint64_t seed)) {
  Random random(seed);
  const Shape shape = Shape::From(random);
  Fleet fleet(1, shape.limit, shape.window, shape.burst);
  for (int i = 0; i < 50; ++i) {
    fleet.Ask(0, 1, true);
    fleet.now += static_cast<int64_t>(random.Below(2 * static_cast<uint64_t>(shape.unit_ns())));
  }
  Fleet later(1, shape.limit, shape.window, shape.burst);
  const uint32_t owed = fleet.nodes[0]->TakeOwed(kKey, fleet.own, fleet.now);
  RC_ASSERT(owed <= fleet.local);
  RC_ASSERT(owed <= static_cast<uint64_t>(shape.burst));
  RC_ASSERT(fleet.nodes[0]->TakeOwed(kKey, fleet.own, fleet.now) == 0U);
}

}  // namespace
}  // namespace weir::shared
