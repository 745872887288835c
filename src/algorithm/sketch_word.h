// A word of the sketch: [base:16 | lanes:48]. A lane is an instant, counted in ticks from the base,
// and the base is an instant in units of a quarter of what a lane can hold. So one word is read,
// drained and charged at once, and a compare-and-swap of it changes all lanes together.
//
// A lane counts from 1. One of 0 was not charged for so long that it has no bearing on anything: a
// window's charges count for some time after they have drained, and who was never charged must not
// look like who was charged just before the base.
//
// A key has some of a word's lanes. Its estimate is the earliest of them: other keys can only have
// moved a lane later, so the estimate is never before what the key itself was charged. A charge
// moves each of its lanes to the new instant unless it is past that already (conservative update).
//
// The base repeats after 2^16 units. Whoever reads a word says which instant is near, and the
// sweeper sees to it that no base is further from now than half of that.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/wide_math.h"

namespace weir::algorithm {

template <unsigned kLaneBits>
struct SketchWord {
  static constexpr unsigned kBits = kLaneBits;
  static constexpr unsigned kLanes = 48 / kLaneBits;
  static constexpr int64_t kLaneMax = static_cast<int64_t>(base::LowBits(kLaneBits));
  static constexpr unsigned kUnitBits = kLaneBits - 2;
  static constexpr unsigned kWrapBits = kUnitBits + 16;  // ticks until a base repeats
  // A debt of this much on top of a base up to a unit old still fits.
  static constexpr uint64_t kToleranceMax = (uint64_t{3} << kUnitBits) - 1;
  // No charge counts for longer than this after it has drained: two windows of any quota.
  static constexpr int64_t kPast = int64_t{1} << (kUnitBits + 11);
  // The instant of a lane that was not charged; before any other, and far from overflow.
  static constexpr int64_t kNever = -(int64_t{1} << 62);

  // Which lanes a key has, as a bit each. Two of four, or one of two.
  static unsigned Choose(uint64_t hash) noexcept {
    if constexpr (kLanes == 4) {
      constexpr uint8_t kPairs[] = {0b0011, 0b0101, 0b1001, 0b0110, 0b1010, 0b1100};
      return kPairs[(hash >> 32) * 6 >> 32];
    } else {
      return 1U << (hash >> 63);
    }
  }

  static int64_t BaseOf(uint64_t word, int64_t near) noexcept {
    const int64_t unit = near >> kUnitBits;
    const auto apart = static_cast<int16_t>(static_cast<uint16_t>(word >> 48) -
                                            static_cast<uint16_t>(static_cast<uint64_t>(unit)));
    return (unit + apart) << kUnitBits;
  }

  static int64_t Estimate(uint64_t word, unsigned chosen, int64_t near) noexcept {
    int64_t least = kLaneMax;
    for (unsigned i = 0; i < kLanes; ++i) {
      least = std::min(least, LaneOf(word, i) | (kLaneMax & ~IfChosen(chosen, i)));
    }
    return InstantOf(BaseOf(word, near), least);
  }

  // The word with the chosen lanes at `until` or later. What a lane cannot hold is cut off, which
  // is beyond every tolerance.
  static uint64_t Raise(uint64_t word, unsigned chosen, int64_t now, int64_t until) noexcept {
    const int64_t old_base = BaseOf(word, now);
    const int64_t new_base = std::max(old_base, now >> kUnitBits << kUnitBits);
    const int64_t passed = new_base - old_base;
    const int64_t raised = std::clamp<int64_t>(until - new_base + 1, 1, kLaneMax);
    uint64_t result = Based(new_base);
    for (unsigned i = 0; i < kLanes; ++i) {
      const int64_t drained = Rebased(LaneOf(word, i), passed);
      const int64_t lane = std::max(drained, raised & IfChosen(chosen, i));
      result |= static_cast<uint64_t>(lane) << (i * kLaneBits);
    }
    return result;
  }

  // No lane charged; a base near `tick`.
  static uint64_t Empty(int64_t tick) noexcept { return Based(tick >> kUnitBits << kUnitBits); }

  static int64_t Latest(uint64_t word, int64_t near) noexcept {
    int64_t latest = 0;
    for (unsigned i = 0; i < kLanes; ++i) {
      latest = std::max(latest, LaneOf(word, i));
    }
    return InstantOf(BaseOf(word, near), latest);
  }

  // Of each lane the later one: no estimate becomes earlier than it was in either word.
  static uint64_t Merge(uint64_t a, uint64_t b, int64_t near) noexcept {
    const int64_t base_a = BaseOf(a, near);
    const int64_t base_b = BaseOf(b, near);
    const int64_t base = std::max(base_a, base_b);
    uint64_t result = Based(base);
    for (unsigned i = 0; i < kLanes; ++i) {
      const int64_t lane =
          std::max(Rebased(LaneOf(a, i), base - base_a), Rebased(LaneOf(b, i), base - base_b));
      result |= static_cast<uint64_t>(lane) << (i * kLaneBits);
    }
    return result;
  }

 private:
  // All ones, or none. Which lanes a key has is anybody's guess, and a branch on it would be wrong
  // every other time.
  static int64_t IfChosen(unsigned chosen, unsigned i) noexcept {
    return -static_cast<int64_t>(chosen >> i & 1U);
  }

  static int64_t LaneOf(uint64_t word, unsigned i) noexcept {
    return static_cast<int64_t>(word >> (i * kLaneBits)) & kLaneMax;
  }

  static int64_t InstantOf(int64_t base, int64_t lane) noexcept {
    return lane != 0 ? base + lane - 1 : kNever;
  }

  // The lane from a base that is later by `passed`. What has drained by then is kept as if it had
  // just done so.
  static int64_t Rebased(int64_t lane, int64_t passed) noexcept {
    return std::max(lane - passed, std::min<int64_t>(lane, 1));
  }

  static uint64_t Based(int64_t base) noexcept {
    return static_cast<uint64_t>(base >> kUnitBits) << 48;
  }
};

using ShortLanes = SketchWord<12>;
using LongLanes = SketchWord<24>;

}  // namespace weir::algorithm
