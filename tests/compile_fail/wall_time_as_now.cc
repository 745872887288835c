// The wall clock steps; a limiter's `now` comes from its own clock.
// expect: (cannot convert|no known conversion|no matching|could not convert)
#include <chrono>

#include "weir/limiter.h"

void Try(weir::Limiter& limiter, std::chrono::system_clock::time_point wall) {
  (void)limiter.Check("key", limiter.Now());
  (void)wall;
#ifdef MISUSE
  (void)limiter.Check("key", wall);
#endif
}
