// What a table needs done over time, in small steps paid for by whoever finds the clock due.
//
// Every pass goes once over all lines and
//  - rewrites expired states to the recent past, so that the clock inside them can wrap;
//  - if the current epoch is old enough, clears the overflow bits of the epoch before, and when the
//    pass is complete swaps the epochs' roles.
// Old enough: longer than any state can stay live. Then a key that was not touched in the current
// epoch has expired, and losing sight of it is the same as reclaiming it.
//
// A pass is spread over its period. After a pause longer than that, the thread that finds out does
// the whole pass before it moves the clock, and others wait for it: no state is ever looked at with
// a clock that is too far ahead of the last pass.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"
#include "store/memory/table.h"
#include "store/memory/table_clock.h"

namespace weir::store {

struct Binding;
struct SharedState;

class Housekeeping {
 public:
  explicit Housekeeping(SharedState& state) noexcept : state_(state) {}

  void AddTable(Table* table) noexcept;

  // A quota whose states stay live for at most `horizon_ns` and whose clock repeats after
  // `wrap_ns`.
  void AddQuota(uint64_t horizon_ns, uint64_t wrap_ns) noexcept;

  // Before two generation bits are given to another plan: leaves no state that was written under
  // the plan that had them, since the next one may cut the word at other places. Reads all lines.
  void Retire(const Binding& binding, unsigned generation) noexcept;

  // Reads the source, does what is due, publishes the new time. `kSkipIfBusy` returns at once if
  // another thread is at it.
  enum class Wait { kForOthers, kSkipIfBusy };
  bool Refresh(Wait wait) noexcept;

  // Unix time less store time, as the wall clock has it now; and as it was at the start, for
  // windows that must not move when the wall clock is set.
  [[nodiscard]] const std::atomic<int64_t>& wall_offset_ns() const noexcept {
    return wall_offset_ns_;
  }

  [[nodiscard]] int64_t first_wall_offset_ns() const noexcept { return first_wall_offset_ns_; }

  void Start(uint64_t now_ns) noexcept;

 private:
  struct Sweep {
    Table* table = nullptr;
    uint64_t cursor = 0;
    uint64_t epoch_began_ns = 0;
    bool clearing = false;
  };

  void Work(Sweep& sweep, uint64_t now_ns, uint64_t elapsed_ns) WEIR_REQUIRES(mutex_);
  [[nodiscard]] uint64_t PassPeriodNs(const Table& table) const WEIR_REQUIRES(mutex_);
  void ReadWall(uint64_t now_ns) noexcept;

  static constexpr unsigned kTablesMax = 2;

  SharedState& state_;
  base::Mutex mutex_;
  Sweep sweeps_[kTablesMax] WEIR_GUARDED_BY(mutex_);
  unsigned sweep_count_ WEIR_GUARDED_BY(mutex_) = 0;
  uint64_t last_ns_ WEIR_GUARDED_BY(mutex_) = 0;
  uint64_t horizon_ns_ WEIR_GUARDED_BY(mutex_) = 0;
  uint64_t wrap_ns_ WEIR_GUARDED_BY(mutex_) = ~uint64_t{0};
  std::atomic<int64_t> wall_offset_ns_{0};
  int64_t first_wall_offset_ns_ = 0;
};

// Live states in a table; samples large ones.
[[nodiscard]] uint64_t CountLive(const SharedState& state, const Table& table) noexcept;

// Whether a slot with this state may be given to another key. Stricter than Expired for windows:
// one that is still open is kept even if it is empty, because its next owner might give all of it
// back and thereby bring back the very word that a slower thread has read under this one (line.h).
template <class Policy>
[[nodiscard]] bool Reclaimable(const algorithm::Plan& plan, uint64_t payload,
                               const typename Policy::Now& floor) noexcept {
  const bool open_counts = Policy::kUsesWindows && !WEIR_MUTANT(kEmptyIsExpired);
  return Policy::Expired(plan, payload | static_cast<uint64_t>(open_counts), floor);
}

// Whether the state of a wide slot equals that of a key never seen, by the quota that its id names.
[[nodiscard]] bool WideExpired(const SharedState& state, uint64_t identity, uint64_t value,
                               uint64_t floor_ns) noexcept;

}  // namespace weir::store
