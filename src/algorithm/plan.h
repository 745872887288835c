// A Plan is a Quota compiled for a slot: every constant that a decision needs, computed once.
//
// Ticks. A state counts time in ticks. Compact slots (8 bytes in all) use microseconds, and only
// quotas whose emission interval is a whole number of them go there. Wide slots (16 bytes) use
// nanoseconds times a power of two chosen per quota, so that the rate is met to 10^-6 or better
// whatever the limit and window are, and the longest debt still fits. A stamp is rounded down to
// its tick and intervals are rounded up, so that rounding never raises the rate; a single request
// may come up to a tick early.
//
// The policies beside this file (gcra.h, gcra_queue.h, min_gap.h, fixed_window.h, sliding_window.h)
// are pure: they turn (plan, state, cost, now) into (state, decision) and know no clock, lock, map
// or wire type.
#pragma once

#include <cstdint>

#include "weir/decision.h"
#include "weir/quota.h"
#include "weir/result.h"

#include "algorithm/sketch_plan.h"
#include "base/wide_math.h"

namespace weir::algorithm {

// kRecord: a block of words of its own, for states that need more than a word.
enum class SlotKind : uint8_t { kCompact, kWide, kRecord };

// An instant as a policy needs it.
struct Moment {
  uint64_t ns = 0;     // since the store's origin, which lies before any stamp
  uint64_t phase = 0;  // keyed hash of the key, for windows shifted per key
  // The calendar period that contains the instant; looked up by the store for calendar quotas.
  uint64_t period_id = 0;
  uint64_t period_left_ns = 0;
};

struct Plan {
  Algorithm algorithm = Algorithm::kTokenBucket;
  SlotKind slot = SlotKind::kWide;
  WindowStart start = WindowStart::kEpoch;
  uint8_t generation = 0;  // two bits, kept in every state written under this plan
  int8_t shift = 0;        // wide ticks are ns << shift, or ns >> -shift
  uint8_t count_bits = 0;  // windows: bits of one counter
  uint8_t id_bits = 0;     // windows: bits of the window id, or of its start tick
  uint32_t burst = 0;      // the most units at once on a fresh key; shown as the limit
  uint32_t limit = 0;

  uint64_t generation_mark = 0;  // the generation where a state has it, set when published
  uint64_t serial = 0;           // unlike that of any other plan of the process, likewise

  // Buckets and gaps, in ticks.
  uint64_t emission = 0;   // time one unit takes to refill (GCRA's T)
  uint64_t tolerance = 0;  // burst * emission: how far ahead of schedule a key may run
  uint64_t debt_max = 0;   // how much overdraft is remembered
  base::NarrowReciprocal per_emission;
  double per_unit = 0;  // compact slots: 1 / emission rounded up, for those who count in vectors

  // Windows.
  uint64_t window_ns = 0;
  uint64_t window_ticks = 0;     // from the first hit
  uint64_t count_max = 0;        // where a counter saturates
  uint64_t epoch_offset_ns = 0;  // Moment::ns plus this is Unix time, but for whole windows
  uint64_t family = 0;           // equal iff two plans cut time into the same windows
  base::Reciprocal per_window;
  uint32_t slices = 0;
  uint64_t slice_ns = 0;
  base::Reciprocal per_slice;

  // Housekeeping.
  uint64_t changed_at_ns = 0;  // when this generation replaced the one before
  uint64_t horizon_ns = 0;     // no state differs from a fresh one for longer than this
  uint64_t wrap_ns = 0;        // time after which the state's clock repeats itself
  SketchPlan sketch;           // set when published

  // Queues, in ticks: the debt up to which everything starts at once. 0: not a queue.
  uint64_t undelayed = 0;

  // Shared stores only: ticks to a microsecond (store/redis/shared_plan.h).
  uint64_t subdivision = 1;
};

// Whether 8-byte slots can hold this quota.
[[nodiscard]] bool FitsCompact(const Quota& quota) noexcept;

// Whether it needs a record.
[[nodiscard]] bool NeedsRecord(const Quota& quota) noexcept;

// The error names the field and the nearest value that this layout can hold.
[[nodiscard]] Result<Plan> Compile(const Quota& quota, SlotKind slot);

// Ticks of the two slot layouts.
struct CompactTicks {
  static constexpr SlotKind kSlot = SlotKind::kCompact;
  static constexpr unsigned kPayloadBits = 38;
  static constexpr uint64_t kTickNs = 1000;
  // ns / 1000 as (ns * kPerTick) >> 73. Rounding kPerTick up makes that too large by less than
  // ns * 1000 / 2^73 thousandths, which reaches the next integer for no ns below 2^63.
  static constexpr unsigned kPerTickShift = 9;
  static constexpr auto kPerTick =
      static_cast<uint64_t>(((base::Uint128{1} << (64 + kPerTickShift)) + kTickNs - 1) / kTickNs);

  // REQUIRES: ns < 2^63, as all stamps are. Shorter than the compiler's division, which is not
  // told.
  static constexpr uint64_t FromNs(const Plan&, uint64_t ns) noexcept {
    return base::MulHigh(ns, kPerTick) >> kPerTickShift;
  }
  static constexpr uint64_t ToNs(const Plan&, uint64_t ticks) noexcept { return ticks * kTickNs; }
  static constexpr uint64_t FromNsUp(const Plan&, uint64_t ns) noexcept {
    return (ns + kTickNs - 1) / kTickNs;
  }
};

struct WideTicks {
  static constexpr SlotKind kSlot = SlotKind::kWide;
  static constexpr unsigned kPayloadBits = 61;

  static constexpr uint64_t FromNs(const Plan& plan, uint64_t ns) noexcept {
    return plan.shift >= 0 ? ns << plan.shift : ns >> -plan.shift;
  }

  // Rounded up: waiting this long is enough.
  static constexpr uint64_t ToNs(const Plan& plan, uint64_t ticks) noexcept {
    return plan.shift >= 0
               ? (ticks + base::LowBits(static_cast<unsigned>(plan.shift))) >> plan.shift
               : ticks << -plan.shift;
  }

  static constexpr uint64_t FromNsUp(const Plan& plan, uint64_t ns) noexcept {
    return plan.shift >= 0
               ? ns << plan.shift
               : (ns + base::LowBits(static_cast<unsigned>(-plan.shift))) >> -plan.shift;
  }
};

[[nodiscard]] constexpr Duration ToDuration(uint64_t ns) noexcept {
  return Duration(static_cast<int64_t>(ns));
}

// Units in use are passed from one kind of quota to another in fixed point.
inline constexpr unsigned kUsedFractionBits = 20;

// What a key takes along when another binding takes over its quota: the units in use, which any
// kind of quota understands, and for the same kind the rest of the state as of that instant.
struct Carried {
  uint64_t used = 0;    // fixed point; 0: nothing
  uint64_t family = 0;  // of the plan it comes from; windows of the same family fit as they are
  Algorithm algorithm = Algorithm::kTokenBucket;
  uint64_t first = 0;  // the policy's own
  uint64_t second = 0;
};

// What a give-back came to.
struct Refund {
  uint64_t moved_ns = 0;  // how much earlier the key is free: what other receipts are now off by
  uint32_t units = 0;     // whole units
  bool changed = false;   // whether the state must be written
};

}  // namespace weir::algorithm
