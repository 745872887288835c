// In place of dispatch.cc in the stress tests: delays are injected into the plain engine only.
#include "store/memory/shared_state.h"

namespace weir::store {

namespace scalar {
const EngineOps& Ops(const algorithm::Plan& plan) noexcept;
}  // namespace scalar

bool HasSimd(Simd simd) noexcept {
  return simd == Simd::kAuto || simd == Simd::kScalar;
}

Simd BestSimd() noexcept {
  return Simd::kScalar;
}

const EngineOps& OpsFor(const algorithm::Plan& plan, Simd) noexcept {
  return scalar::Ops(plan);
}

}  // namespace weir::store
