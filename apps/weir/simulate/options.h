// The command line of `weir simulate`, as text, and the plan it asks for. Every error names the
// option, what was found and what is allowed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weir/result.h"

#include "apps/weir/simulate/tour.h"
#include "apps/weir/simulate/trace.h"

namespace weir::simulate {

// As typed; an empty text means not given. The initializers let a caller name some fields only
// without g++ warning about the others.
// NOLINTBEGIN(readability-redundant-member-init)
struct RawOptions {
  std::vector<std::string> algorithms = {};
  std::vector<std::string> traffic = {};
  std::string trace = {};
  std::string cost = {};
  std::string service = {};
  std::string limit = {};
  std::string burst = {};
  std::string duration = {};
  std::string rate = {};
  std::string seed = {};
  std::string width = {};
};
// NOLINTEND(readability-redundant-member-init)

// A plan without bins: these depend on the width, which depends on the terminal. Reads
// the trace, if one is named.
[[nodiscard]] Result<TourPlan> MakePlan(const RawOptions& raw, const Progress& progress = {});

// The width asked for, or `detected` brought within what a report can be drawn in.
[[nodiscard]] Result<size_t> ChooseWidth(const RawOptions& raw, size_t detected);

}  // namespace weir::simulate
