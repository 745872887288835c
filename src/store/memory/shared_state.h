// All that a MemoryStore owns.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "weir/store.h"

#include "base/key_hash.h"
#include "base/mutex.h"
#include "store/memory/binding.h"
#include "store/memory/counters.h"
#include "store/memory/housekeeping.h"
#include "store/memory/lease.h"
#include "store/memory/records.h"
#include "store/memory/sketch.h"
#include "store/memory/table.h"
#include "store/memory/table_clock.h"

namespace weir::store {

struct SharedState {
  explicit SharedState(const MemoryOptions& chosen);
  ~SharedState();

  // Written by every thread: on lines of their own.
  Counters counters;

  // Constant after construction.
  const MemoryOptions options;
  const base::HashSecret& secret;  // of the process
  Simd simd;
  std::unique_ptr<Table> tables[2];  // by SlotKind; nullptr if the options gave it no memory
  std::unique_ptr<Records> records;  // nullptr likewise
  std::unique_ptr<Sketch> sketch;    // nullptr likewise

  StoreLeases leases;

  TableClock clock;
  Housekeeping housekeeping;

  std::atomic<uint64_t> next_reservation;  // reservations.cc

  // How often a key was reset, of those that share this number; `hash` is that of (key, quota).
  // Counted before the state changes, read before a charge.
  [[nodiscard]] std::atomic<uint32_t>& ResetsOf(uint64_t hash) noexcept {
    return resets[hash % kResetCounters];
  }
  static constexpr size_t kResetCounters = 4096;
  std::array<std::atomic<uint32_t>, kResetCounters> resets{};

  base::Mutex update_mutex;

  // REQUIRES: id of a binding made by this store.
  [[nodiscard]] const Binding* BindingOf(uint32_t id) const noexcept {
    const Chunk* const chunk = chunks[id / kChunk].load(std::memory_order_acquire);
    return chunk != nullptr ? chunk->bindings[id % kChunk].get() : nullptr;
  }

  struct BindOptions {
    bool sketch_first = false;  // its keys begin in the sketch
    Watch* watch = nullptr;     // notes its keys; lives for as long as anybody decides by it
    bool wide = false;          // in 16-byte slots, even if it would fit smaller ones
  };

  // Makes room for a quota; the error says which limit was met.
  Result<Binding*> Bind(const Quota& quota, const BindOptions& own);

  // Turns a caller's stamp into store time; false if it is not believable. Brings the clock up to
  // date first if it has to.
  [[nodiscard]] bool Admit(Timestamp now, uint64_t& now_ns) noexcept {
    now_ns = clock.ToStore(now);
    return clock.Accepts(now_ns) || AdmitSlowly(now, now_ns);
  }

  [[nodiscard]] bool AdmitSlowly(Timestamp now, uint64_t& now_ns) noexcept;

  // Reads the clock. For one that was set back no time has passed.
  [[nodiscard]] uint64_t ReadClock() noexcept {
    const uint64_t now_ns = clock.ReadSource();
    return clock.Accepts(now_ns) ? now_ns : ReadClockSlowly();
  }

  [[nodiscard]] uint64_t ReadClockSlowly() noexcept;

  // Bindings are never removed: a slot may name one for as long as the store lives. In chunks, so
  // that one can be looked up without a lock while others are added.
  static constexpr uint32_t kChunk = 1024;
  static constexpr uint32_t kBindingsMax = uint32_t{1} << WideLayout::kQuotaBits;
  static_assert(WideLayout::kQuotaBits == ChargedUnder::kIdBits);

  struct Chunk {
    std::unique_ptr<Binding> bindings[kChunk];
  };

  std::atomic<Chunk*> chunks[kBindingsMax / kChunk] = {};
  std::vector<std::unique_ptr<Chunk>> chunk_owners WEIR_GUARDED_BY(update_mutex);
  std::vector<std::unique_ptr<const algorithm::Plan>> plans WEIR_GUARDED_BY(update_mutex);
  uint32_t binding_count WEIR_GUARDED_BY(update_mutex) = 1;  // 0 is never given out

  // Publishes a plan as the binding's current one.
  void Publish(Binding& binding, const algorithm::Plan& plan) WEIR_REQUIRES(update_mutex);
};

// The code for a plan on this processor.
[[nodiscard]] const EngineOps& OpsFor(const algorithm::Plan& plan, Simd simd) noexcept;
[[nodiscard]] Simd BestSimd() noexcept;
[[nodiscard]] bool HasSimd(Simd simd) noexcept;

}  // namespace weir::store

namespace weir {

struct MemoryStore::State : store::SharedState {
  using SharedState::SharedState;
};

}  // namespace weir
