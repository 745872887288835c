// The commands of the one binary. Each adds itself to the command line; the chosen one runs while
// the line is parsed and leaves its exit status.
#pragma once

#include <CLI/CLI.hpp>

namespace weir::app {

// Exit statuses of every command.
inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;  // could not be done
inline constexpr int kUsage = 2;    // asked wrongly

// REQUIRES: `status` outlives the parsing of `app`'s command line.
void RegisterBench(CLI::App& app, int& status);
void RegisterServe(CLI::App& app, int& status);
void RegisterSimulate(CLI::App& app, int& status);
void RegisterTop(CLI::App& app, int& status);
void RegisterRules(CLI::App& app, int& status);
void RegisterExplain(CLI::App& app, int& status);

}  // namespace weir::app
