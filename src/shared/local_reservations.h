// Reservations that were made while the store was away: nobody but this node can settle them. And
// copies of those of which nobody knows whether the store keeps them. Bounded; what ends by itself
// stays charged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/shared_store.h"

#include "base/mutex.h"

namespace weir::shared {

struct LocalReservation {
  std::vector<SharedReceipt> receipts{};
  std::vector<uint64_t> costs{};  // of the estimate, for each receipt
  uint64_t estimate = 0;
  uint64_t actual = 0;
  int64_t ends_ns = 0;
  bool settled = false;
  // Its record may be in the store, and then only that one counts.
  bool unsure = false;
};

class LocalReservations {
 public:
  static constexpr size_t kMost = 65536;

  // False: there are too many.
  bool Add(std::string_view token, LocalReservation reservation, int64_t now_ns);
  // A copy of the one by this token, which is settled by it if it was not; none: it is not here.
  // What was charged here is handed out once; what the store was charged, to be corrected under
  // ids, each time. One that is unsure stays as it is.
  std::optional<LocalReservation> Settle(std::string_view token, uint64_t actual, int64_t now_ns);
  // A copy, which now ends later. None: nothing is held under the token.
  std::optional<LocalReservation> Extend(std::string_view token, int64_t ends_ns, int64_t now_ns);

 private:
  void DropEnded(int64_t now_ns) WEIR_REQUIRES(mutex_);

  base::Mutex mutex_;
  std::unordered_map<std::string, LocalReservation> all_ WEIR_GUARDED_BY(mutex_);
  int64_t next_look_ns_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::shared
