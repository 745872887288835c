// The keyed limiter: start reading here.
//
//   auto quota = weir::Quota::Parse("100/min burst 20");
//   auto limiter = weir::Limiter::Create(*quota);
//   if (!limiter->Check("user:42").allowed()) return TooManyRequests();
//
// All calls are synchronous and thread-safe; checks neither allocate nor throw. Buckets, windows,
// gaps and calendar quotas take no lock once a key has been seen (its first charge takes a striped
// spin lock for a few instructions), but for units taken ahead of keys that threads contend for.
// Sliding logs, sliced windows, holds and reservations hold a spin lock for each decision: that of
// the list which their record is on, a few keys long; making and taking back a record locks a mutex
// of the store.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/decision.h"
#include "weir/hold.h"
#include "weir/quota.h"
#include "weir/reservation.h"
#include "weir/result.h"
#include "weir/store.h"
#include "weir/time.h"

namespace weir {

struct CheckOptions {
  Cost cost = 1;
  ChargeMode mode = ChargeMode::kAdmit;
  std::optional<Timestamp> now = std::nullopt;  // none: the clock is read
  Receipt* receipt = nullptr;                   // filled if given, for GiveBack
  // Queues only: what could not start within this is denied at once, and retry_after says when it
  // could be asked again. kCountAlways, which asks about what has happened, takes no notice of it.
  Duration max_wait = Duration::max();
};

// Where a key is counted before it comes near its limit.
enum class Precision : uint8_t {
  kExact,   // in a state of its own, from its first charge on
  kSketch,  // in the store's sketch, which takes no memory a key; past half of what fits there it
            // gets a state of its own. Stricter than the quota at times, never looser. For buckets,
            // gaps, calendar quotas and windows that do not begin at the first hit.
};

// All of them are kept by Update.
struct LimiterOptions {
  Precision precision = Precision::kExact;
  // For TopKeys: how many keys to keep track of; 0: none, and nothing is noted. About 900 bytes
  // each, beside the store's budget.
  uint32_t top_keys = 0;
  // One decision in this many is noted, at random; a power of two. 1 notes all of them.
  uint32_t top_keys_sample = 64;
};

// A key that is asked for often, by a sample of the decisions. Of what was noted, each times the
// sample, between count - error and count was this key's, and between denied and denied + error
// was denied. A count c itself varies by about the root of c times the sample, as samples do.
struct TopKey {
  std::string key;  // its first 64 bytes
  bool cut = false;
  bool hidden = false;  // a digest of these bytes stands in their place (RuleView::secret_keys)
  uint64_t count = 0;
  uint64_t denied = 0;
  uint64_t error = 0;
};

// What one limiter noted, or several whose lists were put together.
struct TopList {
  std::vector<TopKey> keys;  // the most frequent first
  uint64_t total = 0;        // of all keys
  uint64_t absent_most = 0;  // no key that is not listed has more than this
};

// The lists of several nodes, or several limiters, as one; the bounds of TopKey hold for what all
// of them noted together. Keys are the same if what is shown of them is.
[[nodiscard]] TopList MergeTopLists(std::span<const TopList> lists, size_t most);

// A key that has been looked at and hashed, for one that is asked for often: a tenant, a route, a
// limit for all. Good for every limiter of the store that prepared it, for as long as that lives.
class PreparedKey {
 public:
  // Other than kNone: every check with it is refused for that.
  [[nodiscard]] Problem problem() const noexcept { return problem_; }

 private:
  friend class Limiter;

  PreparedKey(uint64_t hash, uint64_t phase, Problem problem) noexcept
      : hash_(hash), phase_(phase), problem_(problem) {}

  uint64_t hash_;
  uint64_t phase_;
  Problem problem_;
};

// What became of a key that was to start anew.
enum class ResetOutcome : uint8_t {
  kDone,
  kUnknown,  // there was nothing to forget
  kShared,   // done, except that the sketch may still count against it what it had there, or what
             // other keys have: that fades by itself
  kRefused,  // a key that no check would take, or a `now` too far away
};

class Limiter {
 public:
  // A limiter with a store of its own, all of whose budget suits this quota.
  static Result<Limiter> Create(const Quota& quota, MemoryOptions options = {},
                                const LimiterOptions& own = {});
  // One of several limiters on a shared store.
  static Result<Limiter> Create(const Quota& quota, std::shared_ptr<MemoryStore> store,
                                const LimiterOptions& own = {});

  Limiter(Limiter&&) noexcept;
  Limiter& operator=(Limiter&&) noexcept;
  ~Limiter();

  // Reads the clock.
  Decision Check(std::string_view key, Cost cost = 1) noexcept {
    Decision decision{Decision::Blank()};  // either way writes all of it
    if (!TryCheck(key, cost.units, decision)) [[unlikely]] {
      CheckSlowly(key, cost.units, decision);
    }
    return decision;
  }
  // Does not: for callers that have the time already, or decide many requests at one instant.
  Decision Check(std::string_view key, Timestamp now, Cost cost = 1) noexcept {
    Decision decision{Decision::Blank()};  // either way writes all of it
    if (!TryCheck(key, now, cost.units, decision)) [[unlikely]] {
      CheckSlowly(key, now, cost.units, decision);
    }
    return decision;
  }
  Decision Check(std::string_view key, const CheckOptions& options) noexcept;

  // Starts fetching what a check of the key will read, for callers that have other things to do
  // before it, such as asking for other keys. Changes nothing.
  void Prefetch(std::string_view key) const noexcept;

  [[nodiscard]] PreparedKey Prepare(std::string_view key) const noexcept;
  // As with the key itself, except that TopKeys does not learn of it.
  Decision Check(const PreparedKey& key, Timestamp now, Cost cost = 1) noexcept {
    Decision decision{Decision::Blank()};  // either way writes all of it
    if (!TryCheck(key, now, cost.units, decision)) [[unlikely]] {
      CheckSlowly(key, now, cost.units, decision);
    }
    return decision;
  }
  Decision Check(const PreparedKey& key, Cost cost = 1) noexcept { return Check(key, Now(), cost); }

  // Decides keys[i] into decisions[i] as Check would one after the other, each key's requests in
  // order, with one clock read (or none) and the memory of later keys fetched while earlier ones
  // are decided.
  // REQUIRES: decisions.size() >= keys.size().
  void CheckMany(std::span<const std::string_view> keys, std::span<Decision> decisions,
                 Cost cost = 1) noexcept;
  void CheckMany(std::span<const std::string_view> keys, Timestamp now,
                 std::span<Decision> decisions, Cost cost = 1) noexcept;

  // Takes what fits of `most`, perhaps nothing: Decision::charged says how much.
  Decision TakeUpTo(std::string_view key, Cost most) noexcept;

  // Gives back what a receipt was charged, as far as it is still owed: a bucket that has refilled
  // meanwhile, or a window that has closed, gets nothing. A queue takes back the last of those who
  // wait, or anything while nobody waits; a place in the middle stays empty, since those behind
  // have been told when to start. Never more than was paid. Each receipt may be used once; using it
  // empties it. Returns the whole units given back. A `now` behind the store's clock counts as that
  // clock: charges may have been made since.
  uint32_t GiveBack(Receipt& receipt) noexcept;
  uint32_t GiveBack(Receipt& receipt, Timestamp now) noexcept;

  // Concurrency quotas (hold.h). A plain Check takes a hold that nobody can release: its lease ends
  // it. With any other quota Acquire is refused, and nothing is ever released.
  Acquired Acquire(std::string_view key, const AcquireOptions& options = {}) noexcept;
  // Of keys[i] into acquired[i], in order, with the memory of later keys fetched ahead.
  // REQUIRES: acquired.size() >= keys.size().
  void AcquireMany(std::span<const std::string_view> keys, std::span<Acquired> acquired,
                   const AcquireOptions& options = {}) noexcept;
  // Ends a hold, once: false if that has happened already, by another copy or by the lease.
  bool Release(const Hold& hold, std::optional<Timestamp> now = std::nullopt) noexcept;
  // A lease begins anew now, and never ends earlier than it did. False: the hold has ended (or an
  // option is out of range), and what it stood for may be somebody else's.
  bool Renew(const Hold& hold, const RenewOptions& options = {}) noexcept;

  // All other quotas, for costs known only afterwards (reservation.h). Charges the estimate, or
  // denies and charges nothing; denied with Basis::kClosed if there is no room for a reservation.
  Reserved Reserve(std::string_view key, Cost estimate,
                   const ReserveOptions& options = {}) noexcept;
  // Once: what it came to in the end, 0 for nothing at all.
  Settlement Settle(Reservation reservation, Cost actual,
                    std::optional<Timestamp> now = std::nullopt) noexcept;

  // Starts a key anew, as if it had never been asked for, whatever it owes, under a quota before
  // this one too. What was charged before cannot be given back any more, and its holds have ended.
  // For operators: it takes locks, and brings back all leases of the quota.
  ResetOutcome Reset(std::string_view key, std::optional<Timestamp> now = std::nullopt) noexcept;

  // Changes the quota under traffic. What keys owe is carried over: a raise never turns an allowed
  // request into a denied one, and nobody gets a fresh bucket. Holds stay as they are. What is held
  // and what is charged are not the same, so concurrency cannot become a rate, nor a rate that.
  Result<void> Update(const Quota& quota);

  // The keys that were decided most often so far, the most frequent first. Each key with more than
  // one in LimiterOptions::top_keys of all that was noted is among them, if `most` lets it be.
  // Peeks and dry runs do not count. Merges a few summaries: not for the hot path.
  [[nodiscard]] std::vector<TopKey> TopKeys(size_t most) const;
  // The same with what it takes to merge them with others'.
  [[nodiscard]] TopList TopKeyList(size_t most) const;

  [[nodiscard]] Quota quota() const;
  [[nodiscard]] const std::shared_ptr<MemoryStore>& store() const noexcept;
  // The clock that Check(key) reads, for callers that pass `now`.
  [[nodiscard]] Timestamp Now() const noexcept;

  struct State;  // internal
  [[nodiscard]] State& state() noexcept { return *state_; }

 private:
  explicit Limiter(std::unique_ptr<State> state);

  // The short way, for the common case. False: nothing has happened, go the long way. Two calls so
  // that the short one need not remember what it was asked (docs/decisions/0014).
  bool TryCheck(std::string_view key, uint64_t cost, Decision& decision) noexcept;
  bool TryCheck(std::string_view key, Timestamp now, uint64_t cost, Decision& decision) noexcept;
  void CheckSlowly(std::string_view key, uint64_t cost, Decision& decision) noexcept;
  void CheckSlowly(std::string_view key, Timestamp now, uint64_t cost, Decision& decision) noexcept;
  bool TryCheck(const PreparedKey& key, Timestamp now, uint64_t cost, Decision& decision) noexcept;
  void CheckSlowly(const PreparedKey& key, Timestamp now, uint64_t cost,
                   Decision& decision) noexcept;

  std::unique_ptr<State> state_;
};

// One part of a request: this key, under this limiter's quota.
struct Charge {
  Limiter* limiter = nullptr;
  std::string_view key;
  Cost cost = 1;
  ChargeMode mode = ChargeMode::kAdmit;  // kAdmit or kCountAlways
  Duration max_wait = Duration::max();   // as in CheckOptions
};

// The answer to several charges taken together.
struct Verdict {
  Outcome outcome = Outcome::kAllowed;
  Problem problem = Problem::kNone;
  // Which charge speaks for all: denied, the one with the longest retry_after; allowed, the one
  // with the least left of its limit.
  size_t deciding = 0;
  Duration retry_after{};  // the longest of the refusing charges
  Duration start_after{};  // allowed: the latest of the charges' starts

  [[nodiscard]] bool allowed() const noexcept { return outcome == Outcome::kAllowed; }
};

inline constexpr size_t kMaxCharges = 64;

// Takes every kAdmit charge or none of them; kCountAlways charges are counted either way.
// Never admits more than each quota allows. While two such calls race on the same key a denial may
// be too early by at most the cost in flight (docs/accuracy.md).
// More than kMaxCharges of them, fewer decisions than charges (or receipts, unless there are none),
// a charge without a limiter or with a mode other than these two: the call is refused as a whole,
// all decisions say why, and nothing is charged or counted.
Verdict CheckAll(std::span<const Charge> charges, std::span<Decision> decisions,
                 std::optional<Timestamp> now = std::nullopt,
                 std::span<Receipt> receipts = {}) noexcept;

}  // namespace weir
