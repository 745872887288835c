// The table's compare with AVX-512: one load and compare to a line.
#if defined(__x86_64__)

#include <immintrin.h>

#include <bit>

#include "algorithm/fixed_window.h"
#include "algorithm/gcra.h"
#include "algorithm/min_gap.h"
#include "algorithm/sliding_window.h"
#include "store/memory/engine.h"

#define WEIR_ISA avx512
#define WEIR_TARGET [[gnu::target("avx512f,avx512dq,avx512vl,bmi,bmi2,prfchw")]]

namespace weir::store::avx512 {

namespace {

// A vector load reads each aligned word of it in one piece on every x86 processor with AVX-512,
// which is all that is asked here: a match is only a hint, and the word is loaded again before it
// is believed.
struct Matcher {
  WEIR_TARGET static unsigned Words(const Line& line, uint64_t mask, uint64_t identity) noexcept {
    const __m512i words = _mm512_load_si512(&line);
    const __m512i wanted = _mm512_set1_epi64(static_cast<int64_t>(identity));
    const __m512i masks = _mm512_set1_epi64(static_cast<int64_t>(mask));
    return _mm512_cmpeq_epi64_mask(_mm512_and_si512(words, masks), wanted);
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

}  // namespace weir::store::avx512

#include "store/memory/engine_hot.h"

#endif  // __x86_64__
