// What is behind a RuleLimiter.
#pragma once

#include <memory>

#include "weir/rules.h"

#include "base/mutex.h"
#include "base/reader_gate.h"
#include "rules/bound_set.h"
#include "rules/matcher.h"

namespace weir {

struct RuleLimiter::State {
  State(std::shared_ptr<MemoryStore> store, const RuleLimiterOptions& own)
      : options(own),
        clock(own.clock != nullptr ? *own.clock : SystemClock()),
        registry(std::move(store), own.shared, own.top_keys) {}

  RuleLimiterOptions options;
  const Clock& clock;

  // Who has a pin is inside the gate; `current` changes only while nobody is.
  base::ReaderGate gate;
  std::shared_ptr<rules::BoundSet> current;

  mutable base::Mutex mutex;  // one change at a time; never waited for by a check
  rules::Registry registry WEIR_GUARDED_BY(mutex);

  [[nodiscard]] rules::MatchContext Context(WallTime wall) const noexcept {
    return {wall, options.fleet_secret, options.ipv6_prefix_bits};
  }

  // Makes the changes whose time has come, unless somebody else is at it. REQUIRES: a pin is held.
  void MakeDueChanges(rules::BoundSet& set, WallTime wall) noexcept;
  void MakeDueChangesLocked(rules::BoundSet& set, WallTime wall) WEIR_REQUIRES(mutex);
};

}  // namespace weir
