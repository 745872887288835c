// What a node remembers of keys that a shared store counts, in a fixed number of bytes: how they
// stood at the store's last word, what was refused then, and what was admitted here since. It
// serves three ends: the local share while the store is away (local_share.h), denials that need no
// further round trip, and the question whether a key is near its limit.
//
// A key has one cell of a cache line, in one of eight places, and a byte by which it is found among
// them; places share a lock that is held for a few instructions. A cell that tells nothing any more
// makes room for a new one. If all eight tell something, the one that would soonest tell nothing
// goes, and that is counted: its key will be a stranger here. Cells with units that the store still
// has to be told of go last.
//
// Thread-safe. Instants are nanoseconds of one monotonic clock, and above zero.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "weir/decision.h"
#include "weir/result.h"

#include "base/mapped_memory.h"
#include "base/spin_lock.h"
#include "shared/local_share.h"

namespace weir::shared {

// The digest of a key's text, its quota's scope included: alike on every node, and as good as
// random to anyone without the fleet's secret.
struct BookKey {
  uint64_t low = 0;
  uint64_t high = 0;

  friend bool operator==(const BookKey&, const BookKey&) = default;
};

// A quota as the book knows it: its number, and what a share of it is.
struct BookQuota {
  uint32_t number = 0;
  LocalPlan plan;
};

// Units admitted here that the store has to be told of.
struct OwedUnits {
  BookKey key;
  uint32_t quota = 0;  // its number
  uint32_t units = 0;
};

// Proof of a local charge.
struct LocalReceipt {
  int64_t tat_ns = 0;  // right after it
  uint32_t charged = 0;
  bool settled = false;  // the store may know of it already, so that it must not be told again
};

// Whether the store may have counted a charge although it did not answer.
enum class MayHaveRun : bool { kNo, kYes };

struct BookStats {
  uint64_t cells = 0;
  uint64_t live = 0;          // sampled
  uint64_t evicted = 0;       // live ones
  uint64_t evicted_owed = 0;  // of those, with units that the store will never be told of
};

class KeyBook {
 public:
  static constexpr size_t kMinBytes = size_t{64} << 10;

  static Result<std::unique_ptr<KeyBook>> Create(size_t bytes);

  // The store has answered `cost`, asked at `asked_ns`, which is not later than its own time of the
  // decision. kRemember: a denial also holds for those who ask next. kSettling: the store has only
  // just returned, and other nodes may not have told it yet what they admitted.
  enum class Denial : bool { kForget, kRemember };
  enum class Word : bool { kFinal, kSettling };
  void NoteReply(const BookKey& key, const BookQuota& quota, const Decision& decision,
                 uint64_t cost, int64_t asked_ns, Denial denial, Word word = Word::kFinal) noexcept;

  // While the store settles, a key that was decided here is held to this node's share as well, so
  // that the first to return does not get what the others have admitted. kFits: charged to the
  // share, of which the store need not be told; GiveBackSettling if the store then denies.
  enum class Settling : uint8_t { kNot, kFits, kDenied };
  [[nodiscard]] Settling TakeSettling(const BookKey& key, const BookQuota& quota, uint64_t cost,
                                      int64_t now_ns, Decision& decision) noexcept;
  void GiveBackSettling(const BookKey& key, const BookQuota& quota, uint64_t cost) noexcept;

  // A denial that still stands for this cost. `longest` ends it in any case: what others give back
  // or reset is not known here. `decision` is set only if true.
  [[nodiscard]] bool FindDenial(const BookKey& key, const BookQuota& quota, uint64_t cost,
                                int64_t now_ns, Duration longest, Decision& decision) noexcept;
  // A key was given something back, or started anew.
  void ForgetDenial(const BookKey& key) noexcept;
  void Forget(const BookKey& key) noexcept;

  // What was left by the store's last word; `fresh` if it said nothing, or that is over.
  [[nodiscard]] uint32_t LastRemaining(const BookKey& key, uint32_t fresh, int64_t now_ns) noexcept;
  // Last seen with little left, and not reset since.
  [[nodiscard]] bool IsNearLimit(const BookKey& key, uint64_t cost, int64_t now_ns) noexcept;

  // Decides by this node's share. Basis::kLocal, all of it filled in.
  void Take(const BookKey& key, const BookQuota& quota, uint64_t cost, ChargeMode mode,
            MayHaveRun known, int64_t now_ns, Decision& decision, LocalReceipt* receipt) noexcept;
  // The units given back.
  uint32_t GiveBack(const BookKey& key, const BookQuota& quota, LocalReceipt& receipt,
                    int64_t now_ns) noexcept;

  // The units of this key that the store is to be told of now; the book forgets them. 0: none.
  [[nodiscard]] uint32_t TakeOwed(const BookKey& key, const BookQuota& quota,
                                  int64_t now_ns) noexcept;
  // The store was not told after all.
  void PutOwedBack(const BookKey& key, const BookQuota& quota, uint32_t units,
                   int64_t now_ns) noexcept;
  // Whether any key may owe: false for as long as the store has never been away.
  [[nodiscard]] bool owes() const noexcept { return owing_.load(std::memory_order_relaxed) > 0; }
  // Takes the owed units of up to `owed.size()` keys, from cell `cursor` on, which it advances;
  // cursor == cells() is the end. `quotas[number]` are all there are; keys that `wanted` refuses
  // are left as they are. How many it found.
  [[nodiscard]] size_t Sweep(size_t& cursor, std::span<const BookQuota* const> quotas,
                             std::span<OwedUnits> owed, int64_t now_ns,
                             const std::function<bool(const BookKey&)>& wanted = {});
  [[nodiscard]] size_t cells() const noexcept { return sets_ * kWays; }

  [[nodiscard]] BookStats Stats(int64_t now_ns) const noexcept;

 private:
  static constexpr size_t kWays = 8;
  static constexpr size_t kLocks = 1024;
  static constexpr int64_t kReturned = -1;

  struct alignas(64) Cell {
    BookKey key;           // all zero: never used
    int64_t reset_ns = 0;  // when the key is as good as new, by the store's last word
    int64_t tat_ns = 0;    // its debt as a TAT: by that word, and by what was admitted here since
    int64_t retry_ns = 0;  // when what was refused fits; 0: nothing was
    // The store's last word is about this instant; 0: it was away since, kReturned: it settles.
    int64_t asked_ns = 0;
    uint32_t quota = 0;
    uint32_t units = 0;      // admitted here since, and the store has to be told of them
    uint32_t refused = 0;    // the smallest cost that was
    uint32_t remaining = 0;  // by the store's last word
  };
  static_assert(sizeof(Cell) == 64);

  explicit KeyBook(base::MappedMemory memory, size_t sets);

  struct Place {
    std::span<Cell> cells;
    uint64_t* tags;  // a byte a cell, of the key that it was last given to
    base::SpinLock* lock;
  };
  [[nodiscard]] static uint64_t TagOf(const BookKey& key) noexcept { return key.high >> 56; }
  [[nodiscard]] Place PlaceOf(const BookKey& key) noexcept;
  [[nodiscard]] static Cell* Find(const Place& place, const BookKey& key) noexcept;
  [[nodiscard]] Cell& FindOrMake(const Place& place, const BookKey& key, int64_t now_ns) noexcept;
  [[nodiscard]] static int64_t TellsUntil(const Cell& cell) noexcept;
  uint32_t TakeOwedOf(Cell& cell, const LocalPlan& plan, int64_t now_ns) noexcept;
  void AddUnits(Cell& cell, uint64_t units) noexcept;

  const base::MappedMemory memory_;
  const size_t sets_;
  Cell* const cells_;
  const std::unique_ptr<uint64_t[]> tags_;  // by set
  const std::unique_ptr<base::SpinLock[]> locks_;
  std::atomic<int64_t> owing_{0};  // cells with units
  std::atomic<uint64_t> evicted_{0};
  std::atomic<uint64_t> evicted_owed_{0};
};

}  // namespace weir::shared
