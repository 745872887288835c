// envoyproxy/ratelimit's REDIS_ variables as one URL of ours (docs/reference/redis.md).
#pragma once

#include <string>

#include "weir/result.h"

#include "envoy/environment.h"

namespace weir::envoy {

// Empty without REDIS_URL: counters are then in memory. The error names the variable.
[[nodiscard]] Result<std::string> RedisUrl(const Environment& environment);

}  // namespace weir::envoy
