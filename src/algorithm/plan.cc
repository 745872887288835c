#include "algorithm/plan.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <string>

namespace weir::algorithm {

namespace {

using base::kUint64Max;

// A debt, overdraft included, stays below a quarter of the payload's range, so that it can never be
// mistaken for the past nor the past for it.
constexpr uint64_t kCompactDebtMax = uint64_t{1} << (CompactTicks::kPayloadBits - 2);
constexpr uint64_t kWideDebtMax = uint64_t{1} << (WideTicks::kPayloadBits - 2);
// T of at least 2^20 ticks: rounding it up by less than one changes the rate by less than 10^-6.
constexpr uint64_t kEmissionMin = uint64_t{1} << 20;
// Finer ticks would wrap in less than eight seconds, faster than a table should be swept.
constexpr int kShiftMax = 28;
constexpr int kShiftMin = -4;
// No state's clock may repeat faster than this, about eighteen minutes, where we can choose.
constexpr uint64_t kWrapMinNs = uint64_t{1} << 40;
constexpr uint64_t kDayNs = 86'400'000'000'000;

bool IsBucket(Algorithm algorithm) {
  return algorithm == Algorithm::kTokenBucket || algorithm == Algorithm::kLeakyBucket;
}

uint64_t WindowNs(const Quota& quota) {
  return static_cast<uint64_t>(quota.window().count());
}

// The emission interval in ticks of ns * 2^shift, rounded up.
uint64_t EmissionTicks(const Quota& quota, int shift) {
  const uint64_t window = WindowNs(quota);
  const uint64_t limit = quota.limit();
  return shift >= 0 ? base::MulDivCeil(window, uint64_t{1} << shift, limit)
                    : base::MulDivCeil(window, 1, limit << -shift);
}

bool EmissionIsExact(const Quota& quota, int shift) {
  const base::Uint128 window = static_cast<base::Uint128>(WindowNs(quota)) << std::max(shift, 0);
  return window % (static_cast<uint64_t>(quota.limit()) << std::max(-shift, 0)) == 0;
}

void SetBucket(const Quota& quota, Plan& plan, uint64_t emission) {
  plan.emission = emission;
  plan.tolerance = emission * plan.burst;
  plan.debt_max = 2 * plan.tolerance;
  plan.undelayed = emission * quota.undelayed();
  plan.per_emission = base::NarrowReciprocal(emission);
  if (plan.slot == SlotKind::kCompact) {
    plan.per_unit = base::ReciprocalUp(emission);
  }
}

// The limit nearest to one that is too fast. Up to kEmissionMin every limit is met; beyond it only
// those that make T a whole number of the finest ticks: the divisors of window * 2^kShiftMax.
uint64_t NearestBucketLimit(uint64_t window_ns, uint64_t limit) {
  uint64_t nearest = base::MulDivCeil(window_ns, uint64_t{1} << kShiftMax, kEmissionMin - 1) - 1;
  const auto distance = [&](uint64_t other) {
    return std::max(limit, other) - std::min(limit, other);
  };
  const auto consider = [&](uint64_t odd) {
    const base::Uint128 ticks = static_cast<base::Uint128>(window_ns) << kShiftMax;
    for (uint64_t other = odd; other <= Quota::kMaxLimit && ticks % other == 0; other *= 2) {
      if (distance(other) < distance(nearest)) {
        nearest = other;
      }
    }
  };
  // Windows that get here are below 2^24 ns: no limit is too fast for a longer one.
  const uint64_t odd_part = window_ns >> std::countr_zero(window_ns);
  for (uint64_t divisor = 1; divisor * divisor <= odd_part; divisor += 2) {
    if (odd_part % divisor == 0) {
      consider(divisor);
      consider(odd_part / divisor);
    }
  }
  return nearest;
}

Result<Plan> CompileWideBucket(const Quota& quota, Plan plan) {
  const auto debt = [&](int shift) {
    return base::SaturatingMul(EmissionTicks(quota, shift), 2 * uint64_t{plan.burst});
  };
  int shift = 0;
  while (shift < kShiftMax && !EmissionIsExact(quota, shift) &&
         EmissionTicks(quota, shift) < kEmissionMin) {
    ++shift;
  }
  while (shift > kShiftMin && debt(shift) >= kWideDebtMax) {
    --shift;
  }
  const uint64_t emission = EmissionTicks(quota, shift);
  if (!EmissionIsExact(quota, shift) && emission < kEmissionMin) {
    return Error::Invalid("limit: " + std::to_string(quota.limit()) + " per " +
                          std::to_string(WindowNs(quota)) +
                          " ns is too fast to be met to one part in a million; the nearest "
                          "allowed is " +
                          std::to_string(NearestBucketLimit(WindowNs(quota), quota.limit())));
  }
  plan.shift = static_cast<int8_t>(shift);
  SetBucket(quota, plan, emission);
  plan.horizon_ns = WideTicks::ToNs(plan, plan.debt_max);
  const uint64_t wrap = uint64_t{1} << WideTicks::kPayloadBits;
  plan.wrap_ns = shift >= 0 ? wrap >> shift : base::SaturatingMul(wrap, uint64_t{1} << -shift);
  return plan;
}

Plan CompileCompact(const Quota& quota, Plan plan) {
  const uint64_t window = WindowNs(quota);
  SetBucket(quota, plan, window / quota.limit() / CompactTicks::kTickNs);
  plan.horizon_ns = CompactTicks::ToNs(plan, plan.debt_max);
  plan.wrap_ns = CompactTicks::kTickNs << CompactTicks::kPayloadBits;
  return plan;
}

// Counters hold twice the limit, so that what count-always charges add on top is remembered.
unsigned CounterBits(uint64_t limit) {
  return base::BitsFor(limit) + 1;
}

void SetCounter(Plan& plan, unsigned counters) {
  plan.count_bits = static_cast<uint8_t>(CounterBits(plan.limit));
  plan.count_max = base::LowBits(plan.count_bits);
  plan.id_bits = static_cast<uint8_t>(WideTicks::kPayloadBits - counters * plan.count_bits);
}

Plan CompileFixed(Plan plan) {
  SetCounter(plan, 1);
  plan.wrap_ns = base::SaturatingMul(plan.window_ns, base::LowBits(plan.id_bits));
  plan.horizon_ns = plan.window_ns;
  return plan;
}

// A counter and the tick at which the window began share 61 bits. The tick must tell windows apart
// for eight windows and for the least wrap, and be no coarser than a millionth of the window.
Result<Plan> CompileFirstHit(Plan plan) {
  const uint64_t span = std::max(base::SaturatingMul(plan.window_ns, 8), kWrapMinNs);
  int down_max = 0;
  while ((uint64_t{2} << down_max) * 1'000'000 <= plan.window_ns) {
    ++down_max;
  }
  const auto fits = [&](uint64_t limit) {
    return (span >> down_max) <= base::LowBits(WideTicks::kPayloadBits - CounterBits(limit));
  };
  if (!fits(plan.limit)) {
    uint64_t nearest = plan.limit;
    while (!fits(nearest)) {
      nearest = base::LowBits(base::BitsFor(nearest) - 1);
    }
    return Error::Invalid("limit: " + std::to_string(plan.limit) +
                          " is too large for a window this short that begins at the first hit; "
                          "the nearest allowed is " +
                          std::to_string(nearest) +
                          ", or let windows begin at the epoch, which takes any limit");
  }
  SetCounter(plan, 1);
  int down = 0;
  while ((span >> down) > base::LowBits(plan.id_bits)) {
    ++down;
  }
  plan.shift = static_cast<int8_t>(-down);
  plan.window_ticks = WideTicks::FromNsUp(plan, plan.window_ns);
  plan.wrap_ns = base::SaturatingMul(base::LowBits(plan.id_bits), uint64_t{1} << down);
  plan.horizon_ns = plan.window_ns;
  return plan;
}

// Two counters and an id share 61 bits.
Result<Plan> CompileSliding(Plan plan) {
  const auto id_bits_for = [](uint64_t limit) {
    return static_cast<int>(WideTicks::kPayloadBits) -
           2 * static_cast<int>(base::BitsFor(limit) + 1);
  };
  const auto fits = [&](uint64_t limit) {
    const int id_bits = id_bits_for(limit);
    return id_bits >= 3 &&
           base::SaturatingMul(plan.window_ns, base::LowBits(static_cast<unsigned>(id_bits))) >=
               kWrapMinNs;
  };
  if (!fits(plan.limit)) {
    uint64_t nearest = plan.limit;
    while (!fits(nearest)) {
      nearest = base::LowBits(base::BitsFor(nearest) - 1);
    }
    return Error::Invalid("limit: " + std::to_string(plan.limit) +
                          " is too large for a sliding window this short; the nearest allowed is " +
                          std::to_string(nearest) +
                          ", or choose token-bucket or fixed-window, which take any limit");
  }
  SetCounter(plan, 2);
  plan.wrap_ns = base::SaturatingMul(plan.window_ns, base::LowBits(plan.id_bits));
  plan.horizon_ns = 2 * plan.window_ns;
  return plan;
}

Plan CompileSliced(const Quota& quota, Plan plan) {
  plan.slices = quota.slices();
  plan.slice_ns = plan.window_ns / plan.slices;
  plan.per_slice = base::Reciprocal(plan.slice_ns);
  plan.family ^= uint64_t{plan.slices} << 48;
  plan.count_max = 2 * uint64_t{plan.limit};
  plan.horizon_ns = plan.window_ns + plan.slice_ns;
  plan.wrap_ns = kUint64Max;
  return plan;
}

Plan CompileCalendar(const Quota& quota, Plan plan) {
  SetCounter(plan, 1);
  constexpr uint64_t kNominalDays[] = {1, 7, 31, 366};
  plan.window_ns = kNominalDays[static_cast<size_t>(quota.period())] * kDayNs;
  // Two days on top: zones move their clocks, and one skipped a whole day.
  plan.horizon_ns = plan.window_ns + 2 * kDayNs;
  plan.wrap_ns = kUint64Max;
  plan.family = (plan.window_ns << 1) ^ std::hash<std::string>{}(quota.time_zone());
  return plan;
}

}  // namespace

bool FitsCompact(const Quota& quota) noexcept {
  const Algorithm algorithm = quota.algorithm();
  if (!IsBucket(algorithm) && algorithm != Algorithm::kMinGap) {
    return false;
  }
  const uint64_t window = WindowNs(quota);
  const uint64_t unit = uint64_t{quota.limit()} * CompactTicks::kTickNs;
  return window % unit == 0 &&
         base::SaturatingMul(window / unit, 2 * uint64_t{quota.burst()}) <= kCompactDebtMax;
}

bool NeedsRecord(const Quota& quota) noexcept {
  return quota.algorithm() == Algorithm::kSlidingLog ||
         quota.algorithm() == Algorithm::kSlicedWindow ||
         quota.algorithm() == Algorithm::kConcurrency;
}

Result<Plan> Compile(const Quota& quota, SlotKind slot) {
  Plan plan;
  plan.algorithm = quota.algorithm();
  plan.slot = slot;
  plan.start = quota.start();
  plan.burst = quota.burst();
  plan.limit = quota.limit();
  plan.window_ns = WindowNs(quota);
  if (plan.window_ns != 0) {
    plan.per_window = base::Reciprocal(plan.window_ns);
    plan.family = (plan.window_ns << 2) | static_cast<uint64_t>(plan.start);
  }
  if (NeedsRecord(quota) != (slot == SlotKind::kRecord)) {
    return Error::Invalid("quota: " + quota.ToString() + " is of another layout");
  }
  if (slot == SlotKind::kCompact) {
    if (!FitsCompact(quota)) {
      return Error::Invalid("quota: " + quota.ToString() + " does not fit an 8-byte slot");
    }
    return CompileCompact(quota, plan);
  }
  switch (quota.algorithm()) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
    case Algorithm::kMinGap:
      return CompileWideBucket(quota, plan);
    case Algorithm::kFixedWindow:
      return plan.start == WindowStart::kFirstHit ? CompileFirstHit(plan) : CompileFixed(plan);
    case Algorithm::kSlidingWindow:
      return CompileSliding(plan);
    case Algorithm::kCalendar:
      return CompileCalendar(quota, plan);
    case Algorithm::kSlidingLog:
    case Algorithm::kConcurrency:
      plan.horizon_ns = plan.window_ns;
      plan.wrap_ns = kUint64Max;
      return plan;
    case Algorithm::kSlicedWindow:
      return CompileSliced(quota, plan);
  }
  return Error::Invalid("algorithm: unknown");
}

}  // namespace weir::algorithm
