// The table's compare with AVX2: two loads and compares to a line.
#if defined(__x86_64__)

#include <immintrin.h>

#include <bit>

#include "algorithm/fixed_window.h"
#include "algorithm/gcra.h"
#include "algorithm/gcra_queue.h"
#include "algorithm/min_gap.h"
#include "algorithm/sliding_window.h"
#include "store/memory/attempt.h"
#include "store/memory/engine.h"
#include "store/memory/give_back.h"
#include "store/memory/lease_engine.h"
#include "store/memory/no_vectors.h"

#define WEIR_ISA avx2
#define WEIR_TARGET [[gnu::target("avx2,bmi,bmi2,prfchw")]]

namespace weir::store::avx2 {

namespace {

// A vector load reads each aligned word of it in one piece on every x86 processor with AVX2, which
// is all that is asked here: a match is only a hint, and the word is loaded again before it is
// believed.
struct Matcher {
  template <class Layout, uint64_t kMask>
  [[gnu::always_inline]] WEIR_TARGET static unsigned Match(const Line& line,
                                                           uint64_t wanted) noexcept {
    return Layout::kSlots == 8 ? HighHalves<kMask>(line, wanted) : EvenWords(line, kMask, wanted);
  }

  [[gnu::always_inline]] WEIR_TARGET static bool HasNul(const base::UsualKey& key) noexcept {
    return key.HasNul();
  }

 private:
  // Puts in order what was picked from two vectors within 128 bits of each.
  static constexpr int kMiddleSwapped = 0xd8;

  // All that is wanted of a compact word is in its upper half, below the top bit, and the eight
  // upper halves of a line fit one vector.
  template <uint64_t kMask>
  [[gnu::always_inline]] WEIR_TARGET static unsigned HighHalves(const Line& line,
                                                                uint64_t wanted) noexcept {
    const auto* const words = reinterpret_cast<const float*>(&line);
    constexpr int kOddOfBoth = 0xdd;
    const __m256 mixed =
        _mm256_shuffle_ps(_mm256_load_ps(words), _mm256_load_ps(words + 8), kOddOfBoth);
    const __m256i halves = _mm256_permute4x64_epi64(_mm256_castps_si256(mixed), kMiddleSwapped);
    // By shifts, which need no constant in a register.
    constexpr int kBelow = std::countr_zero(kMask);
    const __m256i bits = _mm256_srli_epi32(_mm256_slli_epi32(halves, 1), kBelow - 32 + 1);
    const __m256i all = _mm256_set1_epi32(static_cast<int32_t>(wanted >> kBelow));
    const __m256i equal = _mm256_cmpeq_epi32(bits, all);
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(equal)));
  }

  // Ids are the even words of a line.
  [[gnu::always_inline]] WEIR_TARGET static unsigned EvenWords(const Line& line, uint64_t mask,
                                                               uint64_t wanted) noexcept {
    const auto* const words = reinterpret_cast<const __m256i*>(&line);
    const __m256i mixed =
        _mm256_unpacklo_epi64(_mm256_load_si256(words), _mm256_load_si256(words + 1));
    const __m256i ids = _mm256_permute4x64_epi64(mixed, kMiddleSwapped);
    const __m256i masked = _mm256_and_si256(ids, _mm256_set1_epi64x(static_cast<int64_t>(mask)));
    const __m256i all = _mm256_set1_epi64x(static_cast<int64_t>(wanted));
    const __m256i equal = _mm256_cmpeq_epi64(masked, all);
    return static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(equal)));
  }
};

template <class Layout, class Algo>
using Eight = NoEights<Layout, Algo>;

template <class Layout, class Algo>
using Single = NoSingle<Layout, Algo>;

}  // namespace

}  // namespace weir::store::avx2

#include "store/memory/engine_batch.h"

#endif  // __x86_64__
