// Keys whose rate comes with each request: a debt in nanoseconds in a 16-byte slot.
#pragma once

#include <atomic>
#include <cstdint>

#include "algorithm/throttle.h"
#include "store/memory/binding.h"

namespace weir::store {

// What is decided on, in a binding that SharedState::Bind made for it (wide, in nanoseconds).
class ThrottledKeys {
 public:
  explicit ThrottledKeys(Binding& binding) noexcept : binding_(binding) {}

  ThrottledKeys(const ThrottledKeys&) = delete;
  ThrottledKeys& operator=(const ThrottledKeys&) = delete;

  // Starts fetching a key's line, for who has more to do before deciding it.
  void Prefetch(uint64_t key_hash) const noexcept;

  // REQUIRES: ask.interval_ns > 0, now_ns accepted by the store's clock. False: the table is full
  // of live keys; the answer is then that of an accumulated debt shared with other such keys (never
  // looser), or as the store's policy has it.
  bool Decide(uint64_t key_hash, const algorithm::ThrottleAsk& ask, uint64_t now_ns,
              algorithm::ThrottleAnswer& answer) noexcept;

  // As if never asked for.
  bool Forget(uint64_t key_hash, uint64_t now_ns) noexcept;

 private:
  void DecideInSlot(uint64_t key_hash, const algorithm::ThrottleAsk& ask, uint64_t now_ns,
                    algorithm::ThrottleAnswer& answer, Decision& decision) noexcept;
  void DecideShared(uint64_t key_hash, const algorithm::ThrottleAsk& ask, uint64_t now_ns,
                    algorithm::ThrottleAnswer& answer) noexcept;
  void RememberFor(uint64_t debt_ns) noexcept;

  // For keys without a slot: instants, in store time, until which a debt lasts.
  static constexpr uint64_t kShared = 4096;

  Binding& binding_;
  std::atomic<uint64_t> horizon_ns_{0};  // relaxed: grows under the housekeeping's mutex
  std::atomic<uint64_t> shared_[kShared] = {};
};

}  // namespace weir::store
