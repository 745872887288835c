// A reservation as it is written down in the store, for any node of the fleet to settle: which
// quotas were charged, for what, and the receipts.
//
// One line of numbers and the quota's text for each charge, so that a node that never met the rule
// can give back all the same:
//   1 <estimate>
//   <scope> <key> <key> <mark> x 4 <charged> <cost> <quota>
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shared/local_reservations.h"

namespace weir::shared {

[[nodiscard]] std::string WriteRecord(const LocalReservation& reservation);

// None: it is not one that we wrote. Quotas are bound to `store`.
[[nodiscard]] std::optional<LocalReservation> ReadRecord(std::string_view text, SharedStore& store);

}  // namespace weir::shared
