// A tour as text for people and as JSON for programs.
#pragma once

#include <cstddef>
#include <string>

#include "apps/weir/simulate/tour.h"
#include "apps/weir/terminal.h"

namespace weir::simulate {

// The narrowest report that still has a picture in it.
inline constexpr size_t kMinWidth = 72;
inline constexpr size_t kMaxWidth = 400;

// How many columns of a report this wide are left for a picture of this run.
[[nodiscard]] size_t PictureColumns(size_t width, Duration duration, Duration window);

// REQUIRES: tour.plan.bins == PictureColumns(terminal.width, ...), width within the bounds above.
[[nodiscard]] std::string Report(const Tour& tour, const app::Terminal& terminal);

// Every algorithm and traffic, a line each.
[[nodiscard]] std::string Catalogue(const app::Terminal& terminal);

// One object; times in nanoseconds. docs/guide/simulate.md lists the fields.
[[nodiscard]] std::string Json(const Tour& tour);

}  // namespace weir::simulate
