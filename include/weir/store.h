// Where state lives: one block of memory of a fixed size, shared by any number of limiters.
//
//   auto store = weir::MemoryStore::Create({.budget_bytes = 256 << 20});
//   auto per_ip = weir::Limiter::Create(*weir::Quota::Parse("50/min burst 20"), *store);
//   auto per_user = weir::Limiter::Create(*weir::Quota::Parse("1000/h"), *store);
//
// The budget is taken once and never grows. A key's state is reclaimed when it has become equal to
// that of a key never seen, and never earlier. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "weir/result.h"
#include "weir/time.h"

namespace weir {

// What happens to a key that finds the table full of live keys. A live key is never evicted, and
// every such decision is counted (StoreStats::overflow) and labelled (Decision::basis).
enum class OverflowPolicy : uint8_t {
  kSketch,  // they are counted in a sketch, where a count may be too high and never too low
  kDeny,
  kAllow,
};

enum class KeyPolicy : uint8_t {
  kText,    // a NUL byte in a key is refused: it is nearly always a bug, and C callers cut there
  kBinary,  // any byte
};

// Which compare the table uses. kAuto takes the best that the processor has.
enum class Simd : uint8_t { kAuto, kScalar, kAvx2, kAvx512 };

struct MemoryOptions {
  // Behaviour.
  size_t budget_bytes = size_t{64} << 20;  // all of it, for as long as the store lives
  OverflowPolicy overflow = OverflowPolicy::kSketch;
  KeyPolicy keys = KeyPolicy::kText;
  Duration max_skew = std::chrono::seconds(1);  // how far a caller's `now` may be from our clock
  uint64_t fleet_secret = 0;     // shifts per-key windows; the same on every node of a fleet
  const Clock* clock = nullptr;  // nullptr: SystemClock(). Must outlive the store.
  // Threads that contend for one key take units of it ahead, for 1024 requests at the most, and
  // spend them without meeting one another: docs/decisions/0020. Never admits more.
  bool hot_keys = true;

  // Layout. Buckets and gaps at whole microseconds take 8-byte slots, all else 16-byte slots.
  // -1: half each; a limiter made without a store gives its whole budget to what its quota needs.
  int wide_percent = -1;
  // Of the budget, for sliding logs, sliced windows, holds and reservations, which are records of
  // many bytes; the rest is for slots. -1: none, or all of it for a limiter made without a store
  // that needs them.
  int record_percent = -1;
  // Of the budget, for the sketch; a power of two of bytes is used. -1: a 32nd if the overflow
  // policy is the sketch, else none.
  int sketch_percent = -1;
  bool huge_pages = true;  // ask for them; without them the table works all the same
  Simd simd = Simd::kAuto;
};

struct StoreStats {
  uint64_t decisions = 0;
  uint64_t denials = 0;               // refusals for a Problem are not counted here
  uint64_t refusals = 0;              // calls with a Problem
  uint64_t overflow = 0;              // decisions that found no slot
  uint64_t reclaims = 0;              // slots of keys that had become fresh, taken for new keys
  uint64_t lost_races = 0;            // compare-and-swap attempts that had to be repeated
  uint64_t promotions = 0;            // keys that left the sketch for a slot (Precision::kSketch)
  uint64_t leases = 0;                // of units of hot keys, taken by threads
  uint64_t leases_returned = 0;       // of those, given back before all was spent
  uint64_t lease_units_returned = 0;  // and how many units came back
  uint64_t slots = 0;
  uint64_t live_slots = 0;  // sampled on tables above 64 Ki lines
  uint64_t records = 0;     // in use, among them those that could be taken back
  size_t budget_bytes = 0;
  Simd simd = Simd::kScalar;  // what kAuto came to
  bool huge_pages = false;
};

class MemoryStore {
 public:
  static constexpr size_t kMinBudgetBytes = size_t{64} << 10;

  static Result<std::shared_ptr<MemoryStore>> Create(const MemoryOptions& options = {});

  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;
  ~MemoryStore();

  // Reads a few thousand lines; not for the hot path.
  [[nodiscard]] StoreStats Stats() const;

  // Brings the store's clock up to date and does the housekeeping that is due. Checks do this by
  // themselves in small steps; an idle program may call it so that the first check after a long
  // pause does not have to.
  void Maintain();

  struct State;  // internal
  [[nodiscard]] State& state() noexcept { return *state_; }

 private:
  explicit MemoryStore(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace weir
