#include "store/redis/shared_plan.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/wide_math.h"

namespace weir::script {

namespace {

using algorithm::Plan;

constexpr uint64_t kUsNs = SharedTicks::kUsNs;
// As in plan.cc: rounding an interval of so many ticks up by less than one changes the rate by less
// than one part in a million.
constexpr uint64_t kEmissionMin = uint64_t{1} << 20;
constexpr uint64_t kDebtMax = uint64_t{1} << (SharedTicks::kPayloadBits - 2);

Id ScriptFor(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      return Id::kBucket;
    case Algorithm::kMinGap:
      return Id::kGap;
    case Algorithm::kFixedWindow:
    case Algorithm::kCalendar:
      return Id::kWindow;
    case Algorithm::kSlidingWindow:
      return Id::kSliding;
    case Algorithm::kSlicedWindow:
      return Id::kSliced;
    case Algorithm::kSlidingLog:
      return Id::kLog;
    case Algorithm::kConcurrency:
      break;
  }
  return Id::kHold;
}

// m + 100 k for m * 10^k microseconds; 0 if there is none.
uint32_t CodeOf(uint64_t us) {
  uint32_t tens = 0;
  while (us % 10 == 0 && us != 0) {
    us /= 10;
    ++tens;
  }
  return us != 0 && us < 100 && tens < 10 ? static_cast<uint32_t>(us) + 100 * tens : 0;
}

// The interval W/L in ticks of 1/subdivision microseconds, rounded up.
uint64_t Ticks(const Quota& quota, uint64_t subdivision) {
  const auto window = static_cast<uint64_t>(quota.window().count());
  return base::MulDivCeil(window, subdivision, uint64_t{quota.limit()} * kUsNs);
}

// Exact where the longest debt leaves room for it, else as fine as that allows.
uint64_t SubdivisionFor(const Quota& quota) {
  const auto window = static_cast<uint64_t>(quota.window().count());
  const uint64_t unit = uint64_t{quota.limit()} * kUsNs;
  const uint64_t exact = unit / std::gcd(window, unit);
  const auto fits = [&](uint64_t subdivision) {
    return subdivision <= SharedPlan::kSubdivisionMax &&
           base::SaturatingMul(Ticks(quota, subdivision), 2 * uint64_t{quota.burst()}) < kDebtMax;
  };
  if (exact == 1 || (Ticks(quota, 1) < kEmissionMin && fits(exact))) {
    return exact;
  }
  uint64_t subdivision = 1;
  while (Ticks(quota, subdivision) < kEmissionMin && fits(2 * subdivision)) {
    subdivision *= 2;
  }
  return subdivision;
}

Result<Plan> CompileBucket(const Quota& quota) {
  Plan plan;
  plan.subdivision = SubdivisionFor(quota);
  plan.emission = Ticks(quota, plan.subdivision);
  const auto window = static_cast<uint64_t>(quota.window().count());
  const bool exact = static_cast<base::Uint128>(plan.emission) * quota.limit() * kUsNs ==
                     static_cast<base::Uint128>(window) * plan.subdivision;
  if (!exact && plan.emission < kEmissionMin) {
    const uint64_t nearest = std::max<uint64_t>(
        1, base::MulDivFloor(window, SharedPlan::kSubdivisionMax, kEmissionMin * kUsNs));
    return Error::Invalid("limit: " + std::to_string(quota.limit()) + " per " +
                          std::to_string(window) +
                          " ns is too fast for a shared store to meet to one part in a million; "
                          "the nearest allowed is " +
                          std::to_string(nearest));
  }
  plan.tolerance = plan.emission * quota.burst();
  plan.debt_max = 2 * plan.tolerance;
  plan.undelayed = plan.emission * quota.undelayed();
  plan.per_emission = base::NarrowReciprocal(plan.emission);
  plan.horizon_ns = SharedTicks::ToNs(plan, plan.debt_max);
  return plan;
}

Plan CompileGap(const Quota& quota) {
  Plan plan;
  const auto window = static_cast<uint64_t>(quota.window().count());
  plan.emission = (window + kUsNs - 1) / kUsNs;
  plan.tolerance = plan.emission;
  plan.debt_max = plan.emission;
  plan.per_emission = base::NarrowReciprocal(plan.emission);
  plan.horizon_ns = SharedTicks::ToNs(plan, plan.emission);
  return plan;
}

Error NotWhole(const char* field, uint64_t ns) {
  return Error::Invalid(
      std::string(field) + ": " + std::to_string(ns) +
      " ns; a shared store counts in whole microseconds, the nearest allowed is " +
      std::to_string((ns + kUsNs / 2) / kUsNs * kUsNs) + " ns");
}

}  // namespace

Result<SharedPlan> SharedPlan::Compile(const Quota& quota) {
  SharedPlan shared;
  shared.script_ = ScriptFor(quota.algorithm());
  const auto window_ns = static_cast<uint64_t>(quota.window().count());
  if (shared.script_ == Id::kBucket || shared.script_ == Id::kGap) {
    Result<Plan> plan = shared.script_ == Id::kGap ? CompileGap(quota) : CompileBucket(quota);
    if (!plan.ok()) {
      return plan.error();
    }
    shared.law_ = *plan;
    shared.law_.algorithm = quota.algorithm();
    shared.law_.burst = quota.burst();
    shared.law_.limit = quota.limit();
    shared.law_.window_ns = window_ns;
    shared.interval_code_ = shared.law_.subdivision == 1 ? CodeOf(shared.law_.emission) : 0;
    uint32_t rest = shared.interval_code_;
    for (size_t i = shared.interval_name_.size(); i != 0; rest /= 10) {
      shared.interval_name_[--i] = static_cast<char>('0' + rest % 10);
    }
    return shared;
  }
  // A window from the first hit is one from the epoch but for where it ends, which the state says.
  const bool first_hit = quota.start() == WindowStart::kFirstHit;
  Result<Plan> plan = algorithm::Compile(
      first_hit ? *Quota::FixedWindow(quota.limit(), quota.window()) : quota,
      algorithm::NeedsRecord(quota) ? algorithm::SlotKind::kRecord : algorithm::SlotKind::kWide);
  if (!plan.ok()) {
    return plan.error();
  }
  shared.law_ = *plan;
  if (quota.algorithm() == Algorithm::kCalendar) {
    auto zone = base::TimeZone::Load(quota.time_zone());
    if (!zone.ok()) {
      return zone.error();
    }
    shared.zone_ = *std::move(zone);
    shared.period_ = quota.period();
    // Periods of one kind and zone have the same name on every node: below 2^52, away from windows.
    uint64_t name = 0xcbf29ce484222325U;
    for (const char letter : quota.time_zone()) {
      name = (name ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
    }
    name = (name << 2 | static_cast<uint64_t>(quota.period())) & base::LowBits(50);
    shared.family_ = -static_cast<double>(name | uint64_t{1} << 50);
    return shared;
  }
  if (shared.script_ == Id::kHold) {
    return shared;
  }
  if (window_ns % kUsNs != 0) {
    return NotWhole("window", window_ns);
  }
  if (shared.script_ == Id::kSliced && shared.law_.slice_ns % kUsNs != 0) {
    return NotWhole("window / slices", shared.law_.slice_ns);
  }
  shared.law_.start = quota.start();
  shared.family_ =
      static_cast<double>(window_ns / kUsNs) + static_cast<double>(shared.law_.start) * 0x1p50;
  return shared;
}

char SharedPlan::letter() const noexcept {
  constexpr char kLetters[] = "bgwsclh";
  return kLetters[static_cast<size_t>(script_)];
}

algorithm::Period SharedPlan::PeriodAt(int64_t unix_us) const noexcept {
  return algorithm::PeriodAt(period_, *zone_, unix_us * static_cast<int64_t>(kUsNs));
}

}  // namespace weir::script
