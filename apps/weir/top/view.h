// One picture of a server: rates from two snapshots, the busiest rules first, each with its top
// keys.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "apps/weir/terminal.h"
#include "apps/weir/top/snapshot.h"

namespace weir::top {

struct ViewOptions {
  app::Terminal terminal;
  size_t lines_max = 0;  // 0: as many as there are
  size_t keys_max = 5;   // of each rule
  std::string address;
  std::string problem;  // why there is nothing newer; empty: there is
};

// Rates are of the time between the two; without the former there are none, and totals stand alone.
// A counter that went back (the server started anew) counts from 0. Every line fits the terminal's
// width, and ends with a line feed.
[[nodiscard]] std::string View(const std::optional<Snapshot>& before, const Snapshot& now,
                               const ViewOptions& options);

// Keys come from clients: what a terminal would obey is shown as '?', and what is too long is cut.
[[nodiscard]] std::string Printable(std::string_view text, size_t columns);

}  // namespace weir::top
