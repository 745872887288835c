// The sketch: one block of words for all quotas of a store, in which keys are counted that have no
// state of their own (algorithm/sketch_word.h says what a word holds).
//
// Quotas whose words are cut alike form a group, and each group has a part of the block to itself,
// so that what lasts for a month does not fill the lanes of what lasts for a second. The first
// group has all of it. A further one gets half of the largest part: that half is folded onto the
// other, lane by lane the later instant, so nothing that was charged is forgotten.
//
// A part may be cut while others charge it, which takes a pass over its words and happens when the
// first quota of a new length comes. Nobody waits for that: whoever finds the part being cut reads
// a key's word in both halves, goes by the later instant of each lane, as if the two had been
// folded already, and charges the lower one. All load the part, the word, and the part again before
// they trust the word, and once more after they have swapped it: a charge that came too late to be
// folded is then made again where it belongs, and counts twice if it was folded all the same. All
// of these are sequentially consistent, as is the folding: either it sees the charge, or the charge
// sees that the part is being cut.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "algorithm/sketch_plan.h"
#include "algorithm/sketch_word.h"
#include "base/key_hash.h"
#include "base/mapped_memory.h"
#include "base/mutex.h"
#include "store/memory/test_hooks.h"

namespace weir::store {

class Sketch {
 public:
  using Plan = algorithm::SketchPlan;

  static constexpr size_t kMinBytes = size_t{4} << 10;
  // What `decide` returns to leave the word as it is.
  static constexpr int64_t kNothing = INT64_MIN;

  // REQUIRES: bytes is a power of two, kMinBytes or more.
  Sketch(size_t bytes, base::MappedMemory::Pages pages) noexcept;

  [[nodiscard]] bool ok() const noexcept { return memory_.data() != nullptr; }
  [[nodiscard]] bool huge() const noexcept { return memory_.huge(); }
  [[nodiscard]] uint64_t word_count() const noexcept { return memory_.size() / sizeof(Word); }

  // The sketch's own hash of what `hash` is the table's hash of, with other bits than those that
  // choose a slot. Each plan of a quota has words of its own: an instant means another debt under
  // another plan.
  [[nodiscard]] static uint64_t HashOf(uint64_t hash, unsigned generation) noexcept {
    return base::MixHash(hash + uint64_t{generation} * kSalt, kSalt);
  }

  // Makes sure that the plan's group has a part. Before the plan is published. REQUIRES: Sweep has
  // seen this time, or the one just before.
  void AddGroup(const Plan& plan, uint64_t now_ns) noexcept;

  // Until when the key's debt reaches, in ticks; never too early. Before any instant if nothing was
  // charged where the key is counted, for as long as a charge may count.
  [[nodiscard]] int64_t Look(const Plan& plan, uint64_t hash, int64_t now_tick) const noexcept {
    return plan.lane_bits == algorithm::ShortLanes::kBits
               ? LookIn<algorithm::ShortLanes>(plan, hash, now_tick)
               : LookIn<algorithm::LongLanes>(plan, hash, now_tick);
  }

  // Calls decide(estimate) until what it returns, the instant up to which the key now owes, could
  // be written, or was kNothing.
  template <class Decide>
  void Charge(const Plan& plan, uint64_t hash, int64_t now_tick, Decide&& decide) noexcept {
    if (plan.lane_bits == algorithm::ShortLanes::kBits) {
      ChargeIn<algorithm::ShortLanes>(plan, hash, now_tick, decide);
    } else {
      ChargeIn<algorithm::LongLanes>(plan, hash, now_tick, decide);
    }
  }

  // Puts what the caller has written in order with the charges of a key: who charges it later sees
  // that, and who charged it earlier is seen from here on. Adds nothing to the key's word, since
  // those that swap one word come one after the other; a fence would do as well, but
  // ThreadSanitizer knows none.
  void OrderWith(const Plan& plan, uint64_t hash) noexcept {
    const std::atomic<Part>& own = parts_[plan.group];
    for (Part part = kNoPart; part != own.load();) {
      part = own.load();
      Word& word = WordOf(part, hash);
      word.fetch_add(0);
      if (IsBeingCut(part)) [[unlikely]] {
        UpperOf(part, word).fetch_add(0);
      }
    }
  }

  void Prefetch(const Plan& plan, uint64_t hash) const noexcept {
    __builtin_prefetch(&WordOf(parts_[plan.group].load(std::memory_order_relaxed), hash), 1, 3);
  }

  // Empties words whose charges count for nobody from `floor_ns` on, and brings them up to it, so
  // that their clocks can wrap. Does what is due since the last time. No charge may come before it
  // from a later time than this.
  void Sweep(uint64_t now_ns, uint64_t floor_ns) noexcept;

 private:
  using Word = std::atomic<uint64_t>;
  static constexpr uint64_t kSalt = base::SaltFor(0x736b65746368);
  static constexpr uint64_t kPassesPerWrap = 8;

  // begin << 8 | being cut << 7 | log2(words), or kNoPart. While it is being cut this is the lower
  // half already, and as many words after it are still to be folded onto it.
  using Part = uint64_t;
  static constexpr Part kNoPart = ~uint64_t{0};
  static constexpr Part kBeingCut = 1U << 7;

  [[nodiscard]] static uint64_t BeginOf(Part part) noexcept { return part >> 8; }
  [[nodiscard]] static uint64_t CountOf(Part part) noexcept { return uint64_t{1} << (part & 63U); }
  [[nodiscard]] static bool IsBeingCut(Part part) noexcept { return (part & kBeingCut) != 0; }
  [[nodiscard]] Word& WordOf(Part part, uint64_t hash) const noexcept {
    return words_[BeginOf(part) + (hash & (CountOf(part) - 1))];
  }

  // The word that is folded onto this one.
  [[nodiscard]] static Word& UpperOf(Part part, Word& lower) noexcept {
    return *(&lower + CountOf(part));
  }

  // What a key's word holds, given what was read of it. Worth something only if the part is still
  // the same afterwards: the upper half may be another group's by then.
  template <class Lanes>
  [[nodiscard]] static uint64_t Known(Part part, Word& word, uint64_t seen,
                                      int64_t now_tick) noexcept {
    if (IsBeingCut(part) && !WEIR_MUTANT(kHalfOfACut)) [[unlikely]] {
      return Lanes::Merge(seen, UpperOf(part, word).load(), now_tick);
    }
    return seen;
  }

  template <class Lanes>
  [[nodiscard]] int64_t LookIn(const Plan& plan, uint64_t hash, int64_t now_tick) const noexcept {
    const std::atomic<Part>& own = parts_[plan.group];
    for (;;) {
      const Part part = own.load();
      Word& word = WordOf(part, hash);
      const uint64_t known = Known<Lanes>(part, word, word.load(), now_tick);
      if (own.load() == part) [[likely]] {
        return Lanes::Estimate(known, Lanes::Choose(hash), now_tick);
      }
    }
  }

  template <class Lanes, class Decide>
  void ChargeIn(const Plan& plan, uint64_t hash, int64_t now_tick, Decide& decide) noexcept {
    const unsigned chosen = Lanes::Choose(hash);
    const std::atomic<Part>& own = parts_[plan.group];
    for (;;) {
      const Part part = own.load();
      Word& word = WordOf(part, hash);
      uint64_t seen = word.load();
      const uint64_t known = Known<Lanes>(part, word, seen, now_tick);
      if (own.load() != part) [[unlikely]] {
        continue;
      }
      const int64_t until = decide(Lanes::Estimate(known, chosen, now_tick));
      if (until == kNothing) {
        return;
      }
      const uint64_t raised = Lanes::Raise(known, chosen, now_tick, until);
      WEIR_TEST_POINT(kSketchDecided);
      if (!word.compare_exchange_strong(seen, raised)) [[unlikely]] {
        continue;
      }
      WEIR_TEST_POINT(kSketchCharged);
      if (own.load() == part || WEIR_MUTANT(kChargedInACut)) [[likely]] {
        return;
      }
    }
  }

  template <class Lanes>
  void Cut(uint8_t group, uint8_t shift, uint64_t now_ns) noexcept WEIR_REQUIRES(mutex_);
  template <class Lanes>
  void SweepPart(unsigned group, uint64_t now_ns, uint64_t floor_ns) noexcept WEIR_REQUIRES(mutex_);

  // What the sweeper knows of a group.
  struct Group {
    uint8_t shift = 0;
    uint8_t lane_bits = 0;
    uint64_t cursor = 0;
    uint64_t swept_ns = 0;  // every word has a base near this instant
  };

  base::MappedMemory memory_;
  Word* words_ = nullptr;
  std::atomic<Part> parts_[Plan::kGroups];
  base::Mutex mutex_;  // the parts are cut and swept by one thread at a time
  Group groups_[Plan::kGroups] WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::store
