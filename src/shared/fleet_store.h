// The shared store on Redis: lanes for loops, one loop of its own for everybody else.
//
// A server attaches its loops, so that their fibers ask Redis on the loop they run on. Whoever is
// not in such a fiber is served by the store's own loop, and blocks. That loop also does what is
// nobody's request: it tells a Redis that has returned what was admitted without it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "weir/redis.h"
#include "weir/shared_store.h"

#include "base/mutex.h"
#include "net/loop.h"
#include "redis/client.h"
#include "shared/completion.h"
#include "shared/event_log.h"
#include "shared/fleet_quota.h"
#include "shared/key_book.h"
#include "shared/lane.h"
#include "shared/local_ids.h"
#include "shared/local_reservations.h"
#include "store/redis/key_name.h"

namespace weir::shared {

class OneCall;
class Pulse;

class FleetStore final : public SharedStore {
 public:
  static Result<std::shared_ptr<FleetStore>> Create(const RedisOptions& options);
  // REQUIRES: every loop that was attached is detached, or does not run any more.
  ~FleetStore() override;

  // On a loop's thread: fibers of it ask by a client of its own from here on.
  [[nodiscard]] Result<void> Attach(boost::asio::io_context& context);
  // On the same thread, when none of its fibers waits for the store.
  void Detach();

  Result<const SharedQuota*> Bind(const Quota& quota, uint64_t scope) override;
  void Decide(SharedRequest& request) noexcept override;
  void DecideThen(SharedRequest& request, std::function<void()> done) override;
  uint32_t GiveBack(std::span<SharedReceipt> receipts) noexcept override;
  bool Renew(SharedReceipt& hold, Duration lease) noexcept override;
  ResetOutcome Reset(const SharedQuota& quota, std::string_view key) noexcept override;
  void Reserve(SharedRequest& request, uint64_t estimate, Duration lasts,
               std::string_view token) noexcept override;
  SharedSettlement Settle(std::string_view token, uint64_t actual) noexcept override;
  bool RenewReserved(std::string_view token, Duration lasts) noexcept override;
  [[nodiscard]] std::string Bound(const SharedQuota& quota,
                                  OnStoreFailure on_failure) const override;
  [[nodiscard]] SharedStoreStats Stats() const override;

  // What the clients tell of each node, as of less than a second ago; those of one address added
  // up. For metrics.
  [[nodiscard]] std::vector<redis::NodeStatus> Nodes() const;
  // Where, without user and password.
  [[nodiscard]] std::string ToText() const { return client_options_.ToText(); }

 private:
  FleetStore(const RedisOptions& options, redis::Options client_options,
             std::unique_ptr<KeyBook> book);

  Result<void> Start();
  [[nodiscard]] Result<void> RefuseEviction();
  [[nodiscard]] Result<std::unique_ptr<Lane>> NewLane(boost::asio::io_context& context);
  void EndLane(const Lane& lane);
  // The lane of this thread's loop; null: it is not attached.
  [[nodiscard]] Lane* FindLaneHere() const noexcept;
  // Runs `begin` on a lane's loop and waits until all that it added to the completion is done.
  template <class Begin>
  void RunAndWait(const Begin& begin);
  void DecideHere(SharedRequest& request, std::function<void()> then);
  void Ask(std::span<OneCall* const> calls) noexcept;
  uint32_t GiveBackLocally(SharedReceipt& receipt) noexcept;
  void KeepLocally(const SharedRequest& request, LocalReservation reservation,
                   std::string_view token) noexcept;
  // Corrects charges to what they came to, and ends holds; as often as it is asked for one token,
  // once. `lasts_ms`: for how long it may be asked for again.
  SharedSettlement SettleAll(const LocalReservation& reservation, uint64_t actual,
                             std::string_view token, uint64_t lasts_ms) noexcept;
  struct Correction;
  // What was given back, and the trouble if not all of them were made.
  SharedSettlement Correct(std::vector<Correction>& corrections) noexcept;
  bool RenewAll(std::span<SharedReceipt> receipts, Duration lasts) noexcept;
  Duration KeepHouse();
  void Publish(Lane& lane);

  const RedisOptions options_;
  const redis::Options client_options_;
  const std::unique_ptr<KeyBook> book_;
  LocalIds local_ids_;
  QuotaRegistry quotas_;
  const script::KeySecret secret_;
  const Common common_;
  EventLog events_;
  LocalReservations local_reservations_;

  mutable base::Mutex mutex_;
  std::vector<Lane*> lanes_ WEIR_GUARDED_BY(mutex_);  // all, for their counters
  std::vector<std::unique_ptr<Lane>> attached_ WEIR_GUARDED_BY(mutex_);
  std::map<const Lane*, std::unique_ptr<Pulse>> pulses_ WEIR_GUARDED_BY(mutex_);
  std::map<const Lane*, redis::Status> statuses_ WEIR_GUARDED_BY(mutex_);
  std::map<const Lane*, std::shared_ptr<int>> who_ WEIR_GUARDED_BY(mutex_);  // as events_ knows it
  SharedStoreStats ended_ WEIR_GUARDED_BY(mutex_);  // of lanes that are gone

  struct House;
  struct Told;
  std::unique_ptr<House> house_;             // on the own loop only
  std::vector<std::unique_ptr<Told>> idle_;  // likewise, as the next two
  size_t told_depth_ = 0;                    // functions that are told inside one another
  std::unique_ptr<Lane> own_lane_;           // likewise
  net::Loop own_loop_;
};

template <class Begin>
void FleetStore::RunAndWait(const Begin& begin) {
  Lane* const lane = net::InFiber() ? FindLaneHere() : nullptr;
  Completion completion(lane != nullptr ? Completion::Waiter::kFiber : Completion::Waiter::kThread);
  const auto run = [&](Lane& on) {
    completion.Add();
    begin(on, completion);
    completion.Done();
  };
  if (lane != nullptr) {
    run(*lane);
  } else {
    own_loop_.Post([&] { run(*own_lane_); });
  }
  completion.Wait();
}

}  // namespace weir::shared
