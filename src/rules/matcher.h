// Which rules a request meets: of each group the most specific that matches.
#pragma once

#include <array>
#include <cstdint>

#include "weir/time.h"

#include "rules/compiled_set.h"
#include "rules/request_view.h"

namespace weir::rules {

// What matching depends on beside the request.
struct MatchContext {
  WallTime wall{};
  uint64_t fleet_secret = 0;
  unsigned ipv6_bits = 64;
};

// The winning alternatives, by rule in the order of the file.
struct Winners {
  size_t size = 0;
  std::array<uint32_t, kMaxGroups> ranks;
};

void FindWinners(const CompiledSet& set, const RequestView& request, const MatchContext& context,
                 Winners& winners) noexcept;

// The parts of one rule's answer, for FindWinners and for explaining.
[[nodiscard]] bool Holds(const CompiledSet& set, const CompiledCondition& condition,
                         const RequestView& request) noexcept;
[[nodiscard]] bool InCanary(const CompiledRule& rule, const PathPattern* pattern,
                            const RequestView& request, const MatchContext& context) noexcept;

}  // namespace weir::rules
