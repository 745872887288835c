// Decisions on records; see record_engine.cc.
#pragma once

#include "algorithm/plan.h"
#include "store/memory/binding.h"

namespace weir::store {

// REQUIRES: a plan whose states are records.
[[nodiscard]] const EngineOps& RecordOpsFor(const algorithm::Plan& plan) noexcept;

}  // namespace weir::store
