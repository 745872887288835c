// There is no empty quota to fill in later.
// expect: no matching (function|constructor)
#include "weir/quota.h"

void Try() {
  auto quota = weir::Quota::Parse("100/min");
  (void)quota;
#ifdef MISUSE
  weir::Quota invalid;
#endif
}
