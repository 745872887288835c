// Decisions on records; see record_engine.cc.
#pragma once

#include "algorithm/plan.h"
#include "store/memory/binding.h"

namespace weir::store {

// REQUIRES: a plan whose states are records.
[[nodiscard]] const EngineOps& RecordOpsFor(const algorithm::Plan& plan) noexcept;

// Begins a hold's lease anew; `lease_ns` 0 is the quota's. False: the hold has ended.
// REQUIRES: a binding of a concurrency quota.
bool RenewHold(Binding& binding, const Receipt& hold, uint64_t lease_ns, uint64_t now_ns) noexcept;

}  // namespace weir::store
