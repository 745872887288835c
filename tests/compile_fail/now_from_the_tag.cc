// A Timestamp comes from a Clock that somebody injected, never from the tag type.
// expect: (not a member|no member)
#include "weir/time.h"

void Try(const weir::Clock& clock) {
  (void)clock.Now();
#ifdef MISUSE
  (void)weir::LimiterClock::now();
#endif
}
