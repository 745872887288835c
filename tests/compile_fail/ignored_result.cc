// A Result must be looked at.
// expect: nodiscard
#include "weir/quota.h"

void Try() {
  auto quota = weir::Quota::Parse("100/min");
  (void)quota.ok();
#ifdef MISUSE
  weir::Quota::Parse("100/min");
#endif
}
