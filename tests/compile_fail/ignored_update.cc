// A change of quota can fail, also when it returns no value.
// expect: nodiscard
#include "weir/limiter.h"

void Try(weir::Limiter& limiter, const weir::Quota& quota) {
  if (!limiter.Update(quota)) {
    return;
  }
#ifdef MISUSE
  limiter.Update(quota);
#endif
}
