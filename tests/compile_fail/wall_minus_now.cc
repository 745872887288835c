// The two faces of a clock do not mix.
// expect: (no match for|invalid operands)
#include "weir/time.h"

void Try(const weir::Clock& clock) {
  (void)(clock.Now() - clock.Now());
#ifdef MISUSE
  (void)(clock.WallNow() - clock.Now());
#endif
}
