// Reservations and holds over several rules at once, by a token that a client keeps.
//
// Reserving charges the estimate to every rate that a request meets, and takes a hold on every
// concurrency quota: all or nothing. Settling, once, corrects the charges to what it came to and
// ends the holds; releasing settles with nothing. What nobody settles ends by itself: charges stay,
// holds come back. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/limiter.h"
#include "weir/rules.h"
#include "weir/time.h"

#include "base/mutex.h"

namespace weir::server {

class ReservationBook {
 public:
  // With a shared store they are kept there, for any node to settle.
  explicit ReservationBook(SharedStore* shared = nullptr) : shared_(shared) {}

  static constexpr size_t kOpenMax = size_t{1} << 20;
  static constexpr Duration kLastsDefault = std::chrono::minutes(10);

  struct Request {
    std::span<const Attribute> attributes;
    uint64_t estimate = 1;
    Duration lasts = kLastsDefault;
    Timestamp now;
    WallTime wall;
    std::string_view id{};  // with a shared store: what comes again is reserved once
  };
  // `reply` is as that of a check. The token; empty unless allowed.
  std::string Reserve(RuleLimiter& rules, const RuleLimiter::Pin& pin, const Request& request,
                      RuleReply& reply);

  struct Settled {
    SettleOutcome outcome = SettleOutcome::kGone;
    uint64_t actual = 0;      // what it was settled with, now or earlier
    uint64_t given_back = 0;  // units, of the quota that got the most
    Problem problem = Problem::kNone;
    StoreTrouble trouble = StoreTrouble::kNone;  // the shared store could not be asked
  };
  Settled Settle(std::string_view token, uint64_t actual, Timestamp now);
  Settled Release(std::string_view token, Timestamp now) { return Settle(token, 0, now); }
  // A hold's lease begins anew. False: there is none by that token.
  bool Renew(std::string_view token, Timestamp now);

  [[nodiscard]] size_t size() const;

 private:
  // On one quota.
  struct Item {
    Limiter* limiter = nullptr;
    Reservation reservation;  // one of these two
    Hold hold;
    uint64_t cost = 0;  // of the estimate, here
  };
  struct Entry {
    std::vector<Item> items;
    uint64_t estimate = 0;
    uint64_t actual = 0;
    Timestamp ends;
    Duration lasts{};
    bool settled = false;
  };

  std::string ReserveShared(RuleLimiter& rules, const RuleLimiter::Pin& pin, const Request& request,
                            RuleReply& reply);
  static bool Take(const RulePart& part, const Request& request, Item& item, Decision& decision);
  static void GiveAllBack(std::vector<Item>& items, Timestamp now);
  void DropEnded(Timestamp now) WEIR_REQUIRES(mutex_);
  static std::string NewToken();

  SharedStore* const shared_;
  mutable base::Mutex mutex_;
  std::unordered_map<std::string, Entry> entries_ WEIR_GUARDED_BY(mutex_);
  // In the order of their making, to be looked at when they may have ended.
  std::vector<std::pair<Timestamp, std::string>> by_end_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::server
