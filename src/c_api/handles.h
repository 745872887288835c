// What the opaque pointers of weir.h point at.
#pragma once

#include <memory>

#include "weir/limiter.h"
#include "weir/store.h"
#include "weir/weir.h"

// NOLINTBEGIN(readability-identifier-naming): declared in C.
struct weir_store {
  std::shared_ptr<weir::MemoryStore> store;  // its limiters hold it too
};

struct weir_limiter {
  weir::Limiter limiter;
};
// NOLINTEND(readability-identifier-naming)
