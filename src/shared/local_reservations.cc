#include "shared/local_reservations.h"

#include <utility>

namespace weir::shared {

namespace {

constexpr int64_t kLookEveryNs = 1'000'000'000;

}  // namespace

void LocalReservations::DropEnded(int64_t now_ns) {
  if (now_ns < next_look_ns_) {
    return;
  }
  next_look_ns_ = now_ns + kLookEveryNs;
  std::erase_if(all_, [now_ns](const auto& entry) { return entry.second.ends_ns <= now_ns; });
}

bool LocalReservations::Add(std::string_view token, LocalReservation reservation, int64_t now_ns) {
  const base::MutexLock lock(mutex_);
  DropEnded(now_ns);
  return all_.size() < kMost && all_.emplace(std::string(token), std::move(reservation)).second;
}

std::optional<LocalReservation> LocalReservations::Settle(std::string_view token, uint64_t actual,
                                                          int64_t now_ns) {
  const base::MutexLock lock(mutex_);
  const auto found = all_.find(std::string(token));
  if (found == all_.end() || found->second.ends_ns <= now_ns) {
    return std::nullopt;
  }
  LocalReservation& kept = found->second;
  LocalReservation copy = kept;
  if (!kept.settled && !kept.unsure) {
    kept.settled = true;
    kept.actual = actual;
    for (SharedReceipt& receipt : kept.receipts) {
      receipt.charged = receipt.basis == Basis::kStore ? receipt.charged : 0;
    }
  }
  return copy;
}

std::optional<LocalReservation> LocalReservations::Extend(std::string_view token, int64_t ends_ns,
                                                          int64_t now_ns) {
  const base::MutexLock lock(mutex_);
  const auto found = all_.find(std::string(token));
  if (found == all_.end() || found->second.settled || found->second.ends_ns <= now_ns) {
    return std::nullopt;
  }
  found->second.ends_ns = ends_ns;
  return found->second;
}

}  // namespace weir::shared
