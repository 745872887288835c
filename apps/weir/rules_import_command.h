// weir rules import.
#pragma once

#include "apps/weir/commands.h"

namespace weir::app {

// Its exit status if something could not be carried over.
inline constexpr int kDropped = 3;

// Adds itself below `weir rules`. REQUIRES: as of every command.
void RegisterRulesImport(CLI::App& rules, int& status);

}  // namespace weir::app
