// Records: states that need more than a word. A record is a block of words in an arena of fixed
// size; keys find theirs through buckets of short lists, each under a spin lock of its own that is
// held for the whole of a decision.
//
// Blocks come in size classes an eighth apart. A block that becomes free stays of its class. When
// none is left, records that have become equal to that of a key never seen are taken back, by the
// same floor as slots (table_clock.h); a live record never is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/mapped_memory.h"
#include "base/mutex.h"
#include "base/spin_lock.h"

namespace weir::store {

struct Record {
  uint64_t hash;           // of (key, quota)
  uint64_t live_until_ns;  // from then on it is as good as none
  uint32_t next;           // in its bucket's list, 0 ends it
  uint32_t quota;          // the binding's id
  uint32_t words;          // of the body
  uint32_t size_class;

  [[nodiscard]] std::span<uint64_t> body() noexcept {
    return {reinterpret_cast<uint64_t*>(this + 1), words};
  }
};

static_assert(sizeof(Record) == 32);

class Records {
 public:
  struct Bucket {
    base::SpinLock lock;
    uint32_t head WEIR_GUARDED_BY(lock) = 0;
  };

  Records(size_t budget_bytes, base::MappedMemory::Pages pages) noexcept;

  [[nodiscard]] bool ok() const noexcept { return memory_.data() != nullptr; }
  [[nodiscard]] bool huge() const noexcept { return memory_.huge(); }
  [[nodiscard]] uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

  [[nodiscard]] Bucket& BucketOf(uint64_t hash) const noexcept;

  [[nodiscard]] Record* Find(const Bucket& bucket, uint64_t hash, uint32_t quota) const noexcept
      WEIR_REQUIRES(bucket.lock);

  // A record with a body of zeros, in the bucket's list. nullptr: all are live. `floor_ns` says
  // what may be taken back; the reserve is for states that overflowing keys share.
  enum class From { kArena, kReserve };
  Record* Add(Bucket& bucket, uint64_t hash, uint32_t quota, uint64_t words, uint64_t floor_ns,
              From from) noexcept WEIR_REQUIRES(bucket.lock);

  void Remove(Bucket& bucket, Record& record) noexcept WEIR_REQUIRES(bucket.lock);

 private:
  static constexpr size_t kUnit = 16;  // what `next` counts in
  static constexpr unsigned kClasses = 256;
  // A bucket to this many bytes: six percent.
  static constexpr size_t kBytesPerBucket = 128;
  static constexpr uint64_t kReserveShare = 64;
  static constexpr uint64_t kSweptAtOnce = 1 << 16;

  [[nodiscard]] Record& At(uint32_t place) const noexcept {
    return *reinterpret_cast<Record*>(arena_ + size_t{place} * kUnit);
  }

  [[nodiscard]] uint32_t PlaceOf(const Record& record) const noexcept {
    return static_cast<uint32_t>((reinterpret_cast<const std::byte*>(&record) - arena_) /
                                 static_cast<ptrdiff_t>(kUnit));
  }

  Record* Take(unsigned size_class, size_t bytes, From from) noexcept;
  void Free(Record& record) noexcept;
  void Sweep(uint64_t floor_ns) noexcept;

  base::MappedMemory memory_;
  Bucket* buckets_ = nullptr;
  uint64_t bucket_mask_ = 0;
  std::byte* arena_ = nullptr;
  std::atomic<uint64_t> count_{0};
  std::atomic<uint64_t> hand_{0};  // the next bucket to sweep

  base::Mutex mutex_;
  size_t taken_ WEIR_GUARDED_BY(mutex_) = kUnit;  // place 0 is no record
  size_t ordinary_end_ WEIR_GUARDED_BY(mutex_) = 0;
  size_t end_ WEIR_GUARDED_BY(mutex_) = 0;
  uint32_t free_[kClasses] WEIR_GUARDED_BY(mutex_) = {};
};

}  // namespace weir::store
