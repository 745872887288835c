// Decisions on records; see record_engine.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/hold.h"

#include "algorithm/plan.h"
#include "store/memory/binding.h"

namespace weir::store {

// REQUIRES: a plan whose states are records.
[[nodiscard]] const EngineOps& RecordOpsFor(const algorithm::Plan& plan) noexcept;

// Takes a hold of each key, with the memory of later ones fetched ahead. The request's receipt is
// not looked at. REQUIRES: a binding of a concurrency quota.
void AcquireMany(Binding& binding, const std::string_view* keys, size_t count,
                 const Request& request, uint64_t now_ns, Acquired* out) noexcept;

// Begins a hold's lease anew; `lease_ns` 0 is the quota's. False: the hold has ended.
// REQUIRES: a binding of a concurrency quota.
bool RenewHold(Binding& binding, const Receipt& hold, uint64_t lease_ns, uint64_t now_ns) noexcept;

}  // namespace weir::store
