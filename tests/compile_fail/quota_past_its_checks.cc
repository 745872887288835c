// Fields become a quota through Create, which checks them, and in no other way.
// expect: private
#include "weir/quota.h"

void Try(const weir::QuotaSpec& spec) {
  auto quota = weir::Quota::Create(spec);
  (void)quota;
#ifdef MISUSE
  weir::Quota unchecked(spec);
#endif
}
