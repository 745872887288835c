// Files that a command leaves behind.
#pragma once

#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::app {

// Replaces `path` by `content`, whole or not at all: it is written beside it and then renamed. What
// is not a regular file (a pipe, a terminal) is written to as it is.
[[nodiscard]] Result<void> WriteFile(const std::string& path, std::string_view content);

}  // namespace weir::app
