#include "apps/weir/simulate/contender.h"

#include <algorithm>
#include <array>

#include "weir/limiter.h"

#include "apps/weir/simulate/text.h"

namespace weir::simulate {
namespace {

using std::chrono::hours;

template <WindowStart start>
Result<Quota> MakeFixed(const Limit& limit, int64_t /*burst*/) {
  return Quota::FixedWindow(limit.limit, limit.window, start);
}

Result<Quota> MakeSliding(const Limit& limit, int64_t /*burst*/) {
  return Quota::SlidingWindow(limit.limit, limit.window);
}

Result<Quota> MakeToken(const Limit& limit, int64_t burst) {
  return Quota::TokenBucket(limit.limit, limit.window, burst);
}

Result<Quota> MakeLeaky(const Limit& limit, int64_t burst) {
  return Quota::LeakyBucket(limit.limit, limit.window, burst);
}

Result<Quota> MakeQueue(const Limit& limit, int64_t burst) {
  return Quota::Queue(limit.limit, limit.window, burst);
}

Result<Quota> MakeGap(const Limit& limit, int64_t /*burst*/) {
  // Rounded up, so that no window holds more than the limit.
  return Quota::MinGap(Duration((limit.window.count() + limit.limit - 1) / limit.limit));
}

Result<Quota> MakeCalendar(const Limit& limit, int64_t /*burst*/) {
  if (limit.window == hours(24))
    return Quota::Calendar(limit.limit, CalendarPeriod::kDay);
  if (limit.window == hours(24 * 7))
    return Quota::Calendar(limit.limit, CalendarPeriod::kWeek);
  return Error::Invalid("counts whole days or weeks: take a --limit per day, as in 5000/d");
}

Result<Quota> MakeLog(const Limit& limit, int64_t /*burst*/) {
  return Quota::SlidingLog(limit.limit, limit.window);
}

// Sixtieths, as of an hour counted by the minute, or as many as cut the window evenly.
Result<Quota> MakeSliced(const Limit& limit, int64_t /*burst*/) {
  int64_t slices = std::clamp<int64_t>(limit.window / Quota::kMinWindow, 1, 60);
  while (limit.window.count() % slices != 0) --slices;
  return Quota::SlicedWindow(limit.limit, limit.window, slices);
}

uint64_t OneLimit(const BoundInput& in) {
  return in.limit;
}

// Units start one after the other, but a request starts with all of its own.
uint64_t LimitAndCost(const BoundInput& in) {
  return in.limit + in.largest_cost - 1;
}

uint64_t TwoLimits(const BoundInput& in) {
  return 2 * in.limit;
}

uint64_t BurstAndLimit(const BoundInput& in) {
  return in.burst + in.limit - 1;
}

// The request that opened a window is the first to leave the sight of the one asked about.
uint64_t TwoLimitsLessOne(const BoundInput& in) {
  return 2 * in.limit - 1;
}

// A gap counts requests, whatever they cost.
uint64_t LimitOfRequests(const BoundInput& in) {
  return in.limit * in.largest_cost;
}

constexpr std::array kKinds = {
    KindInfo{"token-bucket", "tokens drip in evenly; up to a burst of them is saved",
             "B at once, then L per W", true, true, MakeToken, "B+L-1", BurstAndLimit},
    KindInfo{"leaky-bucket", "a level that drains evenly; the same decisions as token-bucket",
             "as token-bucket", true, true, MakeLeaky, "B+L-1", BurstAndLimit},
    KindInfo{"queue", "a leaky bucket that delays: a start every W/L; up to a burst waits",
             "starts W/L apart", true, true, MakeQueue, "L+cost-1", LimitAndCost},
    KindInfo{"fixed-window", "a counter, back to zero when the clock's window turns",
             "L per clock window", false, true, MakeFixed<WindowStart::kEpoch>, "2L", TwoLimits},
    KindInfo{"first-hit", "a fixed window that a key's first request opens",
             "L in W from a first hit", false, true, MakeFixed<WindowStart::kFirstHit>, "2L-1",
             TwoLimitsLessOne},
    KindInfo{"per-key", "a fixed window that turns at another moment for every key",
             "L per window of its own", false, true, MakeFixed<WindowStart::kPerKey>, "2L",
             TwoLimits},
    KindInfo{"sliding-window", "two counters, the older one fading as it leaves the window",
             "about L", false, true, MakeSliding, "2L", TwoLimits},
    KindInfo{"sliding-log", "a stamp for every unit; exact, and the dearest in memory",
             "L in any window", false, true, MakeLog, "L", OneLimit},
    KindInfo{"sliced-window", "a counter for each of up to 60 slices of the window",
             "L, up to a slice longer", false, true, MakeSliced, "L", OneLimit},
    KindInfo{"min-gap", "a pause of W/L after every request, whatever it costs",
             "no two within the gap", false, false, MakeGap, "L", LimitOfRequests},
    KindInfo{"calendar", "a counter per day or week of the calendar; needs a limit per day or week",
             "L per day or week", false, true, MakeCalendar, "2L", TwoLimits},
};

// A table with room to spare has 1.6 slots a key (docs/reference/algorithms.md).
constexpr uint64_t kDecislotsPerKey = 16;

// Room for these keys without one of them sharing a state: two wide slots and more for each.
constexpr size_t kSlotBytes = 64;

MemoryOptions StoreFor(size_t keys, size_t bytes_per_key, const Clock& clock) {
  MemoryOptions options;
  options.budget_bytes = std::max(MemoryStore::kMinBudgetBytes, keys * bytes_per_key);
  options.overflow = OverflowPolicy::kDeny;  // no key is to go without a state of its own
  options.huge_pages = false;
  options.clock = &clock;
  return options;
}

// Tenths of a byte that a key takes. Quotas in slots: the store says how large they are. Quotas in
// records: as many keys as find room are charged.
Result<uint64_t> MeasureDecibytes(const Quota& quota) {
  constexpr size_t kKeys = 65536;
  const ManualClock clock;
  auto limiter = Limiter::Create(quota, StoreFor(kKeys, kSlotBytes, clock));
  if (!limiter)
    return limiter.error();
  StoreStats stats = limiter->store()->Stats();
  if (stats.slots != 0) {
    // Rounded: beside its slots a store keeps a few bytes that do not grow with the keys.
    const uint64_t slot = (stats.budget_bytes + stats.slots / 2) / stats.slots;
    return slot * kDecislotsPerKey;
  }
  for (size_t i = 0; stats.overflow == 0; stats.overflow = limiter->store()->Stats().overflow)
    limiter->Check("key " + std::to_string(i++));
  stats = limiter->store()->Stats();
  return stats.budget_bytes * 10 / stats.records;
}

}  // namespace

std::span<const KindInfo> AllKinds() noexcept {
  return kKinds;
}

const KindInfo* FindKind(std::string_view name) noexcept {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const KindInfo& kind) { return kind.name == name; });
  return found == kKinds.end() ? nullptr : &*found;
}

bool Applies(const KindInfo& kind, const Limit& limit, uint64_t largest_cost) {
  if (!kind.counts_units && largest_cost > 1)
    return false;
  return kind.make(limit, 0).ok();
}

Contender::Contender(const KindInfo& kind, const Limit& limit, Quota quota, uint64_t decibytes)
    : kind_(&kind),
      limit_(limit),
      name_(kind.name),
      quota_(std::move(quota)),
      decibytes_(decibytes) {}

Result<Contender> Contender::Create(const KindInfo& kind, const Limit& limit, int64_t burst) {
  auto quota = kind.make(limit, burst);
  if (!quota)
    return quota.error();
  auto decibytes = MeasureDecibytes(*quota);
  if (!decibytes)
    return decibytes.error();
  return Contender(kind, limit, *std::move(quota), *decibytes);
}

std::string Contender::Setting() const {
  if (kind_->takes_burst)
    return "burst " + std::to_string(quota_.burst());
  if (quota_.algorithm() == Algorithm::kMinGap)
    return "gap " + FormatDuration(quota_.window());
  if (quota_.algorithm() == Algorithm::kSlicedWindow)
    return std::to_string(quota_.slices()) + " slices";
  return "";
}

uint64_t Contender::WorstPossible(uint64_t largest_cost) const noexcept {
  return kind_->worst({static_cast<uint64_t>(limit_.limit), quota_.burst(), largest_cost});
}

Result<Decisions> Contender::Decide(const Workload& workload, std::vector<Duration>* waits) const {
  // One window after the epoch: an edge, and a time that no state can take for "never".
  ManualClock clock;
  clock.Advance(limit_.window);
  const Timestamp start = clock.Now();
  // Half as much again as a key takes, so that none has to share a state.
  const size_t bytes = std::max(kSlotBytes, decibytes_ * 3 / 20);
  MemoryOptions options = StoreFor(workload.keys.size() + 1, bytes, clock);
  // Starts are exactly W/L apart. In 8-byte slots they may be a microsecond closer together, and a
  // window that ends with one would hold one more.
  if (Delays())
    options.wide_percent = 100;
  auto limiter = Limiter::Create(quota_, options);
  if (!limiter)
    return limiter.error();

  Decisions decisions;
  decisions.reserve(workload.requests.size());
  for (const Request& request : workload.requests) {
    // The clock moves with the traffic: a `now` far from it would be refused.
    clock.Advance(start + request.at - clock.Now());
    const Decision decision = limiter->Check(workload.keys[request.key], clock.Now(), request.cost);
    // What can never pass is denied, as far as whoever asked can see.
    if (decision.problem != Problem::kNone && decision.problem != Problem::kCostAboveBurst)
      return Error{ErrorCode::kInternal, std::string(Explain(decision.problem))};
    if (decision.basis != Basis::kStore)
      return Error{ErrorCode::kInternal, "the simulated store is too small for these keys"};
    decisions.push_back(decision.allowed() ? 1 : 0);
    if (waits != nullptr)
      waits->push_back(decision.start_after());
  }
  return decisions;
}

}  // namespace weir::simulate
