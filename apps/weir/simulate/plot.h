// Pictures in characters: sparkline, stacked bars, gauge, axis. Each is exactly as many columns
// wide as it is asked to be, in block characters or plain ASCII, with colours or without.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weir/time.h"

#include "apps/weir/terminal.h"

namespace weir::simulate {

// One row of bars, eight heights; a value above 0 always shows. REQUIRES: values <= peak.
[[nodiscard]] std::string Sparkline(const app::Terminal& terminal, app::Ink ink,
                                    std::span<const uint64_t> values, uint64_t peak);

// Bars of `rows` rows, the top row first: admitted at the bottom, the rest of what was offered, the
// denied, above it in a muted colour or, without colours, a light shade. REQUIRES: admitted[i] <=
// offered[i] <= peak.
[[nodiscard]] std::vector<std::string> StackedBars(const app::Terminal& terminal,
                                                   std::span<const uint64_t> admitted,
                                                   std::span<const uint64_t> offered, uint64_t peak,
                                                   size_t rows);

// A bar from nothing to twice the limit with a mark at the limit: 2 * half + 1 columns. Beyond the
// mark it warns.
[[nodiscard]] std::string Gauge(const app::Terminal& terminal, uint64_t value, uint64_t limit,
                                size_t half);

// Time from 0 to `duration` over `columns`, labelled at whole windows as far as labels fit.
[[nodiscard]] std::string Axis(const app::Terminal& terminal, Duration duration, Duration window,
                               size_t columns);

// The most columns, up to `available`, that divide evenly among the windows of the run, so that
// the edge of a window falls between two cells; all of them if none do.
[[nodiscard]] size_t PlotColumns(size_t available, Duration duration, Duration window);

}  // namespace weir::simulate
