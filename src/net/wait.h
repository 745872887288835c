// Waiting for other threads, now and then at the end of things.
#pragma once

#include <functional>

#include "weir/time.h"

namespace weir::net {

// Looks every few milliseconds. False: `most` has passed.
bool WaitUntil(const std::function<bool()>& condition, Duration most);

}  // namespace weir::net
