// Standard output, written whole.
#pragma once

#include <cstdio>
#include <string_view>

#include "apps/weir/commands.h"

namespace weir::app {

// kFailure: it could not be written, for example because nobody reads it any more.
inline int Print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return written && std::fflush(stdout) == 0 ? kSuccess : kFailure;
}

}  // namespace weir::app
