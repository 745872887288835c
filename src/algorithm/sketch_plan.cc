#include "algorithm/sketch_plan.h"

#include <algorithm>

#include "algorithm/plan.h"
#include "algorithm/sketch_word.h"

namespace weir::algorithm {

namespace {

// The clock of a word with short lanes would else repeat too soon.
constexpr unsigned kShortShiftMin = 10;
constexpr unsigned kShiftMax = 58;
// Up to this burst a unit is at least 48 ticks of a short lane, so that a tick too long is little.
constexpr uint64_t kShortLaneBurst = 32;
// Long lanes have ticks to spare: fewer groups.
constexpr unsigned kLongLaneStep = 4;
constexpr unsigned kFirstLongGroup = 50;
// A word's clock repeats after this many times the skew at the least.
constexpr uint64_t kSkewsPerWrap = 64;

// Units and time that stand for the quota: `burst` at once, and one more each `emission_ns`.
struct Law {
  uint64_t burst;
  uint64_t emission_ns;
  uint64_t span_ns;
};

Law WindowLaw(uint64_t limit, uint64_t span_ns) noexcept {
  const uint64_t burst = (limit + 3) / 4;
  return {burst, base::MulDivCeil(span_ns, 1, limit - burst + 1), span_ns};
}

Law LawFor(const Plan& plan) noexcept {
  switch (plan.algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
    case Algorithm::kMinGap: {
      const uint64_t ns = plan.slot == SlotKind::kCompact ? CompactTicks::ToNs(plan, plan.emission)
                                                          : WideTicks::ToNs(plan, plan.emission);
      // Of a queue only what starts at once: the sketch tells nobody to wait.
      const uint64_t burst =
          plan.undelayed != 0 ? std::max<uint64_t>(plan.undelayed / plan.emission, 1) : plan.burst;
      return {burst, ns, 0};
    }
    case Algorithm::kFixedWindow:
    case Algorithm::kSlidingWindow:
    case Algorithm::kSlidingLog:
      return WindowLaw(plan.limit, plan.window_ns);
    case Algorithm::kConcurrency:  // never there: a hold needs a place of its own
    case Algorithm::kCalendar:
    case Algorithm::kSlicedWindow:
      break;
  }
  return WindowLaw(plan.limit, plan.horizon_ns);
}

}  // namespace

SketchPlan PlanSketch(const Plan& plan, uint64_t skew_ns) noexcept {
  const Law law = LawFor(plan);
  SketchPlan sketch;
  const bool is_short = law.burst <= kShortLaneBurst;
  sketch.lane_bits = is_short ? ShortLanes::kBits : LongLanes::kBits;
  const uint64_t most = is_short ? ShortLanes::kToleranceMax : LongLanes::kToleranceMax;
  const unsigned wrap_bits = is_short ? ShortLanes::kWrapBits : LongLanes::kWrapBits;
  const unsigned step = is_short ? 1 : kLongLaneStep;
  // An interval is two ticks at the least: more units than that fit in no lane.
  const uint64_t burst = std::min(law.burst, most / 2);
  const auto emission = [&](unsigned shift) {
    return base::MulDivCeil(law.emission_ns, 1, uint64_t{1} << shift) + 1;
  };
  const unsigned least = is_short ? kShortShiftMin : 0;
  unsigned shift = least;
  while (shift < kShiftMax &&
         (base::SaturatingMul(burst, emission(shift)) > most ||
          (wrap_bits + shift < 64 &&
           uint64_t{1} << (wrap_bits + shift) < base::SaturatingMul(kSkewsPerWrap, skew_ns)))) {
    shift += step;
  }
  sketch.shift = static_cast<uint8_t>(shift);
  sketch.group = static_cast<uint8_t>(is_short ? shift - least : kFirstLongGroup + shift / step);
  sketch.burst = static_cast<uint32_t>(burst);
  sketch.emission = emission(shift);
  sketch.tolerance = burst * sketch.emission;
  sketch.near = std::max(sketch.tolerance / 2, sketch.emission);
  sketch.per_emission = base::NarrowReciprocal(sketch.emission);
  sketch.span_ns = law.span_ns;
  sketch.keep_ns = base::SaturatingAdd(sketch.tolerance << shift, law.span_ns);
  return sketch;
}

}  // namespace weir::algorithm
