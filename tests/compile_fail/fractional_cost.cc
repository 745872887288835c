// Units are whole.
// expect: (cannot convert|no known conversion|no matching|could not convert)
#include "weir/limiter.h"

void Try(weir::Limiter& limiter) {
  (void)limiter.Check("key", 2);
#ifdef MISUSE
  (void)limiter.Check("key", 2.5);
#endif
}
