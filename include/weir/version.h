// The version of these headers. CMake and pkg-config read it from here, so it is written once.
#pragma once

#include <string_view>

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0

namespace weir {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace weir
