// Which of the compiled engines runs on this processor.
#include "store/memory/shared_state.h"

namespace weir::store {

namespace scalar {
const EngineOps& Ops(const algorithm::Plan& plan) noexcept;
}  // namespace scalar

#if defined(__x86_64__)
namespace avx2 {
const EngineOps& Ops(const algorithm::Plan& plan) noexcept;
}  // namespace avx2

namespace avx512 {
const EngineOps& Ops(const algorithm::Plan& plan) noexcept;
}  // namespace avx512
#endif

#if defined(__SANITIZE_THREAD__)
#define WEIR_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_THREAD_SANITIZER 1
#endif
#endif

bool HasSimd(Simd simd) noexcept {
  switch (simd) {
    case Simd::kAuto:
    case Simd::kScalar:
      return true;
    case Simd::kAvx2:
#if defined(__x86_64__) && !defined(WEIR_THREAD_SANITIZER)
      return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
             __builtin_cpu_supports("bmi2") != 0;
#else
      return false;
#endif
    case Simd::kAvx512:
#if defined(__x86_64__) && !defined(WEIR_THREAD_SANITIZER)
      return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
             __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
             HasSimd(Simd::kAvx2);
#else
      return false;
#endif
  }
  return false;
}

Simd BestSimd() noexcept {
  if (HasSimd(Simd::kAvx512)) {
    return Simd::kAvx512;
  }
  return HasSimd(Simd::kAvx2) ? Simd::kAvx2 : Simd::kScalar;
}

const EngineOps& OpsFor(const algorithm::Plan& plan, Simd simd) noexcept {
#if defined(__x86_64__)
  if (simd == Simd::kAvx512) {
    return avx512::Ops(plan);
  }
  if (simd == Simd::kAvx2) {
    return avx2::Ops(plan);
  }
#endif
  (void)simd;
  return scalar::Ops(plan);
}

}  // namespace weir::store
