// Nor is it any other clock's time, monotonic though that may be.
// expect: (cannot convert|no known conversion|no matching|could not convert)
#include <chrono>

#include "weir/limiter.h"

void Try(weir::Limiter& limiter, std::chrono::steady_clock::time_point steady) {
  (void)limiter.Check("key", limiter.Now());
  (void)steady;
#ifdef MISUSE
  (void)limiter.Check("key", steady);
#endif
}
