// Eight keys at once: hashed, found and answered in vectors of eight words, as far as a bucket in
// 8-byte slots goes. Only the swaps are made one by one.
//
// Included once by engine_avx512.cc. What is not usual is left to the code for one key: a key of
// another length, one that is not on its home line, a lost race, units that may be out on lease.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/decision.h"

#include "algorithm/gcra.h"
#include "algorithm/plan.h"
#include "base/key_hash.h"
#include "store/memory/lease.h"
#include "store/memory/line.h"
#include "store/memory/table.h"

namespace weir::store::avx512 {

namespace {

// What is the same for every kind of state.
struct EightKeys {
  static constexpr bool kHashes = true;
  static constexpr size_t kKeys = 8;

  // Hashes the keys and finds their home lines. False: one of them is not usual, and nothing is
  // written. REQUIRES: fewer than 2^32 homes.
  [[gnu::noinline]] WEIR_TARGET static bool Hash(const std::string_view* keys,
                                                 const base::HashSecret& secret, uint64_t salt,
                                                 const Table::Homes& homes, uint64_t* hashes,
                                                 Line** lines) noexcept {
    const __m512i lengths = Lengths(keys);
    const __mmask8 unusual =
        _mm512_cmpgt_epu64_mask(_mm512_sub_epi64(lengths, All(base::UsualKey::kBytesMin)),
                                All(base::UsualKey::kBytesMax - base::UsualKey::kBytesMin));
    if (unusual != 0) [[unlikely]] {
      return false;
    }
    // The even keys in one vector and the odd ones in another, so that the low and the high words
    // of all eight come out in order.
    const __m512i even_heads = Gather(Head(keys[0]), Head(keys[2]), Head(keys[4]), Head(keys[6]));
    const __m512i odd_heads = Gather(Head(keys[1]), Head(keys[3]), Head(keys[5]), Head(keys[7]));
    const __m512i even_tails = Gather(Tail(keys[0]), Tail(keys[2]), Tail(keys[4]), Tail(keys[6]));
    const __m512i odd_tails = Gather(Tail(keys[1]), Tail(keys[3]), Tail(keys[5]), Tail(keys[7]));
    const __m512i least = _mm512_min_epu8(_mm512_min_epu8(even_heads, odd_heads),
                                          _mm512_min_epu8(even_tails, odd_tails));
    if (_mm512_testn_epi8_mask(least, least) != 0) [[unlikely]] {
      return false;
    }
    const __m512i first = FoldPairs(even_heads, odd_heads, secret.bytes);
    const __m512i second = FoldPairs(even_tails, odd_tails, secret.bytes + 16);
    const __m512i key_hash = _mm512_add_epi64(_mm512_add_epi64(lengths, first), second);
    const __m512i hash = MulFold(key_hash, All(salt));
    const __m512i home = HighOfProduct(hash, All(homes.count));
    const __m512i line = _mm512_add_epi64(_mm512_slli_epi64(home, std::countr_zero(sizeof(Line))),
                                          All(reinterpret_cast<uintptr_t>(homes.lines)));
    _mm512_store_si512(hashes, hash);
    _mm512_store_si512(lines, line);
    return true;
  }

 protected:
  [[gnu::always_inline]] WEIR_TARGET static __m512i All(uint64_t value) noexcept {
    return _mm512_set1_epi64(static_cast<int64_t>(value));
  }

  [[gnu::always_inline]] WEIR_TARGET static __m128i Load(const void* at) noexcept {
    return _mm_loadu_si128(static_cast<const __m128i*>(at));
  }
  [[gnu::always_inline]] WEIR_TARGET static __m128i Head(std::string_view key) noexcept {
    return Load(key.data());
  }
  [[gnu::always_inline]] WEIR_TARGET static __m128i Tail(std::string_view key) noexcept {
    return Load(key.data() + key.size() - 16);
  }

  [[gnu::always_inline]] WEIR_TARGET static __m512i Gather(__m128i a, __m128i b, __m128i c,
                                                           __m128i d) noexcept {
    __m512i all = _mm512_castsi128_si512(a);
    all = _mm512_inserti64x2(all, b, 1);
    all = _mm512_inserti64x2(all, c, 2);
    return _mm512_inserti64x2(all, d, 3);
  }

  // The sizes, picked from the views as they lie in memory.
  [[gnu::always_inline]] WEIR_TARGET static __m512i Lengths(const std::string_view* keys) noexcept {
    static_assert(sizeof(std::string_view) == 16);
#if defined(_LIBCPP_VERSION)
    constexpr int64_t kAt = 1;
#else
    constexpr int64_t kAt = 0;
#endif
    const __m512i picked =
        _mm512_setr_epi64(kAt, kAt + 2, kAt + 4, kAt + 6, kAt + 8, kAt + 10, kAt + 12, kAt + 14);
    return _mm512_permutex2var_epi64(_mm512_loadu_si512(keys), picked,
                                     _mm512_loadu_si512(keys + 4));
  }

  // base::MulFold.
  [[gnu::always_inline]] WEIR_TARGET static __m512i MulFold(__m512i a, __m512i b) noexcept {
    const __m512i low_half = All(0xffffffff);
    const __m512i a_high = _mm512_srli_epi64(a, 32);
    const __m512i b_high = _mm512_srli_epi64(b, 32);
    const __m512i low_low = _mm512_mul_epu32(a, b);
    const __m512i high_low = _mm512_mul_epu32(a_high, b);
    const __m512i low_high = _mm512_mul_epu32(a, b_high);
    const __m512i high_high = _mm512_mul_epu32(a_high, b_high);
    const __m512i middle = _mm512_add_epi64(high_low, _mm512_srli_epi64(low_low, 32));
    const __m512i carry = _mm512_add_epi64(low_high, _mm512_and_si512(middle, low_half));
    const __m512i high = _mm512_add_epi64(
        _mm512_add_epi64(high_high, _mm512_srli_epi64(middle, 32)), _mm512_srli_epi64(carry, 32));
    // The low word is carry's lower half above low_low's, and is folded on the high one.
    const __m512i low = _mm512_mask_blend_epi32(0xaaaa, low_low, _mm512_slli_epi64(carry, 32));
    return _mm512_xor_si512(high, low);
  }

  // base::MulHigh. REQUIRES: b < 2^32.
  [[gnu::always_inline]] WEIR_TARGET static __m512i HighOfProduct(__m512i a, __m512i b) noexcept {
    const __m512i low = _mm512_mul_epu32(a, b);
    const __m512i high = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), b);
    return _mm512_srli_epi64(_mm512_add_epi64(high, _mm512_srli_epi64(low, 32)), 32);
  }

  // UsualKey::Fold of each of the eight.
  [[gnu::always_inline]] WEIR_TARGET static __m512i FoldPairs(
      __m512i even, __m512i odd, const unsigned char* secret) noexcept {
    const __m512i mask = _mm512_broadcast_i64x2(Load(secret));
    const __m512i even_masked = _mm512_xor_si512(even, mask);
    const __m512i odd_masked = _mm512_xor_si512(odd, mask);
    return MulFold(_mm512_unpacklo_epi64(even_masked, odd_masked),
                   _mm512_unpackhi_epi64(even_masked, odd_masked));
  }
};

// Other states are hashed in eights and decided one by one.
template <class Layout, class Algo>
struct Eight : EightKeys {
  static constexpr bool kDecides = false;
  struct Question {};
  struct Found {};
};

template <>
struct Eight<CompactLayout, algorithm::Gcra<algorithm::CompactTicks>> : EightKeys {
  static constexpr bool kDecides = true;
  using Layout = CompactLayout;

  // What the keys of a batch have in common.
  struct Question {
    uint64_t tick;  // now
    uint64_t paid;  // the cost, in ticks
    uint64_t tolerance;
    uint64_t generation_mark;
    double per_unit;  // units to a tick of what is left, rounded up
    uint32_t limit;
    uint32_t cost;
  };

  // REQUIRES: a bucket in compact slots, 0 < cost <= burst.
  [[gnu::always_inline]] WEIR_TARGET static Question Ask(const algorithm::Plan& plan, uint64_t tick,
                                                         uint64_t cost) noexcept {
    return {.tick = tick,
            .paid = cost * plan.emission,
            .tolerance = plan.tolerance,
            .generation_mark = plan.generation_mark,
            .per_unit = plan.per_unit,
            .limit = plan.burst,
            .cost = static_cast<uint32_t>(cost)};
  }

  // What was found of eight keys.
  struct alignas(64) Found {
    uint64_t wanted[kKeys];
    uint64_t values[kKeys];               // the words that are wanted, as they were read
    std::atomic<uint64_t>* words[kKeys];  // where they are
  };

  // Looks for the keys on their home lines. The lines that come next are fetched for those that are
  // not there, whose words are then any.
  [[gnu::noinline]] WEIR_TARGET static void Find(const Question& question, const uint64_t* hashes,
                                                 Line* const* lines, Found& found) noexcept {
    const __m512i hash = _mm512_load_si512(hashes);
    const __m512i tag = _mm512_slli_epi64(
        _mm512_and_si512(hash, All(base::LowBits(Layout::kTagBits))), Layout::kPayloadBits + 2);
    _mm512_store_si512(found.wanted, _mm512_or_si512(tag, All(question.generation_mark)));
    asm volatile("" : "+m"(found.wanted));  // one by one from there, not picked from the vector
#pragma GCC unroll 8
    for (size_t i = 0; i < kKeys; ++i) {
      Line& line = *lines[i];
      const __m512i differs = _mm512_xor_si512(_mm512_load_si512(&line), All(found.wanted[i]));
      unsigned match = _mm512_testn_epi64_mask(differs, All(Layout::kWantedMask));
      if (match == 0) [[unlikely]] {
        __builtin_prefetch(&line + 1, 0, 3);
        match = 1;
      }
      std::atomic<uint64_t>* word = &line.words[std::countr_zero(match)];
      uint64_t value = word->load(std::memory_order_acquire);
      base::WorkOut(word);
      base::WorkOut(value);
      found.words[i] = word;
      found.values[i] = value;
    }
  }

  // A bit for each key for which nothing has happened, and whose answer is still to be written.
  struct Undone {
    uint32_t absent;  // not on its home line, as far as was seen
    uint32_t lost;    // its word has changed since: somebody else was faster, or this batch itself
    uint32_t held;    // it does not fit, but somebody may hold units of it on lease
    uint32_t denied;  // not undone: these are answered
  };

  // Charges those that were found and fit, and answers all that were found.
  [[gnu::noinline]] WEIR_TARGET static Undone Decide(const Question& question, const Found& found,
                                                     const LeaseMarks& marks,
                                                     Decision* out) noexcept {
    constexpr uint32_t kAll = 0xff;
    constexpr unsigned kUnused = 64 - Layout::kPayloadBits;
    const __m512i value = _mm512_load_si512(found.values);
    const __m512i wanted = _mm512_load_si512(found.wanted);
    const __m512i low = _mm512_xor_si512(value, wanted);
    const uint32_t present = _mm512_testn_epi64_mask(low, All(Layout::kWantedMask)) &
                             _mm512_test_epi64_mask(wanted, All(Layout::kIdentityMask));
    const __m512i tick = All(question.tick);
    const __m512i ahead = _mm512_slli_epi64(_mm512_sub_epi64(low, tick), kUnused);
    const __m512i debt =
        _mm512_srli_epi64(_mm512_max_epi64(ahead, _mm512_setzero_si512()), kUnused);
    const __m512i after = _mm512_add_epi64(debt, All(question.paid));
    const uint32_t fits = _mm512_cmple_epu64_mask(after, All(question.tolerance));
    constexpr int kSelect = 0xca;  // the first chooses between the second and the third
    const __m512i next = _mm512_ternarylogic_epi64(All(Layout::kPayloadMask),
                                                   _mm512_add_epi64(tick, after), low, kSelect);
    alignas(64) uint64_t desired[kKeys];
    _mm512_store_si512(desired, _mm512_xor_si512(next, wanted));
    asm volatile("" : "+m"(desired));  // one by one from there, not picked from the vector
    if ((fits & present) == kAll) [[likely]] {
      AnswerAllowed(question, after, out);
      uint32_t lost = 0;
#pragma GCC unroll 8
      for (size_t i = 0; i < kKeys; ++i) {
        if (!Swap(*found.words[i], found.values[i], desired[i])) [[unlikely]] {
          lost |= uint32_t{1} << i;
        }
      }
      return {.absent = 0, .lost = lost, .held = 0, .denied = 0};
    }
    AnswerEither(question, debt, after, static_cast<__mmask8>(~fits), out);
    uint32_t lost = 0;
    for (uint32_t rest = fits & present; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<unsigned>(std::countr_zero(rest));
      lost |= Swap(*found.words[i], found.values[i], desired[i]) ? 0 : uint32_t{1} << i;
    }
    const uint32_t refused = present & ~fits;
    uint32_t held = 0;
    for (uint32_t rest = refused; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<unsigned>(std::countr_zero(rest));
      held |= marks.Quiet(found.words[i]) ? 0 : uint32_t{1} << i;
    }
    return {.absent = kAll & ~present, .lost = lost, .held = held, .denied = refused & ~held};
  }

 private:
  // Answers, eight at a time. A vector holds two of them: until when to wait, when it is as new,
  // limit and what is left, what was charged and how it went.
  static_assert(offsetof(Decision, retry_after) == 0 && offsetof(Decision, reset_after) == 8 &&
                offsetof(Decision, limit) == 16 && offsetof(Decision, remaining) == 20 &&
                offsetof(Decision, charged) == 24 && offsetof(Decision, outcome) == 28 &&
                sizeof(Decision) == 32);
  static_assert(static_cast<int>(Outcome::kAllowed) == 0 && static_cast<int>(Basis::kStore) == 0 &&
                static_cast<int>(Problem::kNone) == 0);

  [[gnu::always_inline]] WEIR_TARGET static __m512i ToNs(__m512i ticks) noexcept {
    return _mm512_mullo_epi64(ticks, All(algorithm::CompactTicks::kTickNs));
  }

  // The limit, and above it the units that are left when so many ticks are.
  //
  // n < 2^38 ticks are n / emission units. The factor is 1 / emission rounded up, too
  // large by less than 2^-51 of itself, so the product is never below a whole number that the
  // quotient reaches, and a quotient that is no whole number is below the next one by 2^-38 of
  // itself or more: cut off, the product is the quotient's floor.
  [[gnu::always_inline]] WEIR_TARGET static __m512i LimitAndRest(const Question& question,
                                                                 __m512i rest) noexcept {
    const __m512i units = _mm512_cvttpd_epu64(
        _mm512_mul_pd(_mm512_cvtepu64_pd(rest), _mm512_set1_pd(question.per_unit)));
    return _mm512_or_si512(_mm512_slli_epi64(units, 32), All(question.limit));
  }

  [[gnu::always_inline]] WEIR_TARGET static void AnswerAllowed(const Question& question,
                                                               __m512i after,
                                                               Decision* out) noexcept {
    const __m512i reset = ToNs(after);
    const __m512i limits = LimitAndRest(question, _mm512_sub_epi64(All(question.tolerance), after));
    const __m512i even = _mm512_unpacklo_epi64(reset, limits);
    const __m512i odd = _mm512_unpackhi_epi64(reset, limits);
    const __m512i charged = _mm512_maskz_set1_epi64(0x88, question.cost);
    StoreAllowed<0>(even, odd, charged, out);
    StoreAllowed<1>(even, odd, charged, out);
    StoreAllowed<2>(even, odd, charged, out);
    StoreAllowed<3>(even, odd, charged, out);
  }

  template <size_t kPair>
  [[gnu::always_inline]] WEIR_TARGET static void StoreAllowed(__m512i even, __m512i odd,
                                                              __m512i charged,
                                                              Decision* out) noexcept {
    constexpr int64_t kFrom = 2 * kPair;
    constexpr __mmask8 kVary = 0x66;
    const __m512i picked = _mm512_setr_epi64(0, kFrom, kFrom + 1, 0, 0, kFrom + 8, kFrom + 9, 0);
    const __m512i both = _mm512_maskz_permutex2var_epi64(kVary, even, picked, odd);
    _mm512_storeu_si512(out + 2 * kPair, _mm512_or_si512(both, charged));
  }

  // The same where those in `denied` do not fit, and keep their debt.
  [[gnu::always_inline]] WEIR_TARGET static void AnswerEither(const Question& question,
                                                              __m512i debt, __m512i after,
                                                              __mmask8 denied,
                                                              Decision* out) noexcept {
    const __m512i used = _mm512_mask_mov_epi64(after, denied, debt);
    const __m512i retry =
        _mm512_maskz_mov_epi64(denied, ToNs(_mm512_sub_epi64(after, All(question.tolerance))));
    const __m512i reset = ToNs(used);
    // A debt may be beyond the tolerance.
    const __m512i rest =
        _mm512_max_epi64(_mm512_sub_epi64(All(question.tolerance), used), _mm512_setzero_si512());
    const __m512i limits = LimitAndRest(question, rest);
    constexpr auto kDenied = static_cast<uint64_t>(Outcome::kDenied) << 32;
    const __m512i label = _mm512_mask_mov_epi64(All(question.cost), denied, All(kDenied));
    const __m512i even_front = _mm512_unpacklo_epi64(retry, reset);
    const __m512i odd_front = _mm512_unpackhi_epi64(retry, reset);
    const __m512i even_back = _mm512_unpacklo_epi64(limits, label);
    const __m512i odd_back = _mm512_unpackhi_epi64(limits, label);
    StoreEither<0>(even_front, even_back, odd_front, odd_back, out);
    StoreEither<1>(even_front, even_back, odd_front, odd_back, out);
    StoreEither<2>(even_front, even_back, odd_front, odd_back, out);
    StoreEither<3>(even_front, even_back, odd_front, odd_back, out);
  }

  template <size_t kPair>
  [[gnu::always_inline]] WEIR_TARGET static void StoreEither(__m512i even_front, __m512i even_back,
                                                             __m512i odd_front, __m512i odd_back,
                                                             Decision* out) noexcept {
    auto* const at = reinterpret_cast<__m128i*>(out + 2 * kPair);
    _mm_storeu_si128(at, _mm512_extracti64x2_epi64(even_front, kPair));
    _mm_storeu_si128(at + 1, _mm512_extracti64x2_epi64(even_back, kPair));
    _mm_storeu_si128(at + 2, _mm512_extracti64x2_epi64(odd_front, kPair));
    _mm_storeu_si128(at + 3, _mm512_extracti64x2_epi64(odd_back, kPair));
  }

  // The linearisation point of a charge; the orders are those of CompactLayout::Commit. Acquire
  // also covers the vector load before it, whose value this one confirms.
  [[gnu::always_inline]] static bool Swap(std::atomic<uint64_t>& word, uint64_t expected,
                                          uint64_t desired) noexcept {
    return word.compare_exchange_strong(expected, desired, std::memory_order_acq_rel,
                                        std::memory_order_relaxed);
  }
};

}  // namespace

}  // namespace weir::store::avx512
