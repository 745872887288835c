// What a check answers. A denial is a normal answer; `problem` is set only when the question
// itself was wrong (an empty key, a cost that can never fit), and then nothing was charged.
//
//   weir::Decision d = limiter.Check(user_id);
//   if (!d.allowed()) Reply429(d.retry_after);
//   RunAt(d.StartAt(std::chrono::steady_clock::now()));   // queues only: others start at once
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/time.h"

namespace weir {

// Units asked for. 0 peeks: it tells what is left and takes nothing.
struct Cost {
  // The largest cost a call may name. A quota's burst is below it, so a larger cost never fits.
  static constexpr uint64_t kMax = uint64_t{1} << 32;

  // Implicit on purpose: Check(key, 5). A negative number is kept as one that no quota admits.
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  constexpr Cost(I value)  // NOLINT(google-explicit-constructor)
      : units(value < I{0} ? ~uint64_t{0} : static_cast<uint64_t>(value)) {}

  uint64_t units;
};

enum class Outcome : uint8_t {
  kAllowed,
  kDenied,   // does not fit now; it will after retry_after
  kRefused,  // can never be answered as asked: see problem
};

// Why a check was refused. Text for people: Explain(problem).
enum class Problem : uint8_t {
  kNone,
  kCostAboveBurst,  // more than the quota admits at once on a fresh key
  kCostTooLarge,    // negative, or above Cost::kMax
  kKeyEmpty,
  kKeyTooLong,       // above kMaxKeyBytes
  kKeyHasNul,        // NUL byte in a key, unless the store takes binary keys
  kNowTooFar,        // the caller's `now` is further from the store's clock than its max_skew
  kMaxWaitTooShort,  // negative, or the cost would wait longer even on a fresh key
  kWrongQuota,       // Acquire needs a concurrency quota, Reserve one that is none
  kLeaseOutOfRange,  // a lease or a reservation's time outside 1 us to Quota::kMaxLease
  kNoRecords,        // the store has no memory for records, which reservations need
  kTooManyCharges,   // CheckAll: above kMaxCharges, or more than decisions or receipts
  kWrongMode,        // CheckAll: a charge is neither kAdmit nor kCountAlways
  kNoLimiter,        // CheckAll: a charge names no limiter
};

// Longer text can be hashed by the caller first; a longer key is nearly always a mistake.
inline constexpr uint32_t kMaxKeyBytes = 65535;

// Which field was wrong and what is allowed.
[[nodiscard]] std::string_view Explain(Problem problem) noexcept;

// What the decision rests on.
enum class Basis : uint8_t {
  kStore,   // the key's own state
  kSketch,  // the sketch, which may have counted other keys as well: stricter, never looser
  kOpen,    // nobody counted this (overflow policy kAllow)
  kClosed,  // nobody counted this (overflow policy kDeny)
  kLease,   // units of the key that this thread had taken ahead; all of them are counted
  kLocal,   // the store was away: this node's share of the limit
  kCached,  // a denial of the store that this node remembers
};

inline constexpr size_t kBases = 7;

[[nodiscard]] std::string_view ToString(Basis basis) noexcept;

struct Decision {
  // Denied: waiting this long, alone, is enough; one tick less is not. Allowed: see start_after.
  Duration retry_after;
  Duration reset_after;  // until the key is as good as new
  uint32_t limit;        // the most units at once on a fresh key
  uint32_t remaining;    // units that would still be admitted now, but for others' leases
  uint32_t charged;      // units taken by this call
  Outcome outcome;
  Basis basis;
  Problem problem;
  uint8_t spare;  // for later use; always 0

  // Denied, with nothing left.
  constexpr Decision() noexcept
      : retry_after{},
        reset_after{},
        limit(0),
        remaining(0),
        charged(0),
        outcome(Outcome::kDenied),
        basis(Basis::kStore),
        problem(Problem::kNone),
        spare(0) {}

  // With nothing set, for who sets every field.
  struct Blank {};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): that is what it is for
  explicit Decision(Blank) noexcept {}

  [[nodiscard]] constexpr bool allowed() const noexcept { return outcome == Outcome::kAllowed; }

  // How long what was allowed has to wait before it starts. Zero unless the quota is a queue. Kept
  // in retry_after, which an allowed decision has no other use for.
  [[nodiscard]] constexpr Duration start_after() const noexcept {
    return allowed() ? retry_after : Duration::zero();
  }

  // The same as an instant of the clock that `now` comes from: the time of the check, or a little
  // later.
  template <class AnyClock, class AnyDuration>
  [[nodiscard]] constexpr auto StartAt(
      std::chrono::time_point<AnyClock, AnyDuration> now) const noexcept {
    return now + start_after();
  }
};

static_assert(sizeof(Decision) == 32, "two decisions to a cache line");

// What a charge does when it does not fit.
enum class ChargeMode : uint8_t {
  kAdmit,        // refused, and nothing is charged
  kCountAlways,  // counted all the same, and may go over; the outcome still says denied
  kUpTo,         // takes as much as fits, perhaps nothing
  kDryRun,       // answers as kAdmit would, and charges nothing
};

// Proof of a charge, for giving it back. Good for the limiter that issued it.
struct Receipt {
  uint64_t hash = 0;     // whose state was charged
  uint64_t mark = 0;     // the state right after the charge (GCRA: TAT; windows: window id)
  uint64_t refunds = 0;  // the refund counter of the key's stripe before the charge
  uint64_t at_ns = 0;    // when, since a mark may only be as long as the clock of its slot
  uint32_t charged = 0;  // 0: nothing to give back
  uint32_t binding = 0;  // which version of the quota was charged
};

}  // namespace weir
