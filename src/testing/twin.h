// Runs a history through a Limiter and through oracles side by side, and says where they part.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weir/limiter.h"

#include "testing/oracle.h"
#include "testing/random.h"

namespace weir::testing {

// One request of a history. What is too large for the quota at hand is brought down to its size, so
// that any step goes with any quota.
struct Step {
  uint64_t wait = 0;  // in ticks
  uint64_t cost = 1;  // 0 peeks
  uint32_t key = 0;   // which of a few keys
  ChargeMode mode = ChargeMode::kAdmit;
  bool wait_for_retry = false;  // if denied: come back after retry_after, and one tick earlier
  bool wait_for_reset = false;  // afterwards: come back after reset_after, and one tick earlier
};

// A small store on a clock of the test's own.
[[nodiscard]] MemoryOptions SmallStore(const Clock& clock);

// An ordinary instant to start from, 2026-03-01T12:00:00Z, whole in every tick.
[[nodiscard]] WallTime Noon() noexcept;

// The least time that two decisions of this quota can tell apart, as the layout promises it: a
// microsecond for 8-byte slots, the plan's tick or a nanosecond for the others.
[[nodiscard]] Duration TickOf(const Quota& quota);

// Whether the emission interval of a bucket is a whole number of ticks; true for all others.
[[nodiscard]] bool IsExact(const Quota& quota);

// Every property of a decision that can be held against an oracle, at every step: admit iff,
// remaining, retry_after, reset_after, what was charged, and that looking changes nothing. Buckets
// whose interval is not whole are held to one part in a million. Empty: they agree; otherwise what
// happened at which step.
[[nodiscard]] std::string FollowOracle(const Quota& quota, const std::vector<Step>& steps);

// Random quotas and histories, shaped so that edges are met often.
[[nodiscard]] Quota RandomBucket(Random& random);     // whole ticks
[[nodiscard]] Quota RandomOddBucket(Random& random);  // a rate that no tick divides
[[nodiscard]] Quota RandomWindow(Random& random);     // fixed (every start) or sliding
[[nodiscard]] Quota RandomGap(Random& random);
[[nodiscard]] Quota RandomCalendar(Random& random);
// In a zone that is not UTC, most of them with daylight saving.
[[nodiscard]] Quota RandomZonedCalendar(Random& random);
[[nodiscard]] Quota RandomRecord(Random& random);  // sliding log or sliced window
[[nodiscard]] std::vector<Step> RandomHistory(Random& random, const Quota& quota, size_t steps);

}  // namespace weir::testing
