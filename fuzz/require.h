// What must hold whatever the input is.
#pragma once

#include <cstdlib>

namespace weir::fuzz {

inline void Require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

}  // namespace weir::fuzz
