// Recorded traffic from a text file.
//
//   # seconds  key    cost          blanks, tabs or commas between fields; # begins a comment
//   0.000      alice  1             key and cost may be left out: one key, a cost of 1
//   0.250      bob    12
//
// Or with a heading that names the columns, in any order and among others: a time (time, seconds,
// time_s, t; or in milliseconds t_ms, time_ms), a key (key, client, user, ip), a cost (cost,
// tokens, units), how long it was at work (service, duration, latency; or service_ms,
// duration_ms, latency_ms). A cost of "-" is 1, any other "-" not known. Lines of cost 0 are
// left out and late ones sorted, and the workload's line says how many. Times may count from 0 or
// from 1970.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <istream>
#include <string>
#include <string_view>

#include "weir/result.h"
#include "weir/time.h"

#include "apps/weir/simulate/workload.h"

namespace weir::simulate {

inline constexpr size_t kMaxTraceLine = 65536;
inline constexpr size_t kMaxTraceKeys = 4'000'000;
// How often a long file reports its progress.
inline constexpr uint64_t kProgressLines = 1'000'000;

using Progress = std::function<void(uint64_t lines)>;

// Every error is "<name>:<line>: what was found and what was expected". Time 0 of the workload is
// the last turn of an epoch-aligned window before the first request, so that windows turn where
// they did when the traffic was recorded.
[[nodiscard]] Result<Workload> ReadTrace(std::istream& in, std::string_view name, Duration window,
                                         const Progress& progress = {});

// The same from a file.
[[nodiscard]] Result<Workload> LoadTrace(const std::string& path, Duration window,
                                         const Progress& progress = {});

// Whole windows that hold every request of the workload; at least one.
[[nodiscard]] Duration WholeWindows(const Workload& workload, Duration window) noexcept;

}  // namespace weir::simulate
