// The table's compare with AVX-512: one load and compare to a line.
#if defined(__x86_64__)

// GCC 12 takes the deliberately undefined operands in its own header for mistakes (its bug 105593).
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

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

#define WEIR_ISA avx512
#define WEIR_TARGET [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2,prfchw")]]

#include "store/memory/eight_avx512.h"
#include "store/memory/single_avx512.h"

namespace weir::store::avx512 {

namespace {

// A vector load reads each aligned word of it in one piece on every x86 processor with AVX-512,
// which is all that is asked here: a match is only a hint, and the word is loaded again before it
// is believed.
struct Matcher {
  // By its instructions: a compiler that sees a vector of 64 bytes keeps a frame pointer, in case
  // it should want to put it on the stack, and ends with vzeroupper, which the sixteen upper
  // registers do not need. Volatile: other threads change lines.
  template <class Layout, uint64_t kMask>
  [[gnu::always_inline]] WEIR_TARGET static unsigned Match(const Line& line,
                                                           uint64_t wanted) noexcept {
    static constexpr uint64_t kCompared = kMask;
    unsigned equal = 0;
    asm volatile(
        "vpbroadcastq %[wanted], %%zmm16\n\t"
        "vpxorq %[line], %%zmm16, %%zmm16\n\t"
        "vptestnmq %[compared]%{1to8%}, %%zmm16, %%k1\n\t"
        "kmovb %%k1, %[equal]"
        : [equal] "=r"(equal)
        : [wanted] "r"(wanted), [line] "m"(line), [compared] "m"(kCompared)
        : "xmm16", "k1");
    // Wide slots: ids are the even words; bits 0, 2, 4, 6 become 0, 1, 2, 3.
    return Layout::kSlots == 8 ? equal : _pext_u32(equal, 0x55);
  }

  [[gnu::always_inline]] WEIR_TARGET static bool HasNul(const base::UsualKey& key) noexcept {
    return _mm_testn_epi8_mask(key.Least(), key.Least()) != 0;
  }
};

}  // namespace

}  // namespace weir::store::avx512

#include "store/memory/engine_batch.h"

#endif  // __x86_64__
