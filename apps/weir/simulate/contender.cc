#include "apps/weir/simulate/contender.h"

#include <array>
#include <utility>

#include "weir/limiter.h"

#include "apps/weir/simulate/text.h"

namespace weir::simulate {
namespace {

constexpr std::array kKinds = {
    KindInfo{Kind::kTokenBucket, "token-bucket",
             "tokens drip in evenly; up to a burst of them is saved",
             "B at once, then L per W evenly", true},
    KindInfo{Kind::kLeakyBucket, "leaky-bucket",
             "a level that drains evenly; the same decisions as token-bucket",
             "the same law as token-bucket", true},
    KindInfo{Kind::kFixedWindow, "fixed-window",
             "a counter, back to zero when the clock's window turns",
             "L between turns of the clock", false},
    KindInfo{Kind::kFirstHit, "first-hit", "a fixed window that a key's first request opens",
             "L in W from the first request", false},
    KindInfo{Kind::kSlidingWindow, "sliding-window",
             "two counters, the older one fading as it leaves the window",
             "about L; L in a clock window", false},
    KindInfo{Kind::kMinGap, "min-gap", "a pause of W/L after every request",
             "never two closer than the gap", false},
};

Result<Quota> MakeQuota(Kind kind, const Limit& limit, int64_t burst) {
  switch (kind) {
    case Kind::kTokenBucket:
      return Quota::TokenBucket(limit.limit, limit.window, burst);
    case Kind::kLeakyBucket:
      return Quota::LeakyBucket(limit.limit, limit.window, burst);
    case Kind::kFixedWindow:
      return Quota::FixedWindow(limit.limit, limit.window);
    case Kind::kFirstHit:
      return Quota::FixedWindow(limit.limit, limit.window, WindowStart::kFirstHit);
    case Kind::kSlidingWindow:
      return Quota::SlidingWindow(limit.limit, limit.window);
    case Kind::kMinGap: {
      // Rounded up, so that no window holds more than the limit.
      const int64_t gap = (limit.window.count() + limit.limit - 1) / limit.limit;
      return Quota::MinGap(Duration(gap));
    }
  }
  return Error{ErrorCode::kInternal, "no such algorithm"};
}

}  // namespace

std::span<const KindInfo> AllKinds() noexcept {
  return kKinds;
}

const KindInfo& Info(Kind kind) noexcept {
  return kKinds[static_cast<size_t>(kind)];
}

std::optional<Kind> FindKind(std::string_view name) noexcept {
  for (const KindInfo& info : kKinds) {
    if (info.name == name)
      return info.kind;
  }
  return std::nullopt;
}

Contender::Contender(Kind kind, const Limit& limit, Quota quota)
    : kind_(kind), limit_(limit), name_(Info(kind).name), quota_(std::move(quota)) {}

Result<Contender> Contender::Create(Kind kind, const Limit& limit, int64_t burst) {
  auto quota = MakeQuota(kind, limit, burst);
  if (!quota)
    return quota.error();
  return Contender(kind, limit, *std::move(quota));
}

std::string Contender::Setting() const {
  if (Info(kind_).takes_burst)
    return "burst " + std::to_string(quota_.burst());
  if (kind_ == Kind::kMinGap)
    return "gap " + FormatDuration(quota_.window());
  return "";
}

uint64_t Contender::WorstPossible() const noexcept {
  const auto limit = static_cast<uint64_t>(limit_.limit);
  switch (kind_) {
    case Kind::kTokenBucket:
    case Kind::kLeakyBucket:
      return quota_.burst() + limit - 1;
    case Kind::kFixedWindow:
    case Kind::kSlidingWindow:
      return 2 * limit;
    case Kind::kFirstHit:
      return 2 * limit - 1;
    case Kind::kMinGap:
      return limit;
  }
  return 0;
}

std::string_view Contender::Formula() const noexcept {
  switch (kind_) {
    case Kind::kTokenBucket:
    case Kind::kLeakyBucket:
      return "B+L-1";
    case Kind::kFixedWindow:
    case Kind::kSlidingWindow:
      return "2L";
    case Kind::kFirstHit:
      return "2L-1";
    case Kind::kMinGap:
      return "L";
  }
  return "";
}

Result<Decisions> Contender::Decide(std::span<const Duration> arrivals) const {
  // One window after the epoch: an edge, and a time that no state can take for "never".
  ManualClock clock;
  clock.Advance(limit_.window);
  const Timestamp start = clock.Now();
  MemoryOptions options;
  options.budget_bytes = MemoryStore::kMinBudgetBytes;
  options.huge_pages = false;
  options.clock = &clock;
  auto limiter = Limiter::Create(quota_, options);
  if (!limiter)
    return limiter.error();

  Decisions decisions;
  decisions.reserve(arrivals.size());
  for (const Duration at : arrivals) {
    // The clock moves with the traffic: a `now` far from it would be refused.
    clock.Advance(start + at - clock.Now());
    const Decision decision = limiter->Check("tour", clock.Now());
    if (decision.problem != Problem::kNone) {
      return Error{ErrorCode::kInternal, std::string(Explain(decision.problem))};
    }
    decisions.push_back(decision.allowed() ? 1 : 0);
  }
  return decisions;
}

Result<Score> Run(const Contender& contender, std::span<const Duration> arrivals,
                  const Limit& limit, Duration duration, size_t bins) {
  auto decisions = contender.Decide(arrivals);
  if (!decisions)
    return decisions.error();
  const std::vector<Duration> admitted = Admitted(arrivals, *decisions);
  Score score;
  score.admitted = admitted.size();
  score.denied = arrivals.size() - admitted.size();
  score.worst_window = WorstWindow(admitted, limit.window);
  score.wrong = CountWrong(arrivals, *decisions, limit.window, static_cast<uint64_t>(limit.limit));
  score.admitted_bins = Histogram(admitted, duration, bins);
  return score;
}

}  // namespace weir::simulate
