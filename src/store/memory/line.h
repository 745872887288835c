// Two ways to lay state out in a cache line, and what every bit of it means.
//
// Compact: eight words of [aux:1 | tag:23 | generation:2 | payload:38]. Identity and state share a
// word, so one compare-and-swap changes both, and no thread can charge a slot that has become
// another key's.
//
// Wide: four slots of two words, id [aux:1 | fingerprint:43 | quota:20] and state
// [locked:1 | generation:2 | payload:61]. The id changes only while the state is locked, and
// readers take the state first and the id after it; a state that is unchanged when it is swapped
// therefore still belongs to that id. This needs that no word comes back under another owner: a
// slot is taken only when its state lies in the past of the floor, and whatever the next owner
// writes, a give-back included, lies after it.
//
// A word of 0 (ids, compact words) has never been used. Slots never go back to 0. The aux bits of
// the first two slots of a line say that some key had to go past this line, one bit per epoch: see
// table.h. The aux bits of the others are unused.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "algorithm/plan.h"
#include "base/spin_lock.h"
#include "base/wide_math.h"
#include "store/memory/test_hooks.h"

namespace weir::store {

struct alignas(64) Line {
  std::atomic<uint64_t> words[8];
};

static_assert(sizeof(Line) == 64);

inline constexpr uint64_t kAuxBit = uint64_t{1} << 63;

// A slot's state as it was read: what a decision is computed from and committed against.
struct Snapshot {
  std::atomic<uint64_t>* word;  // the word that is swapped
  uint64_t value;
};

// The same on the fast path, which wants the state of one key, settled and of the current
// generation. The policies' Load ignores what is above the payload.
struct Current {
  std::atomic<uint64_t>* word;
  uint64_t value;
  bool wanted;
};

// The word that takes the place of a current one when its payload changes.
template <class Layout>
[[nodiscard]] [[gnu::always_inline]] inline uint64_t WithPayload(const Current& current,
                                                                 uint64_t payload) noexcept {
  // By shifts, which need no constant.
  constexpr unsigned kAbove = 64 - Layout::kPayloadBits;
  return current.value ^ ((current.value ^ payload) << kAbove >> kAbove);
}

// The linearisation point of a charge on the fast path: one attempt, which tells nothing of the
// word that was there instead. The orders are those of Commit.
[[nodiscard]] [[gnu::always_inline]] inline bool Replace(const Current& current,
                                                         uint64_t desired) noexcept {
  WEIR_TEST_POINT(kCommit);
  uint64_t expected = current.value;
  return current.word->compare_exchange_strong(expected, desired, std::memory_order_acq_rel,
                                               std::memory_order_relaxed);
}

struct CompactLayout {
  static constexpr algorithm::SlotKind kSlot = algorithm::SlotKind::kCompact;
  static constexpr unsigned kSlots = 8;
  static constexpr unsigned kPayloadBits = algorithm::CompactTicks::kPayloadBits;
  static constexpr unsigned kTagBits = 61 - kPayloadBits;
  static constexpr uint64_t kPayloadMask = base::LowBits(kPayloadBits);
  static constexpr uint64_t kStateMask = base::LowBits(kPayloadBits + 2);
  static constexpr uint64_t kIdentityMask = ~kStateMask & ~kAuxBit;
  // Identity and generation are next to one another and compared as one.
  static constexpr uint64_t kWantedMask = ~kPayloadMask & ~kAuxBit;

  // The quota is part of the hash already. Never 0, so that a used word is never 0.
  static uint64_t IdentityOf(uint64_t hash, uint32_t) noexcept {
    const uint64_t tag = hash & base::LowBits(kTagBits);
    return (tag != 0 ? tag : 1) << (kPayloadBits + 2);
  }

  static std::atomic<uint64_t>& EpochWord(Line& line, unsigned epoch) noexcept {
    return line.words[epoch];
  }

  static uint64_t Payload(uint64_t value) noexcept { return value & kPayloadMask; }
  static unsigned Generation(uint64_t value) noexcept {
    return static_cast<unsigned>(value >> kPayloadBits) & 3U;
  }

  // Acquire: a slot seen under a new key must let us see the table clock that let it be reclaimed.
  static Snapshot Read(Line& line, unsigned slot) noexcept {
    std::atomic<uint64_t>& word = line.words[slot];
    WEIR_TEST_POINT(kRead);
    return {&word, word.load(std::memory_order_acquire)};
  }

  static uint64_t IdentityAt(Line&, unsigned, const Snapshot& snapshot) noexcept {
    return snapshot.value & kIdentityMask;
  }

  // What the words of a line are compared with; 0 for the odd key that goes the long way.
  static uint64_t Wanted(uint64_t hash, uint32_t, const algorithm::Plan& plan) noexcept {
    const uint64_t tag = hash << (64 - kTagBits);  // the same bits, and no constant
    if (tag == 0) [[unlikely]] {
      return 0;
    }
    const uint64_t wanted = tag >> 1 | plan.generation_mark;
    if (wanted == 0) {
      __builtin_unreachable();  // or who compares the answer with 0 does so twice
    }
    return wanted;
  }

  [[gnu::always_inline]] static Current ReadCurrent(Line& line, unsigned slot, uint64_t wanted,
                                                    uint64_t) noexcept {
    const Snapshot snapshot = Read(line, slot);
    // All but the payload and the aux bit is to be equal; by shifts, which need no constant.
    return {snapshot.word, snapshot.value,
            ((snapshot.value ^ wanted) << 1) >> (kPayloadBits + 1) == 0};
  }

  // Identity came with the state in one load.
  static bool StillCurrent(const Snapshot&) noexcept { return true; }

  static bool StillOwned(Line&, unsigned, uint64_t) noexcept { return true; }

  // The linearisation point of a charge. Release publishes nothing but the word itself; acquire on
  // failure is for the same reason as in Read.
  static bool Commit(Snapshot& snapshot, unsigned generation, uint64_t payload) noexcept {
    const uint64_t desired =
        (snapshot.value & ~kStateMask) | (uint64_t{generation} << kPayloadBits) | payload;
    WEIR_TEST_POINT(kCommit);
    return snapshot.word->compare_exchange_strong(
        snapshot.value, desired, std::memory_order_acq_rel, std::memory_order_acquire);
  }

  // Takes a never-used or expired slot for another key, keeping the line's aux bit.
  static bool Install(Line&, unsigned, Snapshot& victim, uint64_t identity, unsigned generation,
                      uint64_t payload) noexcept {
    const uint64_t desired =
        (victim.value & kAuxBit) | identity | (uint64_t{generation} << kPayloadBits) | payload;
    WEIR_TEST_POINT(kInstall);
    return victim.word->compare_exchange_strong(victim.value, desired, std::memory_order_acq_rel,
                                                std::memory_order_relaxed);
  }
};

struct WideLayout {
  static constexpr algorithm::SlotKind kSlot = algorithm::SlotKind::kWide;
  static constexpr unsigned kSlots = 4;
  static constexpr unsigned kPayloadBits = algorithm::WideTicks::kPayloadBits;
  static constexpr uint64_t kPayloadMask = base::LowBits(kPayloadBits);
  static constexpr unsigned kQuotaBits = 20;
  static constexpr uint64_t kIdentityMask = ~kAuxBit;
  static constexpr uint64_t kWantedMask = kIdentityMask;
  static constexpr uint64_t kLocked = uint64_t{1} << 63;

  static uint64_t IdentityOf(uint64_t hash, uint32_t quota) noexcept {
    const uint64_t fingerprint = (hash << kQuotaBits) & kIdentityMask;
    const uint64_t identity = fingerprint | quota;
    return identity != 0 ? identity : uint64_t{1} << kQuotaBits;
  }

  static uint32_t QuotaOf(uint64_t identity) noexcept {
    return static_cast<uint32_t>(identity & base::LowBits(kQuotaBits));
  }

  static std::atomic<uint64_t>& EpochWord(Line& line, unsigned epoch) noexcept {
    return line.words[std::size_t{2} * epoch];
  }

  static uint64_t Payload(uint64_t value) noexcept { return value & kPayloadMask; }
  static unsigned Generation(uint64_t value) noexcept {
    return static_cast<unsigned>(value >> kPayloadBits) & 3U;
  }

  // Waits out an install, which is three instructions long. Acquire: the id read after this one
  // must not be older than the state.
  static Snapshot Read(Line& line, unsigned slot) noexcept {
    std::atomic<uint64_t>& word = line.words[2 * slot + 1];
    WEIR_BEFORE_STATE(line.words[std::size_t{2} * slot].load() & kIdentityMask);
    WEIR_TEST_POINT(kRead);
    uint64_t value = word.load(std::memory_order_acquire);
    base::Backoff backoff;
    while ((value & kLocked) != 0) {
      backoff.Wait();
      value = word.load(std::memory_order_acquire);
    }
    return {&word, value};
  }

  static uint64_t IdentityAt(Line& line, unsigned slot, const Snapshot&) noexcept {
    WEIR_TEST_POINT(kIdentity);
    return WEIR_AFTER_STATE(line.words[std::size_t{2} * slot].load(std::memory_order_acquire) &
                            kIdentityMask);
  }

  static uint64_t Wanted(uint64_t hash, uint32_t quota, const algorithm::Plan&) noexcept {
    return IdentityOf(hash, quota);
  }

  // Lock and generation are next to one another: one compare finds the state settled and current.
  [[gnu::always_inline]] static Current ReadCurrent(Line& line, unsigned slot, uint64_t wanted,
                                                    uint64_t mark) noexcept {
    WEIR_BEFORE_STATE(line.words[std::size_t{2} * slot].load() & kIdentityMask);
    WEIR_TEST_POINT(kRead);
    std::atomic<uint64_t>& word = line.words[2 * slot + 1];
    const uint64_t value = word.load(std::memory_order_acquire);
    return {&word, value,
            (value ^ mark) <= kPayloadMask && IdentityAt(line, slot, {&word, value}) == wanted};
  }

  // For decisions that write nothing: the state read and the id read after it belong together iff
  // the state has not changed since. The id was loaded with acquire, so this load comes after it.
  static bool StillCurrent(const Snapshot& snapshot) noexcept {
    return snapshot.word->load(std::memory_order_acquire) == snapshot.value;
  }

  // After a charge. A give-back can lower a state, so a thread that sleeps through an expiry could
  // meet its word again under another key. That key then pays for nothing, and the charge is made
  // once more where it belongs: stricter for one key, never looser for either.
  static bool StillOwned(Line& line, unsigned slot, uint64_t identity) noexcept {
    return (line.words[std::size_t{2} * slot].load(std::memory_order_acquire) & kIdentityMask) ==
           identity;
  }

  static bool Commit(Snapshot& snapshot, unsigned generation, uint64_t payload) noexcept {
    const uint64_t desired = (uint64_t{generation} << kPayloadBits) | payload;
    WEIR_TEST_POINT(kCommit);
    if (snapshot.word->compare_exchange_strong(snapshot.value, desired, std::memory_order_acq_rel,
                                               std::memory_order_acquire)) {
      return true;
    }
    base::Backoff backoff;
    while ((snapshot.value & kLocked) != 0) {
      backoff.Wait();
      snapshot.value = snapshot.word->load(std::memory_order_acquire);
    }
    return false;
  }

  static bool Install(Line& line, unsigned slot, Snapshot& victim, uint64_t identity,
                      unsigned generation, uint64_t payload) noexcept {
    WEIR_TEST_POINT(kInstall);
    if (!victim.word->compare_exchange_strong(victim.value, victim.value | kLocked,
                                              std::memory_order_acq_rel,
                                              std::memory_order_relaxed)) {
      return false;
    }
    // A loop because another thread may set or clear the aux bit meanwhile. Release: whoever sees
    // this id must also see the lock that came before it.
    std::atomic<uint64_t>& id = line.words[std::size_t{2} * slot];
    uint64_t old = id.load(std::memory_order_relaxed);
    WEIR_TEST_POINT(kInstallId);
    while (!id.compare_exchange_weak(old, (old & kAuxBit) | identity, std::memory_order_release,
                                     std::memory_order_relaxed)) {
    }
    WEIR_TEST_POINT(kInstallState);
    // Release: whoever sees this state also sees the id.
    victim.word->store((uint64_t{generation} << kPayloadBits) | payload, std::memory_order_release);
    return true;
  }
};

}  // namespace weir::store
