// Reservations: for costs that are known only afterwards, such as the tokens of a language model.
//
//   weir::Reserved got = limiter.Reserve("tenant:7", 4000);        // the most it may come to
//   if (!got.allowed()) return TooMany(got.decision.retry_after);
//   ...                                                            // the work
//   limiter.Settle(got.reservation, tokens_used);
//
// Reserving charges the estimate. Settling gives back what was not used, as far as it is still owed
// (as GiveBack does), or counts what was used beyond it even if the key then owes. A reservation is
// settled once: whoever repeats it, from any copy of the number, is told so, and nothing happens.
// One that nobody settles ends by itself and stays charged in full: nobody knows what was used.
//
// An open reservation takes 96 bytes of the store's records (MemoryOptions::record_percent).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/decision.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir {

// The number of a reservation, good for the limiter that made it. It can be written down and read
// back, for settling by whoever is told of it.
struct Reservation {
  uint64_t id = 0;  // 0: none

  // Sixteen hexadecimal digits.
  [[nodiscard]] std::string ToString() const;
  static Result<Reservation> Parse(std::string_view text);

  friend bool operator==(const Reservation&, const Reservation&) = default;
};

struct ReserveOptions {
  // How long it may be settled, and how long a repeated settling is recognised: from a microsecond
  // to Quota::kMaxLease.
  Duration lasts = std::chrono::minutes(10);
  std::optional<Timestamp> now = std::nullopt;  // none: the clock is read
};

struct Reserved {
  Decision decision;
  Reservation reservation;  // none unless allowed

  [[nodiscard]] bool allowed() const noexcept { return decision.allowed(); }
};

enum class SettleOutcome : uint8_t {
  kSettled,
  kAlreadySettled,  // earlier, by this or another copy; nothing was done
  kGone,            // unknown here, or ended by itself; nothing was done
  kRefused,         // see decision.problem; nothing was done, and it is still open
};

struct Settlement {
  SettleOutcome outcome = SettleOutcome::kGone;
  uint64_t actual = 0;      // what it was settled with: now, or when it already was
  uint32_t given_back = 0;  // of the estimate, by this call
  uint32_t charged = 0;     // beyond the estimate, by this call
  Decision decision;  // how the key stands now; denied if it owes. Only if settled by this call

  [[nodiscard]] bool settled() const noexcept { return outcome == SettleOutcome::kSettled; }
};

}  // namespace weir
