// Two copies of a limiter would be two limits.
// expect: deleted
#include <utility>

#include "weir/limiter.h"

void Try(weir::Limiter& limiter) {
  weir::Limiter moved = std::move(limiter);
#ifdef MISUSE
  weir::Limiter copied = moved;
#endif
}
