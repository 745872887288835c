// Open reservations: records of their own, found by number.
//
// The body of a record: the receipt of the charge (hash, mark, refunds, when, [units:32 |
// binding:32]), the key's phase, and what it was settled with. The estimate is the receipt's units;
// a charge that left no receipt has no binding in it, so that nothing can be given back by it.
#pragma once

#include <cstdint>

#include "weir/decision.h"

#include "store/memory/shared_state.h"

namespace weir::store {

struct ReservedCharge {
  Receipt receipt;     // of the estimate
  uint64_t phase = 0;  // of the key's windows
};

// The number of a new one, which only `owner` finds; 0 if there is no room for it. It cannot be
// settled before it is filled. REQUIRES: the store has records.
[[nodiscard]] uint64_t OpenReservation(SharedState& store, uint32_t owner,
                                       uint64_t ends_ns) noexcept;
void FillReservation(SharedState& store, uint32_t owner, uint64_t id,
                     const ReservedCharge& charge) noexcept;
void DropReservation(SharedState& store, uint32_t owner, uint64_t id) noexcept;

enum class Closing { kClosed, kBefore, kGone };

// Closes it for good; then `charge` is what it had. `actual` becomes that of the first closing.
[[nodiscard]] Closing CloseReservation(SharedState& store, uint32_t owner, uint64_t id,
                                       uint64_t now_ns, uint64_t& actual,
                                       ReservedCharge& charge) noexcept;

}  // namespace weir::store
