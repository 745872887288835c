// What `weir bench` prints: a summary with a picture for people, one JSON object for programs.
#pragma once

#include <string>

#include "apps/weir/bench/load.h"
#include "apps/weir/bench/tally.h"
#include "apps/weir/terminal.h"
#include "base/histogram.h"

namespace weir::bench {

[[nodiscard]] std::string Report(const LoadPlan& plan, const Tally& tally,
                                 const app::Terminal& terminal);

// Times in nanoseconds; `histogram` is a list of [highest value of the bucket, count].
[[nodiscard]] std::string Json(const LoadPlan& plan, const Tally& tally);

// A bar for each step of 1, 2, 5, 10 … that has values, from the smallest to the largest.
[[nodiscard]] std::string Picture(const base::Histogram& histogram, const app::Terminal& terminal);

// "950 ns", "12.3 µs", "1.05 ms", "2.50 s": three digits.
[[nodiscard]] std::string FormatNs(uint64_t ns, const app::Terminal& terminal);

}  // namespace weir::bench
