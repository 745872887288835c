// A Binding ties a quota to a table: its identity there, its current plan, the plans before it that
// states may still have been written under, and the code that decides for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "weir/decision.h"

#include "algorithm/plan.h"
#include "algorithm/throttle.h"
#include "base/key_hash.h"
#include "base/wide_math.h"
#include "store/memory/calendar_cache.h"
#include "store/memory/table.h"

namespace weir::store {

struct Binding;
struct SharedState;
class Watch;

// All that is ever needed of a key. The phase is for windows that are shifted per key.
struct HashedKey {
  uint64_t hash = 0;
  uint64_t phase = 0;
};

// What a receipt says of the quota that was charged: [resets:10 | binding:20 | generation:2].
// Resets are those of SharedState::ResetsOf before the charge; a receipt with others gives nothing
// back.
struct ChargedUnder {
  static constexpr unsigned kIdBits = 20;
  static constexpr uint32_t kResetsMask = (uint32_t{1} << (32 - kIdBits - 2)) - 1;

  static uint32_t Pack(uint32_t id, unsigned generation, uint32_t resets) noexcept {
    return (resets & kResetsMask) << (kIdBits + 2) | id << 2 | generation;
  }
  static uint32_t Id(const Receipt& receipt) noexcept {
    return receipt.binding >> 2 & ((uint32_t{1} << kIdBits) - 1);
  }
  static unsigned Generation(const Receipt& receipt) noexcept { return receipt.binding & 3U; }
  static bool IsSince(const Receipt& receipt, uint32_t resets) noexcept {
    return receipt.binding >> (kIdBits + 2) == (resets & kResetsMask);
  }
};

// What is asked besides the key and the time.
struct Request {
  uint64_t cost = 1;
  ChargeMode mode = ChargeMode::kAdmit;
  Receipt* receipt = nullptr;
  uint64_t max_wait_ns = kAnyWait;  // queues only

  static constexpr uint64_t kAnyWait = ~uint64_t{0};
  uint64_t lease_ns = 0;  // holds only; 0: the quota's
  // Throttle's keys only, which bring their rate along: throttle.h.
  const algorithm::ThrottleAsk* throttle = nullptr;
  algorithm::ThrottleAnswer* throttled = nullptr;
};

// The decision code for one layout, algorithm and instruction set. Times in nanoseconds are since
// the store's origin and already accepted by its clock.
struct EngineOps {
  // The common case of the plain question (admit or not, no receipt): a usual key, on its home
  // line, that nobody else is charging. False: nothing has happened. The arguments stand in the
  // registers in which Limiter gets them, so that it only has to jump here.
  bool (*try_check)(Binding&, std::string_view key, Timestamp now, uint64_t cost,
                    Decision&) noexcept;
  // The same, reading the store's clock.
  bool (*try_check_now)(Binding&, std::string_view key, uint64_t cost, Decision&) noexcept;
  // These two and check_many for quotas whose keys begin in the sketch; such a binding has them in
  // place of the others.
  bool (*try_rest)(Binding&, std::string_view key, Timestamp now, uint64_t cost,
                   Decision&) noexcept;
  bool (*try_rest_now)(Binding&, std::string_view key, uint64_t cost, Decision&) noexcept;
  void (*rest_many)(Binding&, const std::string_view* keys, size_t count, uint64_t cost,
                    uint64_t now_ns, Decision*) noexcept;
  // Any case of it.
  void (*check)(Binding&, std::string_view key, uint64_t cost, uint64_t now_ns, Decision&) noexcept;
  // The same for a key that has been hashed before.
  bool (*try_check_hashed)(Binding&, uint64_t key_hash, Timestamp now, uint64_t cost,
                           Decision&) noexcept;
  void (*check_hashed)(Binding&, HashedKey, uint64_t cost, uint64_t now_ns, Decision&) noexcept;
  void (*check_many)(Binding&, const std::string_view* keys, size_t count, uint64_t cost,
                     uint64_t now_ns, Decision*) noexcept;
  // Any mode, with a receipt if wanted.
  void (*charge)(Binding&, std::string_view key, const Request&, uint64_t now_ns,
                 Decision&) noexcept;
  // The same for a key that is known by its hash. REQUIRES: count-always, a cost in range.
  void (*charge_hashed)(Binding&, uint64_t key_hash, uint64_t phase, const Request&,
                        uint64_t now_ns, Decision&) noexcept;
  algorithm::Refund (*give_back)(Binding&, Receipt&, uint64_t now_ns) noexcept;
  // What a key had in use at `at_ns`, when another binding took over from this one.
  algorithm::Carried (*used)(Binding&, uint64_t key_hash, uint64_t phase, uint64_t now_ns,
                             uint64_t at_ns) noexcept;
  // The key's state becomes that of one never seen, here and in all bindings before. Receipts of
  // before give nothing back, holds end. False: there was no state. REQUIRES: no lease is out, nor
  // granted meanwhile.
  bool (*reset)(Binding&, uint64_t key_hash, uint64_t phase, uint64_t now_ns) noexcept;
};

struct Binding {
  static constexpr unsigned kGenerations = 4;
  static constexpr unsigned kPredecessorsMax = 4;

  // What the short way reads, first and together.
  EngineOps ops{};
  SharedState* store = nullptr;
  uint64_t salt = 0;  // makes one key's hash another one for every quota
  Table::Homes homes;
  // Release when a plan is published, acquire when read: the plan behind it is then complete.
  std::atomic<const algorithm::Plan*> current{nullptr};

  Table* table = nullptr;
  uint32_t id = 0;
  bool sketch_first = false;  // keys begin in the sketch and get a slot when they near their limit
  bool needs_phase = false;  // this quota's windows, or those of one before it, are shifted per key

  std::atomic<uint32_t> leases_stopped{0};  // above 0 while the quota changes: lease.h

  std::atomic<const algorithm::Plan*> generations[kGenerations] = {};
  uint64_t retired_ns[kGenerations] = {};  // under the store's update mutex

  std::unique_ptr<CalendarCache> calendar;  // calendar quotas only

  // Whose keys are noted: where, and what to call for the decision itself.
  Watch* watch = nullptr;
  EngineOps watched_ops{};

  // The binding this one took over from, while keys may still owe something there.
  Binding* predecessor = nullptr;
  uint64_t predecessor_until_ns = 0;
  uint64_t since_ns = 0;  // when it took over
  // From when on what was owed then counts here, in the calendar period of then. The phase is the
  // key's own.
  algorithm::Moment seed;
  unsigned predecessors = 0;

  // Until then the sketch may hold charges of this quota's keys. Relaxed: whoever asks for a key
  // holds the lock under which that key was charged.
  mutable std::atomic<uint64_t> sketch_until_ns{0};

  [[nodiscard]] bool SketchMayKnow(uint64_t now_ns) const noexcept {
    return sketch_first || now_ns < sketch_until_ns.load(std::memory_order_relaxed);
  }

  // Acquire, here and below, pairs with the release in SharedState::Publish: the plan is complete.
  [[nodiscard]] const algorithm::Plan& plan() const noexcept {
    return *current.load(std::memory_order_acquire);
  }

  [[nodiscard]] const algorithm::Plan& PlanOf(unsigned generation) const noexcept {
    const algorithm::Plan* const plan = generations[generation].load(std::memory_order_acquire);
    return plan != nullptr ? *plan : this->plan();
  }

  // Whether receipts rest on the table's refund counters.
  [[nodiscard]] bool counts_refunds() const noexcept {
    return plan().algorithm == Algorithm::kTokenBucket ||
           plan().algorithm == Algorithm::kLeakyBucket || plan().algorithm == Algorithm::kMinGap;
  }

  [[nodiscard]] std::atomic<uint64_t>& RefundsOf(uint64_t key_hash) const noexcept {
    return table->RefundsOf(base::MixHash(key_hash, salt));
  }

  [[nodiscard]] bool ResetPredecessor(uint64_t key_hash, uint64_t phase,
                                      uint64_t now_ns) const noexcept {
    return HasPredecessor(now_ns) && predecessor->ops.reset(*predecessor, key_hash, phase, now_ns);
  }

  [[nodiscard]] bool HasPredecessor(uint64_t now_ns) const noexcept {
    return predecessor != nullptr && now_ns < predecessor_until_ns;
  }

  [[nodiscard]] algorithm::Moment MomentAt(uint64_t now_ns, uint64_t phase) const noexcept {
    algorithm::Moment moment{.ns = now_ns, .phase = phase};
    if (calendar != nullptr) {
      const CalendarCache::View view = calendar->At(now_ns);
      moment.period_id = view.id;
      moment.period_left_ns = view.left_ns;
    }
    return moment;
  }
};

}  // namespace weir::store
