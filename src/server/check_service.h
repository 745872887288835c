// What decides, behind every front: rules on limiters, keys that bring their rate along, and the
// store under both. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weir/result.h"
#include "weir/rules.h"
#include "weir/store.h"
#include "weir/time.h"

#include "base/mutex.h"
#include "limiter/throttle.h"
#include "server/answer_memory.h"
#include "server/reservation_book.h"
#include "server/shared_throttle.h"

namespace weir::server {

struct ServiceOptions {
  size_t memory_bytes = size_t{256} << 20;
  // Part of the memory for logs, slices, holds and reservations, and for all 16-byte slots.
  int record_percent = 20;
  int wide_percent = 60;
  RuleLimiterOptions rules;  // with the store that is shared, if one is
  // A clock that may be set back by hand. What was counted is then forgotten, so that every key
  // answers as at the new time.
  const Clock* clock = nullptr;
  bool clock_may_rewind = false;
};

// All that decides, over one store.
struct Deciders {
  explicit Deciders(std::shared_ptr<SharedStore> given)
      : shared(std::move(given)), reservations(shared.get()) {
    if (shared != nullptr) {
      shared_throttle = std::make_unique<SharedThrottle>(*shared);
    }
  }

  std::shared_ptr<MemoryStore> store;
  std::shared_ptr<SharedStore> shared;  // where rules count, if not in the other
  std::unique_ptr<RuleLimiter> rules;
  std::unique_ptr<ThrottleLimiter> throttle;
  std::unique_ptr<SharedThrottle> shared_throttle;  // in its place, with a shared store
  ReservationBook reservations;
  AnswerMemory answers;
};

class CheckService {
 public:
  static Result<std::unique_ptr<CheckService>> Create(std::shared_ptr<const RuleSet> rules,
                                                      const ServiceOptions& options);

  CheckService(const CheckService&) = delete;
  CheckService& operator=(const CheckService&) = delete;

  // Good for the requests of one read; ask again for the next.
  [[nodiscard]] Deciders& deciders() noexcept {
    if (options_.clock_may_rewind) [[unlikely]] {
      FollowClock();
    }
    return *current_.load(std::memory_order_acquire);
  }

  [[nodiscard]] Timestamp Now() const noexcept { return clock_.Now(); }
  // What the machine's clock says, where Now was just asked and said `now`.
  [[nodiscard]] Timestamp OnMachine(Timestamp now) const noexcept {
    return options_.clock == nullptr ? now : SystemClock().Now();
  }
  [[nodiscard]] WallTime WallNow() const noexcept { return clock_.WallNow(); }

  // Changes the rules as a whole, or nothing.
  Result<void> Apply(std::shared_ptr<const RuleSet> rules);
  [[nodiscard]] std::shared_ptr<const RuleSet> rules();

 private:
  CheckService(const ServiceOptions& options, std::unique_ptr<Deciders> first);

  static Result<std::unique_ptr<Deciders>> Make(std::shared_ptr<const RuleSet> rules,
                                                const ServiceOptions& options);
  void FollowClock() noexcept;

  const ServiceOptions options_;
  const Clock& clock_;
  // Release when changed, acquire when read: what it points to is then complete.
  std::atomic<Deciders*> current_;
  base::Mutex mutex_;
  // The present one is the last. Those before it stay for a while: a loop may be amidst a decision.
  std::vector<std::unique_ptr<Deciders>> all_ WEIR_GUARDED_BY(mutex_);
  std::atomic<int64_t> latest_ns_;  // of a clock that may rewind
};

}  // namespace weir::server
