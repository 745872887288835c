#include "apps/weir/simulate/contender.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "weir/limiter.h"

#include "apps/weir/simulate/at_work.h"
#include "apps/weir/text.h"

namespace weir::simulate {

using app::FormatDuration;
namespace {

using std::chrono::hours;

template <WindowStart start>
Result<Quota> MakeFixed(const Limit& limit, int64_t /*number*/) {
  return Quota::FixedWindow(limit.limit, limit.window, start);
}

Result<Quota> MakeSliding(const Limit& limit, int64_t /*number*/) {
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

Result<Quota> MakeGap(const Limit& limit, int64_t /*number*/) {
  // Rounded up, so that no window holds more than the limit.
  return Quota::MinGap(Duration((limit.window.count() + limit.limit - 1) / limit.limit));
}

Result<Quota> MakeCalendar(const Limit& limit, int64_t /*number*/) {
  if (limit.window == hours(24))
    return Quota::Calendar(limit.limit, CalendarPeriod::kDay);
  if (limit.window == hours(24 * 7))
    return Quota::Calendar(limit.limit, CalendarPeriod::kWeek);
  return Error::Invalid("counts whole days or weeks: take a --limit per day, as in 5000/d");
}

Result<Quota> MakeLog(const Limit& limit, int64_t /*number*/) {
  return Quota::SlidingLog(limit.limit, limit.window);
}

// Sixtieths, as of an hour counted by the minute, or as many as cut the window evenly.
Result<Quota> MakeSliced(const Limit& limit, int64_t /*number*/) {
  int64_t slices = std::clamp<int64_t>(limit.window / Quota::kMinWindow, 1, 60);
  while (limit.window.count() % slices != 0) --slices;
  return Quota::SlicedWindow(limit.limit, limit.window, slices);
}

// As many places as are at work on average when the limit is just used up: by Little's law the rate
// times the time that each takes.
Result<Quota> MakeConcurrency(const Limit& limit, int64_t number) {
  const double at_work = static_cast<double>(limit.limit) *
                         static_cast<double>(limit.service.mean.count()) /
                         static_cast<double>(limit.window.count());
  const auto most = static_cast<double>(Quota::kMaxHolds);
  const auto places = static_cast<int64_t>(std::clamp(std::ceil(at_work), 1.0, most));
  return Quota::Concurrency(number != 0 ? number : places,
                            std::max(limit.service.longest, Quota::kMinWindow));
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

// Each place is taken anew when the one before has ended.
uint64_t PlacesTurned(const BoundInput& in) {
  return in.burst * in.starts_a_place;
}

constexpr std::array kKinds = {
    KindInfo{"token-bucket", "tokens drip in evenly; up to a burst of them is saved",
             "B at once, then L per W", OwnNumber::kBurst, true, MakeToken, "B+L-1", BurstAndLimit},
    KindInfo{"leaky-bucket", "a level that drains evenly; the same decisions as token-bucket",
             "as token-bucket", OwnNumber::kBurst, true, MakeLeaky, "B+L-1", BurstAndLimit},
    KindInfo{"queue", "a leaky bucket that delays: a start every W/L; up to a burst waits",
             "starts W/L apart", OwnNumber::kBurst, true, MakeQueue, "L+cost-1", LimitAndCost},
    KindInfo{"fixed-window", "a counter, back to zero when the clock's window turns",
             "L per clock window", OwnNumber::kNone, true, MakeFixed<WindowStart::kEpoch>, "2L",
             TwoLimits},
    KindInfo{"first-hit", "a fixed window that a key's first request opens",
             "L in W from a first hit", OwnNumber::kNone, true, MakeFixed<WindowStart::kFirstHit>,
             "2L-1", TwoLimitsLessOne},
    KindInfo{"per-key", "a fixed window that turns at another moment for every key",
             "L per window of its own", OwnNumber::kNone, true, MakeFixed<WindowStart::kPerKey>,
             "2L", TwoLimits},
    KindInfo{"sliding-window", "two counters, the older one fading as it leaves the window",
             "about L", OwnNumber::kNone, true, MakeSliding, "2L", TwoLimits},
    KindInfo{"sliding-log", "a stamp for every unit; exact, and the dearest in memory",
             "L in any window", OwnNumber::kNone, true, MakeLog, "L", OneLimit},
    KindInfo{"sliced-window", "a counter for each of up to 60 slices of the window",
             "L, up to a slice longer", OwnNumber::kNone, true, MakeSliced, "L", OneLimit},
    KindInfo{"min-gap", "a pause of W/L after every request, whatever it costs",
             "no two within the gap", OwnNumber::kNone, false, MakeGap, "L", LimitOfRequests},
    KindInfo{"calendar", "a counter per day or week of the calendar; needs a limit per day or week",
             "L per day or week", OwnNumber::kNone, true, MakeCalendar, "2L", TwoLimits},
    KindInfo{"concurrency", "so many at work at once, however fast they come and go",
             "B at work at once", OwnNumber::kPlaces, true, MakeConcurrency, "B*W/S", PlacesTurned},
};

// Of 15 bytes of a budget 8 are a live key's slot, all others free slots, the sketch and what finds
// them: measured by `./dev bench library`, where every one of five million keys finds room.
constexpr uint64_t kBudgetBytes = 15;
constexpr uint64_t kUsedBytes = 8;

// Room for these keys without one of them sharing a state: two wide slots and more for each.
constexpr size_t kSlotBytes = 64;

MemoryOptions ExactStore(size_t bytes, const Clock& clock) {
  MemoryOptions options;
  options.budget_bytes = std::max(MemoryStore::kMinBudgetBytes, bytes);
  options.overflow = OverflowPolicy::kDeny;  // no key is to go without a state of its own
  options.huge_pages = false;
  options.clock = &clock;
  return options;
}

// Tenths of a byte that a key takes. Quotas in slots: the store says how large they are. Quotas in
// records: as many keys as find room are charged; holds are as many as there can be.
Result<uint64_t> MeasureDecibytes(const Quota& quota) {
  constexpr size_t kKeys = 65536;
  const ManualClock clock;
  auto limiter = Limiter::Create(quota, ExactStore(kKeys * kSlotBytes, clock));
  if (!limiter)
    return limiter.error();
  StoreStats stats = limiter->store()->Stats();
  if (stats.slots != 0) {
    // Rounded: beside its slots a store keeps a few bytes that do not grow with the keys.
    const uint64_t slot = (stats.budget_bytes + stats.slots / 2) / stats.slots;
    return 10 * slot * kBudgetBytes / kUsedBytes;
  }
  const uint32_t charges = quota.algorithm() == Algorithm::kConcurrency ? quota.limit() : 1;
  for (size_t i = 0; stats.overflow == 0; stats.overflow = limiter->store()->Stats().overflow) {
    const std::string key = "key " + std::to_string(i++);
    for (uint32_t n = 0; n < charges; ++n) limiter->Check(key);
  }
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

Result<Contender> Contender::Create(const KindInfo& kind, const Limit& limit, int64_t number) {
  auto quota = kind.make(limit, number);
  if (!quota)
    return quota.error();
  auto decibytes = MeasureDecibytes(*quota);
  if (!decibytes)
    return decibytes.error();
  return Contender(kind, limit, *std::move(quota), *decibytes);
}

std::string Contender::Setting() const {
  if (Holds())
    return std::to_string(quota_.limit()) + " at once";
  if (kind_->number == OwnNumber::kBurst)
    return "burst " + std::to_string(quota_.burst());
  if (quota_.algorithm() == Algorithm::kMinGap)
    return "gap " + FormatDuration(quota_.window());
  if (quota_.algorithm() == Algorithm::kSlicedWindow)
    return std::to_string(quota_.slices()) + " slices";
  return "";
}

uint64_t Contender::WorstPossible(uint64_t largest_cost) const noexcept {
  const auto limit = static_cast<uint64_t>(limit_.limit);
  const int64_t shortest = std::max<int64_t>(limit_.service.shortest.count(), 1);
  const int64_t starts = (limit_.window.count() + shortest - 1) / shortest;
  return kind_->worst({limit, quota_.burst(), largest_cost, static_cast<uint64_t>(starts)});
}

MemoryOptions Contender::StoreFor(const Workload& workload, const Clock& clock) const {
  // Half as much again as a key takes, so that none has to share a state.
  const size_t keys = workload.keys.size() + 1;
  size_t bytes = keys * std::max(kSlotBytes, decibytes_ * 3 / 20);
  // Few keys ever have all the holds they may: there are no more than there are requests.
  if (Holds())
    bytes = std::min(bytes, keys * 4 * kSlotBytes + workload.requests.size() * 2 * kSlotBytes);
  MemoryOptions options = ExactStore(bytes, clock);
  // Starts are exactly W/L apart. In 8-byte slots they may be a microsecond closer together, and a
  // window that ends with one would hold one more.
  if (Delays())
    options.wide_percent = 100;
  return options;
}

Result<Decisions> Contender::Decide(const Workload& workload, std::vector<Duration>* waits) const {
  // One window after the epoch: an edge, and a time that no state can take for "never".
  ManualClock clock;
  clock.Advance(limit_.window);
  const Timestamp start = clock.Now();
  auto limiter = Limiter::Create(quota_, StoreFor(workload, clock));
  if (!limiter)
    return limiter.error();

  AtWork<Hold> at_work;
  // The clock moves with the traffic: a `now` far from it would be refused.
  const auto move_to = [&](Duration at) { clock.Advance(start + at - clock.Now()); };
  const auto ask = [&](const Request& request) {
    const std::string& key = workload.keys[request.key];
    if (!Holds()) {
      move_to(request.at);
      return limiter->Check(key, clock.Now(), request.cost);
    }
    at_work.EndUntil(request.at, [&](Duration end, const Hold& hold) {
      move_to(end);
      limiter->Release(hold, clock.Now());
    });
    move_to(request.at);
    const Acquired got = limiter->Acquire(key, {.cost = request.cost, .now = clock.Now()});
    if (got.allowed())
      at_work.Add(request.at + request.service, got.hold);
    return got.decision;
  };
  Decisions decisions;
  decisions.reserve(workload.requests.size());
  for (const Request& request : workload.requests) {
    const Decision decision = ask(request);
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
