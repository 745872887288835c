#include "store/memory/lease.h"

#include <cstddef>
#include <new>
#include <utility>

#include "base/asymmetric_fence.h"
#include "store/memory/shared_state.h"

namespace weir::store {

namespace {

constexpr uint32_t kLostRaces = 3;

constinit LeaseDesk nobodys_desk;

// Desks stay with a thread's number, and are used again with it.
struct Desks {
  base::Mutex mutex;  // one at a time asks for others' leases
  std::atomic<LeaseDesk*> of[LeaseOffice::kThreads] = {};
};

// Never destroyed: a thread may end after the statics of this file are gone. Not on the heap: this
// must not fail.
Desks& AllDesks() noexcept {
  alignas(Desks) static std::byte memory[sizeof(Desks)];
  static Desks* const desks = new (memory) Desks;
  return *desks;
}

thread_local constinit uint32_t tls_until_tidy = LeaseOffice::kTidyEvery;
thread_local constinit bool tls_leaving = false;

// Destroyed before the thread's number is handed on, since that was there first.
struct AtThreadEnd {
  ~AtThreadEnd() {
    tls_leaving = true;
    for (LeaseCell& cell : tls_desk->cells) {
      LeaseOffice::Drop(cell);
    }
    tls_desk = &nobodys_desk;
    base::tls_free_index = base::tls_thread_index;
  }
};

// Gives back what is left and says so. Whoever calls this for a cell that is not the thread's own
// has passed the fence.
void Settle(LeaseCell& cell) noexcept WEIR_REQUIRES(cell.lock) {
  // Read once: an owner that has not yet seen that the cell is closed may still write to it, and is
  // told by settled_left whether that counts.
  const uint64_t left = cell.left.load(std::memory_order_acquire);
  LeaseOffice::GiveBack(cell, left);
  cell.settled = true;
  cell.settled_left = left;
  cell.binding->store->leases.marks.End(*cell.home);
}

// Whether `left` has been the same for a while; remembers when it was not.
bool IsIdle(LeaseCell& cell) noexcept WEIR_REQUIRES(cell.lock) {
  const uint64_t left = cell.left.load(std::memory_order_relaxed);
  const uint64_t now_ns = cell.binding->store->clock.ReadSource();
  if (left != cell.looked_left) {
    cell.looked_left = left;
    cell.looked_ns = now_ns;
  }
  // Signed: a clock may be set back.
  return static_cast<int64_t>(now_ns - cell.looked_ns) >=
         static_cast<int64_t>(LeaseOffice::kIdleNs);
}

// All cells of all threads that a key of this hash could be in, or just all if it is 0.
template <class Visitor>
void ForEachCell(uint64_t hash, Visitor visit) noexcept {
  for (const std::atomic<LeaseDesk*>& at : AllDesks().of) {
    // Acquire would do, but for Stop: see Grant in lease_engine.h.
    LeaseDesk* const desk = at.load(std::memory_order_seq_cst);
    if (desk == nullptr) {
      continue;
    }
    if (hash != 0) {
      visit(desk->CellOf(hash));
      continue;
    }
    for (LeaseCell& cell : desk->cells) {
      visit(cell);
    }
  }
}

// In rounds, with the fence after the first, so that no cell's lock is held through it. A cell that
// its owner gives back meanwhile, or even fills again, is left alone from then on.
template <class Chosen>
bool RevokeWhere(uint64_t hash, Chosen chosen) noexcept WEIR_REQUIRES(AllDesks().mutex) {
  bool any = false;
  ForEachCell(hash, [&](LeaseCell& cell) {
    const base::SpinLockHolder lock(cell.lock);
    if (!cell.settled && chosen(cell)) {
      cell.open.store(0, std::memory_order_seq_cst);
      any = true;
    }
  });
  if (!any) {
    return false;
  }
  WEIR_TEST_POINT(kLeaseClosed);
  const bool fenced = base::AsymmetricFence::Heavy();
  // By us: the mutex keeps others out, and an owner who closes its cell settles it as well.
  const auto closed = [](const LeaseCell& cell) {
    return !cell.settled && cell.open.load(std::memory_order_relaxed) == 0;
  };
  // The lowest first: a receipt does not know whether what others gave back since lay below it, and
  // takes it that it did.
  for (;;) {
    LeaseCell* lowest = nullptr;
    uint64_t reach = 0;
    ForEachCell(hash, [&](LeaseCell& cell) {
      const base::SpinLockHolder lock(cell.lock);
      if (closed(cell) && (lowest == nullptr || cell.reach < reach)) {
        lowest = &cell;
        reach = cell.reach;
      }
    });
    if (lowest == nullptr) {
      return fenced;
    }
    const base::SpinLockHolder lock(lowest->lock);
    if (!closed(*lowest)) {
      continue;
    }
    if (fenced) {
      Settle(*lowest);
    } else {
      lowest->open.store(1, std::memory_order_relaxed);
    }
  }
}

}  // namespace

thread_local constinit LeaseDesk* tls_desk = &nobodys_desk;
thread_local constinit bool tls_lost_race = false;

bool IsHot(uint64_t hash) noexcept {
  thread_local constinit uint64_t suspect = 0;
  thread_local constinit uint32_t lost = 0;
  if (!std::exchange(tls_lost_race, false)) {
    return false;
  }
  lost = suspect == hash ? lost + 1 : 1;
  suspect = hash;
  if (lost < kLostRaces) {
    return false;
  }
  lost = 0;
  return true;
}

bool LeaseMarks::Rest() noexcept {
  bool any_out = false;
  for (unsigned i = 0; i < kWords; ++i) {
    uint64_t word = words_[i].load(std::memory_order_relaxed);
    if (word != 0 && word == seen_[i] && !AnyOut(word)) {
      words_[i].compare_exchange_strong(word, 0, std::memory_order_seq_cst);
    }
    seen_[i] = word;
    any_out = any_out || AnyOut(word);
  }
  return any_out;
}

LeaseDesk* LeaseOffice::no_desk() noexcept {
  return &nobodys_desk;
}

bool LeaseOffice::Join() noexcept {
  const uint32_t index = base::ThreadIndex();
  if (tls_leaving || index >= kThreads) {
    return false;
  }
  if (tls_desk != &nobodys_desk) {
    return true;
  }
  std::atomic<LeaseDesk*>& at = AllDesks().of[index];
  LeaseDesk* desk = at.load(std::memory_order_acquire);
  if (desk == nullptr) {
    desk = new (std::nothrow) LeaseDesk;
    if (desk == nullptr) {
      return false;
    }
    at.store(desk, std::memory_order_seq_cst);
  }
  thread_local const AtThreadEnd at_end;
  static_cast<void>(at_end);
  tls_desk = desk;
  return true;
}

void LeaseOffice::GiveBack(LeaseCell& cell, uint64_t left) noexcept {
  if (left == 0) {
    return;
  }
  Binding& binding = *cell.binding;
  SharedState& store = *binding.store;
  Receipt receipt = cell.receipt;
  receipt.charged = static_cast<uint32_t>(left);
  const uint32_t units = binding.ops.give_back(binding, receipt, store.clock.floor_ns()).units;
  store.leases.returned.fetch_add(1, std::memory_order_relaxed);
  store.leases.units_returned.fetch_add(units, std::memory_order_relaxed);
}

void LeaseOffice::Drop(LeaseCell& cell) noexcept {
  const base::SpinLockHolder lock(cell.lock);
  if (!cell.settled) {
    cell.open.store(0, std::memory_order_relaxed);
    Settle(cell);
  }
  cell.hash = 0;
  cell.pending = 0;
}

void LeaseOffice::Tidy() noexcept {
  bool held = false;
  for (LeaseCell& cell : tls_desk->cells) {
    if (cell.hash == 0) {
      continue;
    }
    bool keep = false;
    {
      const base::SpinLockHolder lock(cell.lock);
      keep = !cell.settled && cell.open.load(std::memory_order_relaxed) != 0 && !IsIdle(cell);
    }
    if (!keep) {
      Drop(cell);
    }
    held = held || keep;
  }
  base::tls_free_index = held ? base::kNoThreadIndex : base::tls_thread_index;
}

void LeaseOffice::TidyNowAndThen(uint32_t weight) noexcept {
  if (tls_until_tidy > weight) {
    tls_until_tidy -= weight;
    return;
  }
  tls_until_tidy = kTidyEvery;
  Tidy();
}

void LeaseOffice::ReturnIdle(const SharedState& store) noexcept {
  if (!AllDesks().mutex.TryLock()) {
    return;
  }
  RevokeWhere(0, [&](LeaseCell& cell) {
    cell.lock.AssertHeld();
    return cell.binding->store == &store && IsIdle(cell);
  });
  AllDesks().mutex.Unlock();
}

bool LeaseOffice::Revoke(const Binding& binding, uint64_t hash) noexcept {
  const base::MutexLock lock(AllDesks().mutex);
  return RevokeWhere(
      hash, [&](const LeaseCell& cell) { return cell.binding == &binding && cell.hash == hash; });
}

void LeaseOffice::Stop(Binding& binding) noexcept {
  const base::MutexLock lock(AllDesks().mutex);
  binding.leases_stopped.fetch_add(1, std::memory_order_seq_cst);
  RevokeWhere(0, [&](const LeaseCell& cell) { return cell.binding == &binding; });
}

void LeaseOffice::Resume(Binding& binding) noexcept {
  binding.leases_stopped.fetch_sub(1, std::memory_order_seq_cst);
}

void LeaseOffice::Close(const SharedState& store) noexcept {
  ForEachCell(0, [&](LeaseCell& cell) {
    const base::SpinLockHolder lock(cell.lock);
    if (!cell.settled && cell.binding->store == &store) {
      cell.open.store(0, std::memory_order_relaxed);
      cell.settled = true;
    }
  });
}

}  // namespace weir::store
