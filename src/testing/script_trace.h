// Runs random traces through the shipped scripts and through what they must agree with, reply for
// reply: the C++ laws (shared_model.h), the memory store, the oracles.
#pragma once

#include <cstdint>
#include <string>

#include "weir/quota.h"

#include "testing/random.h"
#include "testing/script_host.h"

namespace weir::testing {

enum class TraceClock : uint8_t {
  kHost,      // the test moves the host's clock before each call
  kArgument,  // every call says its time; calls go out in batches
  kOwn,       // the host's clock runs by itself; the replies say what it was
};

struct TraceOptions {
  TraceClock clock = TraceClock::kHost;
  size_t steps = 100;
  bool steps_back = false;  // the clock is set back and forth now and then
  // Text for key names, so that no two traces on one host meet.
  std::string name;
};

// Empty: they agree. Otherwise what happened at which step.
[[nodiscard]] std::string FollowModel(ScriptHost& host, const Quota& quota, Random& random,
                                      const TraceOptions& options);
// Several quotas in one call, all or nothing.
[[nodiscard]] std::string FollowModels(ScriptHost& host, const std::vector<Quota>& quotas,
                                       Random& random, const TraceOptions& options);
// Beside a memory limiter and, for up to a few hundred steps, the exact oracle. Only for hosts
// whose clock the test moves, and quotas that both count in whole microseconds.
[[nodiscard]] std::string FollowMemory(ScriptHost& host, const Quota& quota, Random& random,
                                       const TraceOptions& options);

// Any quota that a shared store takes.
[[nodiscard]] Quota RandomShared(Random& random);
// One that memory counts in ticks of a microsecond or less, with windows in the same place.
[[nodiscard]] Quota RandomComparable(Random& random);
// One that a few milliseconds of a running clock get through.
[[nodiscard]] Quota RandomQuick(Random& random);

}  // namespace weir::testing
