// A store that several processes share, as rules and limiters see it. It can be out of reach, so
// every ask says what then becomes of it, and every decision says what it rests on (Basis).
//
// A call takes as long as the store takes, up to its deadline. From a fiber of a loop the loop goes
// on with other requests meanwhile; any other thread blocks. All calls are thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "weir/decision.h"
#include "weir/limiter.h"
#include "weir/quota.h"
#include "weir/reservation.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir {

// What becomes of a question while the store is out of reach.
enum class OnStoreFailure : uint8_t {
  kLocal,  // this node's share of the limit is counted here
  kAllow,  // it passes, uncounted
  kDeny,   // it is refused
};

// A quota made ready for a shared store, which owns it (SharedStore::Bind).
struct SharedQuota {
  SharedQuota(const Quota& asked, uint64_t asked_scope) : quota(asked), scope(asked_scope) {}
  SharedQuota(const SharedQuota&) = delete;
  SharedQuota& operator=(const SharedQuota&) = delete;
  virtual ~SharedQuota() = default;

  const Quota quota;
  const uint64_t scope;
};

// Proof of a charge, for giving it back or, of a concurrency quota, for ending the hold. What is in
// it is the store's business; a value, good for as long as the store lives.
struct SharedReceipt {
  const SharedQuota* quota = nullptr;
  std::array<uint64_t, 2> key{};   // whose state was charged: the digest of the key's text
  std::array<uint64_t, 4> mark{};  // the state right after the charge, and when
  uint32_t charged = 0;            // 0: nothing to give back
  Basis basis = Basis::kStore;     // who counted it

  // Holds: larger than that of any hold of this key before it; 0 if nothing is held, or if the
  // store was away, whose numbers only it can give.
  [[nodiscard]] uint64_t fence() const noexcept {
    return charged == 0 || basis != Basis::kStore ? 0 : mark[0];
  }
};

// Why the store did not decide: the last cause, for an answer that has to name one.
enum class StoreTrouble : uint8_t {
  kNone,
  kTimeout,       // no reply within the deadline
  kDisconnected,  // no connection, or it was lost
  kOverloaded,    // too many calls in flight
  kBreakerOpen,   // it failed too often just now, and is left alone for a while
  kNoNode,        // nobody serves this key's slot
  kOutOfMemory,   // OOM
  kLoading,       // LOADING
  kReadOnly,      // READONLY: a replica
  kMasterDown,    // MASTERDOWN
  kBusy,          // BUSY: a script runs for too long
  kNotAllowed,    // NOAUTH, WRONGPASS, NOPERM
  kWrongType,     // a key of ours holds something else
  kOther,         // any other error
};

inline constexpr size_t kStoreTroubles = static_cast<size_t>(StoreTrouble::kOther) + 1;

// A short name, as in metrics: "timeout", "out_of_memory".
[[nodiscard]] std::string_view ToString(StoreTrouble trouble) noexcept;

// One quota asked of the store for one key.
struct SharedAsk {
  const SharedQuota* quota = nullptr;
  std::string_view key;  // lives as long as the call
  Cost cost = 1;
  bool apart = false;  // decided by itself, without a say in the others (shadow)
  OnStoreFailure on_failure = OnStoreFailure::kLocal;
  Duration max_wait = Duration::max();         // queues only, as in CheckOptions
  Decision decision{Decision::Blank()};        // filled in, all of it
  StoreTrouble trouble = StoreTrouble::kNone;  // filled in: why the store did not decide
  SharedReceipt receipt{};                     // filled in if wanted
};

struct SharedRequest {
  std::span<SharedAsk> asks;  // at most kMaxCharges
  ChargeMode mode = ChargeMode::kAdmit;
  // Given: the same id within the store's memory of ids (RedisOptions::id_memory) is charged once,
  // and answered alike, however often it comes. At most kMaxSharedIdBytes.
  std::string_view id{};
  bool keep_receipts = false;
  // Concurrency quotas: how long what is taken is held. Zero: what the quota says.
  Duration lease{};
};

inline constexpr size_t kMaxSharedIdBytes = 128;

struct SharedSettlement {
  SettleOutcome outcome = SettleOutcome::kGone;
  uint64_t actual = 0;      // what it was settled with: now, or when it already was
  uint64_t given_back = 0;  // units, of the quota that got the most
  Problem problem = Problem::kNone;
  // Other than kNone: the store could not be asked. Nothing is known to have happened; the same
  // call may be repeated.
  StoreTrouble trouble = StoreTrouble::kNone;
};

inline constexpr size_t kSharedBases = static_cast<size_t>(Basis::kCached) + 1;

// What the store has done, for metrics. Counts since it was made.
struct SharedStoreStats {
  std::array<uint64_t, kSharedBases> decisions{};   // by Basis, of every ask
  std::array<uint64_t, kSharedBases> admitted{};    // of those, allowed
  std::array<uint64_t, kStoreTroubles> troubles{};  // calls that failed, by cause
  uint64_t repeated_ids = 0;                        // asks answered from the store's memory of ids
  uint64_t refunds = 0;       // charges given back since another quota of the request denied
  uint64_t refunds_lost = 0;  // of those, ones that the store did not take: charged until they fade
  uint64_t unsure_ids = 0;    // charges with an id whose fate nobody could ask for in time
  uint64_t repaid_units = 0;  // admitted while the store was away, charged to it since
  uint64_t repaid_lost = 0;   // of those, units that could not be
  uint64_t notes = 0;         // keys that are remembered for when the store is away
  uint64_t notes_evicted = 0;       // live ones that had to make room
  uint64_t notes_owed_evicted = 0;  // of those, with units that were still to be charged
  uint64_t state_changes = 0;       // between well and away, of any node
  bool away = false;                // now, for at least one node
};

class SharedStore {
 public:
  SharedStore() = default;
  SharedStore(const SharedStore&) = delete;
  SharedStore& operator=(const SharedStore&) = delete;
  virtual ~SharedStore() = default;

  // Makes a quota ready, once for each change of a rule; equal ones get the same answer. `scope`
  // says which rule and which of its quotas, alike on every node of a fleet, so that equal keys of
  // other rules do not meet. Another quota of the same scope takes over what keys owe. Fails where
  // this store cannot hold the quota. Not for the hot path.
  [[nodiscard]] virtual Result<const SharedQuota*> Bind(const Quota& quota, uint64_t scope) = 0;

  // Decides all of them, all or nothing but for those apart.
  virtual void Decide(SharedRequest& request) noexcept = 0;
  // The same without waiting: `done` is called once, from a thread of the store or at once. It must
  // not block. The request lives until then.
  virtual void DecideThen(SharedRequest& request, std::function<void()> done) {
    Decide(request);
    done();
  }

  // Gives back what was charged, as far as it is still owed; ends holds. Each receipt counts once
  // and is emptied. The units given back to the one that got the most.
  virtual uint32_t GiveBack(std::span<SharedReceipt> receipts) noexcept = 0;
  // A hold's lease begins anew. False: it has ended, or the store is away.
  virtual bool Renew(SharedReceipt& hold, Duration lease) noexcept = 0;

  // Starts a key anew. kRefused also if the store cannot be asked.
  virtual ResetOutcome Reset(const SharedQuota& quota, std::string_view key) noexcept = 0;

  // As Decide with kAdmit, and if all is admitted keeps it in the store under `token`, for anyone
  // of the fleet to settle within `lasts`: charges by what they came to, holds by ending them.
  // `estimate` is what the asks' costs stand for, so that Settle can scale them.
  virtual void Reserve(SharedRequest& request, uint64_t estimate, Duration lasts,
                       std::string_view token) noexcept = 0;
  virtual SharedSettlement Settle(std::string_view token, uint64_t actual) noexcept = 0;
  // Of all holds under the token. False: there are none, or they have ended, or the store is away.
  virtual bool RenewReserved(std::string_view token, Duration lasts) noexcept = 0;

  // How far admission may go beyond this quota, and when; for people (`explain`).
  [[nodiscard]] virtual std::string Bound(const SharedQuota& quota,
                                          OnStoreFailure on_failure) const = 0;
  [[nodiscard]] virtual SharedStoreStats Stats() const = 0;
};

}  // namespace weir
