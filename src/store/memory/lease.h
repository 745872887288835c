// Leases: a thread that keeps losing the race for one key takes some of its units at once and
// spends them by itself, without a locked instruction. docs/decisions/0020 has the proof that this
// never admits more than the quota.
//
// A lease is in a cell of its thread's desk. The owner spends without the cell's lock; whoever else
// wants the units back closes the cell, passes the heavy side of an asymmetric fence and then knows
// what has been spent. All else happens under the cell's lock. Lock order: the office's mutex, a
// cell, a stripe of a table.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weir/decision.h"
#include "weir/time.h"

#include "base/in_place.h"
#include "base/mutex.h"
#include "base/spin_lock.h"
#include "base/thread_index.h"
#include "store/memory/counters.h"
#include "store/memory/line.h"

namespace weir::store {

struct Binding;
struct SharedState;

struct alignas(256) LeaseCell {
  // What spending needs most. Written by the owner only, but for `open`.
  std::atomic<uint64_t> left{0};  // units not yet spent
  std::atomic<uint32_t> open{0};  // 0: what is left belongs to whoever closed it
  base::SpinLock lock;
  uint64_t hash = 0;    // of key and quota; 0: the cell is free
  uint64_t serial = 0;  // of the plan that the units were taken under
  // As long as the stamp, the key's state and its refund counter are these, all units left are
  // good, and the answer's other fields are known.
  Timestamp known_now;  // as the caller gave it
  uint64_t known_word = 0;
  uint64_t known_refunds = 0;
  const std::atomic<uint64_t>* refunds = nullptr;

  const std::atomic<uint64_t>* word = nullptr;  // the key's state
  std::atomic<uint64_t>* allowed = nullptr;     // the owner's counter
  uint64_t known_now_ns = 0;                    // in the store's time
  uint64_t known_reset_ns = 0;
  uint64_t known_available = 0;

  // The rest of what the owner alone knows.
  uint64_t until = 0;  // buckets: the instant, in ticks, up to which the units reach; else a mark
  uint64_t wanted = 0;
  Line* line = nullptr;
  unsigned slot = 0;
  uint32_t requests = 0;  // how many such requests the lease was meant for
  uint64_t pending = 0;   // a request of this cost was spent for while the cell was being closed
  uint64_t granted_ns = 0;

  // Under the lock.
  uint64_t looked_ns = 0;  // when `left` was last seen to have changed, and to what
  uint64_t looked_left = 0;
  Binding* binding = nullptr;
  const Line* home = nullptr;
  Receipt receipt;            // for all of the lease; what is left is its last part
  uint64_t reach = 0;         // what `until` was at first: which of two leases lies below
  bool settled = true;        // given back, or the store is gone; the owner may free the cell
  uint64_t settled_left = 0;  // what was left then
};

// One thread's leases, in all stores.
struct LeaseDesk {
  static constexpr unsigned kCells = 16;

  LeaseCell cells[kCells];

  [[nodiscard]] LeaseCell& CellOf(uint64_t hash) noexcept { return cells[hash % kCells]; }
};

// The calling thread's desk; an empty one for all threads that never had a lease.
extern thread_local constinit LeaseDesk* tls_desk [[gnu::tls_model("initial-exec")]];

// Whether this thread has just lost a race on the short way, for the key that it now decides the
// long way: how hot keys are found.
extern thread_local constinit bool tls_lost_race [[gnu::tls_model("initial-exec")]];

// Whether such races have been lost for this key often enough, and for no other key between. Asking
// forgets the last one.
[[nodiscard]] bool IsHot(uint64_t hash) noexcept;

// Tells a decision that is about to deny whether units of the key may be out on lease. One word for
// all keys of a few home lines: how many leases are out, and how often that has changed. A lease is
// counted before its units leave the state and until they are back in it. So a denial is right if
// the word is the same before and after it, and counts none.
class LeaseMarks {
 public:
  using Word = std::atomic<uint64_t>;

  [[nodiscard]] Word& Of(const Line& home) noexcept { return words_[IndexOf(&home)]; }

  // 0: no lease for a long time, if ever. By any word of the home line.
  [[nodiscard]] [[gnu::always_inline]] bool Quiet(const Word* of_home) const noexcept {
    return base::IsZeroAcquired(words_[IndexOf(of_home)]);
  }

  [[nodiscard]] static bool AnyOut(uint64_t word) noexcept { return word % kChange != 0; }

  // Makes words quiet that have not changed since the last call and count none. A thread that
  // sleeps between its look at a state and its look at the word for as long as that may deny early.
  // Not by two threads at a time. Whether any word counts a lease.
  bool Rest() noexcept;

  void Begin(const Line& home) noexcept {
    Of(home).fetch_add(kChange + 1, std::memory_order_seq_cst);
  }
  void End(const Line& home) noexcept {
    Of(home).fetch_add(kChange - 1, std::memory_order_seq_cst);
  }

 private:
  static constexpr unsigned kWords = 256;
  // More than there can be leases: threads times cells.
  static constexpr uint64_t kChange = uint64_t{1} << 16;

  [[gnu::always_inline]] static size_t IndexOf(const void* in_line) noexcept {
    return reinterpret_cast<uintptr_t>(in_line) / sizeof(Line) % kWords;
  }

  static_assert(uint64_t{Counters::kOwnCells} * LeaseDesk::kCells < kChange);

  std::array<Word, kWords> words_{};
  std::array<uint64_t, kWords> seen_{};
};

// What a store keeps of leases.
struct StoreLeases {
  LeaseMarks marks;
  bool enabled = false;  // constant after construction
  std::atomic<uint64_t> returned{0};
  std::atomic<uint64_t> units_returned{0};
};

// Where all desks of the process are known.
class LeaseOffice {
 public:
  static constexpr uint32_t kThreads = Counters::kOwnCells;
  // A lease not spent from for this long is given back, by its thread when it next looks or by the
  // store's next refresh.
  static constexpr uint64_t kIdleNs = 10'000'000;

  // Gives the calling thread a desk, and has its leases given back when it ends. False: it has no
  // number of its own, or is ending, or there is no memory.
  [[nodiscard]] static bool Join() noexcept;

  // What tls_desk points to until then.
  [[nodiscard]] static LeaseDesk* no_desk() noexcept;

  // From now on the calling thread looks for a lease before it decides.
  static void HoldingNow() noexcept { base::tls_free_index = base::kNoThreadIndex; }

  // The owner gives back what is left and frees the cell.
  static void Drop(LeaseCell& cell) noexcept;

  // This much of the lease, the last of it, goes back to the key. The marks still count the lease.
  static void GiveBack(LeaseCell& cell, uint64_t left) noexcept WEIR_REQUIRES(cell.lock);

  // Gives back what the calling thread has not used lately. If it then holds no lease at all, it
  // goes the short way again.
  static void Tidy() noexcept;
  // The same, once in a while: a `weight` of kTidyEvery is once.
  static void TidyNowAndThen(uint32_t weight) noexcept;
  static constexpr uint32_t kTidyEvery = 256;

  // Gives back what no thread has spent from lately, for threads that do not come to look. Not if
  // somebody else brings leases back just now.
  static void ReturnIdle(const SharedState& store) noexcept;

  // Has all that is left of leases on this key given back, whoever holds them. False: there were
  // none.
  static bool Revoke(const Binding& binding, uint64_t hash) noexcept;
  // Ends all leases of a quota. None are granted until Resume.
  static void Stop(Binding& binding) noexcept;
  static void Resume(Binding& binding) noexcept;
  // The store is ending: nobody gives anything back to it any more.
  static void Close(const SharedState& store) noexcept;
};

}  // namespace weir::store
