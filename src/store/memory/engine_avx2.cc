// The table's compare with AVX2: two loads and compares to a line.
#if defined(__x86_64__)

#include <immintrin.h>

#include <bit>

#include "algorithm/fixed_window.h"
#include "algorithm/gcra.h"
#include "algorithm/min_gap.h"
#include "algorithm/sliding_window.h"
#include "store/memory/engine.h"

#define WEIR_ISA avx2
#define WEIR_TARGET [[gnu::target("avx2,bmi,bmi2,prfchw")]]

namespace weir::store::avx2 {

namespace {

// A vector load reads each aligned word of it in one piece on every x86 processor with AVX2, which
// is all that is asked here: a match is only a hint, and the word is loaded again before it is
// believed.
struct Matcher {
  WEIR_TARGET static unsigned Words(const Line& line, uint64_t mask, uint64_t identity) noexcept {
    const auto* const words = reinterpret_cast<const __m256i*>(&line);
    // By way of a vector register: a broadcast from memory would cost a store and a load.
    const __m256i wanted =
        _mm256_broadcastq_epi64(_mm_cvtsi64_si128(static_cast<int64_t>(identity)));
    const __m256i masks = _mm256_set1_epi64x(static_cast<int64_t>(mask));
    const __m256i low = _mm256_and_si256(_mm256_load_si256(words), masks);
    const __m256i high = _mm256_and_si256(_mm256_load_si256(words + 1), masks);
    const int low_bits = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(low, wanted)));
    const int high_bits = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(high, wanted)));
    return static_cast<unsigned>(low_bits | high_bits << 4);
  }

  WEIR_TARGET static unsigned Compact(const Line& line, uint64_t identity) noexcept {
    return Words(line, CompactLayout::kIdentityMask, identity);
  }

  // Ids are the even words; bits 0, 2, 4, 6 become 0, 1, 2, 3.
  WEIR_TARGET static unsigned Wide(const Line& line, uint64_t identity) noexcept {
    return _pext_u32(Words(line, WideLayout::kIdentityMask, identity), 0x55);
  }
};

}  // namespace

}  // namespace weir::store::avx2

#include "store/memory/engine_hot.h"

#endif  // __x86_64__
