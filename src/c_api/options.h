// Structs of the C interface that may grow, read and written at the caller's size.
#pragma once

#include "weir/limiter.h"
#include "weir/result.h"
#include "weir/store.h"
#include "weir/weir.h"

namespace weir::c_api {

// NULL: all defaults.
Result<MemoryOptions> ReadOptions(const weir_store_options* given);
Result<LimiterOptions> ReadOptions(const weir_limiter_options* given);

// Writes as much as the caller has room for. WEIR_OK, or what Fail returns.
int WriteStats(const MemoryStore& store, weir_stats* stats);

}  // namespace weir::c_api
