// One event loop's way to the shared store: a client of Redis of its own, and what belongs to the
// calls on it. Everything here happens on that loop, but for the counters, which anybody reads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "weir/shared_store.h"

#include "redis/client.h"
#include "shared/fleet_quota.h"
#include "shared/key_book.h"
#include "shared/local_ids.h"
#include "store/redis/other_calls.h"

namespace weir::shared {

class Deciding;
class Errand;

// What all lanes of a store have in common.
struct Common {
  const Clock& clock;
  KeyBook& book;
  LocalIds& local_ids;
  QuotaRegistry& quotas;
  const script::KeySecret& secret;
  Duration denial_memory;
  uint64_t id_memory_ms;
  Duration closed_retry;  // what a refusal without the store says about coming back

  // Above zero, as the book wants it.
  [[nodiscard]] int64_t NowNs() const noexcept {
    const int64_t now = clock.Now().time_since_epoch().count();
    return now > 0 ? now : 1;
  }
  // Unix microseconds, roughly the store's: calendar quotas are sent with the periods around them.
  [[nodiscard]] int64_t WallUs() const noexcept {
    return clock.WallNow().time_since_epoch().count() / 1000;
  }
};

// Written by one loop. Relaxed: each number stands alone.
struct LaneCounters {
  std::array<std::atomic<uint64_t>, kSharedBases> decisions{};
  std::array<std::atomic<uint64_t>, kSharedBases> admitted{};
  std::array<std::atomic<uint64_t>, kStoreTroubles> troubles{};
  std::atomic<uint64_t> repeated_ids{0};
  std::atomic<uint64_t> refunds{0};
  std::atomic<uint64_t> refunds_lost{0};
  std::atomic<uint64_t> unsure{0};
  std::atomic<uint64_t> repaid_units{0};
  std::atomic<uint64_t> repaid_lost{0};

  static void Add(std::atomic<uint64_t>& counter, uint64_t by = 1) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
};

[[nodiscard]] StoreTrouble TroubleOf(const redis::Failure& failure) noexcept;

// The client's form of a script.
[[nodiscard]] const redis::Script& ScriptOf(script::Id id) noexcept;

class Lane {
 public:
  Lane(const Common& own, std::unique_ptr<redis::Client> client);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  const Common& common;
  // False: the lane ends, and nothing can be sent any more.
  [[nodiscard]] bool open() const noexcept { return client_ != nullptr; }
  // REQUIRES: open().
  [[nodiscard]] redis::Client& client() noexcept { return *client_; }
  // Whether the store has only just returned for this key (KeyBook::TakeSettling).
  [[nodiscard]] bool IsSettling(const script::Digest& key) noexcept {
    return open() && client_->settling() && client_->IsSettling(script::KeyName::OfState(key));
  }
  [[nodiscard]] LaneCounters& counters() noexcept { return counters_; }
  [[nodiscard]] const LaneCounters& counters() const noexcept { return counters_; }

  // Nobody waits for these. A charge of a request that another quota denied:
  void Refund(const script::Paid& paid);
  // What was admitted here while the store was away, counted there whatever its quota says:
  void Repay(const FleetQuota& quota, const script::Digest& key, uint32_t units);
  // The same for those that were made under an id, by this claim.
  void Undo(std::span<const script::Paid> paid, const script::GiveBackCall::Record& record,
            const script::Claim& claim);
  // A charge with an id of which nobody knows whether it was made (Errand::MakeSure).
  void MakeSure(std::span<const script::Ask> asks, const script::Digest& id,
                const script::Claim& claim, bool admitted);
  // Unlike any other of the fleet.
  [[nodiscard]] script::Claim NewClaim() noexcept;
  // To be tried again, when RetryLater is called.
  void Later(Errand& errand);
  void RetryLater();
  // Of all keys that owe and can be told of: a few at a time. True: there may be more.
  bool RepaySome(size_t& cursor);

  // Used again and again, so that a decision allocates nothing once the loop is warm.
  [[nodiscard]] std::unique_ptr<Deciding> TakeDeciding();
  void Recycle(std::unique_ptr<Deciding> done);
  void Recycle(Errand& done);

 private:
  static constexpr size_t kErrandsMax = 4096;  // under way; past that, refunds are lost
  static constexpr size_t kIdleMax = 1024;

  Errand* TakeErrand();

  LaneCounters counters_;
  uint64_t claims_;                               // the last one's number, before it is mixed
  std::vector<std::unique_ptr<Errand>> errands_;  // all of them
  std::vector<Errand*> idle_errands_;
  std::vector<Errand*> later_;
  std::vector<std::unique_ptr<Deciding>> idle_decidings_;
  std::unique_ptr<redis::Client> client_;  // last: it tells those above that it ends
};

}  // namespace weir::shared
