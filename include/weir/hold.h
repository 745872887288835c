// Holds: what is in use at the same time, for quotas such as "concurrency 20 lease 30s".
//
//   auto limiter = weir::Limiter::Create(*weir::Quota::Parse("concurrency 20 lease 30s"));
//   weir::ScopedHold hold(*limiter, limiter->Acquire("tenant:7"));
//   if (!hold) return TooManyAtOnce(hold.decision().retry_after);
//   ...                                     // released when `hold` goes out of scope
//
// A hold ends when it is released, or when its lease ends: what a crashed holder had comes back by
// itself, and not before. Whoever works longer than a lease renews it now and then.
//
// A limit of one is a lock. A holder that was paused for longer than its lease does not know that
// it has lost it; so hand the fence on to what the lock protects, and let that refuse a number
// smaller than the largest it has seen.
#pragma once

#include <cstdint>
#include <optional>

#include "weir/decision.h"
#include "weir/time.h"

namespace weir {

class Limiter;

// A hold is a receipt whose give-back is exact: the receipts of CheckAll and of
// Check(key, {.receipt = ...}) are holds too. A value: copies mean the same hold, and only the
// first release of any of them counts.
struct Hold {
  Receipt receipt;

  // Larger than that of any hold of this key before it, also after the store has forgotten the key
  // in between; and after a restart of the program, as far as the wall clock has not been set back.
  // 0: nothing is held.
  [[nodiscard]] uint64_t fence() const noexcept { return receipt.charged == 0 ? 0 : receipt.mark; }
  [[nodiscard]] uint32_t units() const noexcept { return receipt.charged; }
};

struct AcquireOptions {
  Cost cost = 1;  // 0 peeks: nothing is held
  // How long it is held without being released or renewed, from a microsecond to Quota::kMaxLease,
  // ended at the next whole microsecond. None: what the quota says.
  std::optional<Duration> lease = std::nullopt;
  std::optional<Timestamp> now = std::nullopt;  // none: the clock is read
};

struct RenewOptions {
  std::optional<Duration> lease = std::nullopt;  // as in AcquireOptions
  std::optional<Timestamp> now = std::nullopt;
};

// Denied, `retry_after` is when enough leases will have ended if nobody releases or renews; it may
// well be possible earlier.
struct Acquired {
  Decision decision;
  Hold hold;  // of nothing unless allowed

  [[nodiscard]] bool allowed() const noexcept { return decision.allowed(); }
};

// Releases at the end of its scope.
class ScopedHold {
 public:
  ScopedHold(Limiter& limiter, const Acquired& acquired) noexcept
      : limiter_(&limiter), acquired_(acquired) {}

  ScopedHold(ScopedHold&& other) noexcept : limiter_(other.limiter_), acquired_(other.Detach()) {}
  ScopedHold& operator=(ScopedHold&& other) noexcept;
  ~ScopedHold() { Release(); }

  explicit operator bool() const noexcept { return acquired_.allowed(); }
  [[nodiscard]] const Decision& decision() const noexcept { return acquired_.decision; }
  [[nodiscard]] uint64_t fence() const noexcept { return acquired_.hold.fence(); }

  // False: it had ended already, or nothing was held.
  bool Release() noexcept;
  bool Renew() noexcept;

  // From here on the caller releases it, or the lease does.
  Acquired Detach() noexcept;

 private:
  Limiter* limiter_;
  Acquired acquired_;
};

}  // namespace weir
