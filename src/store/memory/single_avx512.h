// One key, decided in vector registers, as far as a bucket in 8-byte slots goes.
//
// Not for the sake of the arithmetic. A decision waits for its line from memory, and all that
// depends on the line waits with it in the processor's queues. The queues of whole numbers are
// short, and where two hyperthreads share them, half as long: once they are full, the next decision
// cannot even ask for its line. Vectors have queues of their own (docs/decisions/0040).
//
// Included once by engine_avx512.cc.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstddef>
#include <cstdint>

#include "weir/decision.h"

#include "algorithm/gcra.h"
#include "algorithm/plan.h"
#include "store/memory/answer.h"
#include "store/memory/attempt.h"
#include "store/memory/lease.h"
#include "store/memory/line.h"

namespace weir::store::avx512 {

namespace {

template <class Layout, class Algo>
struct Single {
  static constexpr bool kDecides = false;
};

template <>
struct Single<CompactLayout, algorithm::Gcra<algorithm::CompactTicks>> {
  static constexpr bool kDecides = true;
  using Layout = CompactLayout;
  using Algo = algorithm::Gcra<algorithm::CompactTicks>;
  using Plan = algorithm::Plan;

  // As Home::Decide, answer by answer. The words of a line are each read in one piece, so identity
  // and state belong together, and the word that is swapped is the one that was looked at.
  [[gnu::always_inline]] WEIR_TARGET static AtHome Decide(const LeaseMarks& marks, const Plan& plan,
                                                          Line& line, uint64_t wanted,
                                                          Algo::Now now, uint64_t cost,
                                                          Decision& out) noexcept {
    constexpr int kUnused = 64 - Layout::kPayloadBits;
    __m128i low;
    const unsigned matches = Look(line, wanted, low);
    if (matches == 0) [[unlikely]] {
      return AtHome::kElsewhere;
    }
    const __m128i tick = One(now.tick);
    const __m128i paid = One(cost * plan.emission);
    const __m128i tolerance = _mm_loadu_si64(&plan.tolerance);
    const __m128i ahead =
        _mm_srai_epi64(_mm_slli_epi64(_mm_sub_epi64(low, tick), kUnused), kUnused);
    const __m128i after = _mm_add_epi64(_mm_max_epi64(ahead, _mm_setzero_si128()), paid);
    if ((_mm_cmpgt_epi64_mask(after, tolerance) & 1U) != 0) {
      AnswerDenied(plan, ahead, _mm_sub_epi64(after, tolerance), now, out);
      return marks.Quiet(&line.words[0]) ? AtHome::kDenied : AtHome::kElsewhere;
    }
    // All of the answer before the swap: see Home::Decide.
    _mm_storeu_si64(&out.reset_after, ToNs(after));
    const __m128d rest = _mm_cvtepi64_pd(_mm_sub_epi64(tolerance, after));
    const __m128d units = _mm_mul_sd(rest, _mm_load_sd(&plan.per_unit));  // Eight::LimitAndRest
    _mm_storeu_si32(&out.remaining, _mm_cvttpd_epu32(units));
    out.retry_after = Duration::zero();
    Label(Outcome::kAllowed, Basis::kStore, out);
    const __m128i value = _mm_xor_si128(low, One(wanted));
    const __m128i desired = Merged(_mm_add_epi64(tick, after), value);
    const Current current{&line.words[std::countr_zero(matches)], Word(value), true};
    return Replace(current, Word(desired)) ? AtHome::kAllowed : AtHome::kLost;
  }

 private:
  // A bit per slot that is wanted, and what the first of them has besides that: the payload, and
  // the aux bit. The registers are named: a compiler that sees a vector of 64 bytes keeps a frame
  // pointer for it, and the sixteen upper ones need no vzeroupper.
  [[gnu::always_inline]] WEIR_TARGET static unsigned Look(const Line& line, uint64_t wanted,
                                                          __m128i& low) noexcept {
    static constexpr uint64_t kCompared = Layout::kWantedMask;
    unsigned equal = 0;
    register __m128i first asm("xmm17");
    asm volatile(
        "vpbroadcastq %[wanted], %%zmm16\n\t"
        "vpxorq %[line], %%zmm16, %%zmm16\n\t"
        "vptestnmq %[compared]%{1to8%}, %%zmm16, %%k1\n\t"
        "kmovb %%k1, %[equal]\n\t"
        "vpcompressq %%zmm16, %%zmm17%{%%k1%}%{z%}"
        : [equal] "=r"(equal), "=v"(first)
        : [wanted] "r"(wanted), [line] "m"(line), [compared] "m"(kCompared)
        : "xmm16", "k1");
    low = first;
    return equal;
  }

  // REQUIRES: Answer::Begin.
  [[gnu::always_inline]] WEIR_TARGET static void AnswerDenied(const Plan& plan, __m128i ahead,
                                                              __m128i short_by, Algo::Now now,
                                                              Decision& out) noexcept {
    static_assert(offsetof(Decision, retry_after) == 0 && offsetof(Decision, reset_after) == 8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&out), ToNs(_mm_unpacklo_epi64(short_by, ahead)));
    // Where one unit does not fit nothing is left, and most ask for one.
    if (out.charged != 1) [[unlikely]] {
      out.remaining = static_cast<uint32_t>(Algo::Available(plan, {Word(ahead)}, now));
    }
    out.charged = 0;
    Label(Outcome::kDenied, Basis::kStore, out);
  }

  [[gnu::always_inline]] WEIR_TARGET static __m128i One(uint64_t word) noexcept {
    return _mm_cvtsi64_si128(static_cast<int64_t>(word));
  }

  [[gnu::always_inline]] WEIR_TARGET static uint64_t Word(__m128i one) noexcept {
    return static_cast<uint64_t>(_mm_cvtsi128_si64(one));
  }

  // These two by their instructions: a compiler that knows the constant multiplies by shifts and
  // subtractions, and makes a mask out of a register.
  [[gnu::always_inline]] WEIR_TARGET static __m128i ToNs(__m128i ticks) noexcept {
    static constexpr uint64_t kTickNs = algorithm::CompactTicks::kTickNs;
    __m128i ns;
    asm("vpmullq %[tick_ns]%{1to2%}, %[ticks], %[ns]"
        : [ns] "=v"(ns)
        : [ticks] "v"(ticks), [tick_ns] "m"(kTickNs));
    return ns;
  }

  // The payload of the first, the rest of the second.
  [[gnu::always_inline]] WEIR_TARGET static __m128i Merged(__m128i payload, __m128i rest) noexcept {
    static constexpr uint64_t kPayload = Layout::kPayloadMask;
    asm("vpternlogq $0xe4, %[mask]%{1to2%}, %[rest], %[payload]"
        : [payload] "+v"(payload)
        : [rest] "v"(rest), [mask] "m"(kPayload));
    return payload;
  }
};

}  // namespace

}  // namespace weir::store::avx512
