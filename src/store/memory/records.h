// Records: states that need more than a word. A record is a block of words in an arena of fixed
// size; keys find theirs through buckets of short lists, each under a lock of its own that is held
// for the whole of a decision.
//
// When there is no room (arena.h), records that have become equal to that of a key never seen are
// taken back, by the same floor as slots (table_clock.h); a live record never is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/mapped_memory.h"
#include "base/mutex.h"
#include "base/spin_lock.h"
#include "base/wide_math.h"
#include "store/memory/arena.h"

namespace weir::store {

struct Record {
  uint32_t tag;            // the arena's, which may write it at any time
  uint32_t next;           // in its bucket's list, 0 ends it
  uint64_t hash;           // of (key, quota)
  uint64_t live_until_ns;  // from then on it is as good as none
  uint32_t quota;          // the binding's id
  uint32_t words;          // of the body

  [[nodiscard]] std::span<uint64_t> body() noexcept {
    return {reinterpret_cast<uint64_t*>(this + 1), words};
  }
};

static_assert(sizeof(Record) == 32);

class Records {
 public:
  // A list and its lock in one word, so that there can be many: [first record's place:31 | held:1].
  class WEIR_CAPABILITY("bucket") Bucket {
   public:
    void Lock() noexcept WEIR_ACQUIRE() {
      base::Backoff backoff;
      while (!TryLock()) {
        while ((word_.load(std::memory_order_relaxed) & kHeld) != 0) {
          backoff.Wait();
        }
      }
    }

    // Acquire pairs with the release in Unlock: what the last holder wrote is seen.
    [[nodiscard]] bool TryLock() noexcept WEIR_TRY_ACQUIRE(true) {
      return (word_.fetch_or(kHeld, std::memory_order_acquire) & kHeld) == 0;
    }

    void Unlock() noexcept WEIR_RELEASE() {
      word_.store(word_.load(std::memory_order_relaxed) & ~kHeld, std::memory_order_release);
    }

    [[nodiscard]] uint32_t head() const noexcept WEIR_REQUIRES(this) { return Glance(); }
    void set_head(uint32_t place) noexcept WEIR_REQUIRES(this) {
      word_.store(place << 1 | kHeld, std::memory_order_relaxed);
    }

    // The head as it may be by now: for asking for memory ahead, and nothing else.
    [[nodiscard]] uint32_t Glance() const noexcept {
      return word_.load(std::memory_order_relaxed) >> 1;
    }

   private:
    static constexpr uint32_t kHeld = 1;

    std::atomic<uint32_t> word_{0};
  };

  class WEIR_SCOPED_CAPABILITY Holder {
   public:
    explicit Holder(Bucket& bucket) noexcept WEIR_ACQUIRE(bucket) : bucket_(bucket) {
      bucket_.Lock();
    }

    ~Holder() WEIR_RELEASE() { bucket_.Unlock(); }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

   private:
    Bucket& bucket_;
  };

  Records(size_t budget_bytes, base::MappedMemory::Pages pages) noexcept;

  [[nodiscard]] bool ok() const noexcept { return memory_.data() != nullptr; }
  [[nodiscard]] bool huge() const noexcept { return memory_.huge(); }
  [[nodiscard]] uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

  [[nodiscard]] Bucket& BucketOf(uint64_t hash) const noexcept {
    return buckets_[base::MulHigh(hash, bucket_count_)];
  }

  // Asks for the memory of the record at this place, if it is one.
  void Fetch(uint32_t place) const noexcept {
    if (place != 0) {
      const std::byte* const record = arena_.At(place);
      __builtin_prefetch(record, 1, 3);
      __builtin_prefetch(record + kFetchedBytes - 1, 1, 3);
    }
  }

  [[nodiscard]] Record* First(const Bucket& bucket) const noexcept WEIR_REQUIRES(bucket) {
    return bucket.head() != 0 ? &At(bucket.head()) : nullptr;
  }

  [[nodiscard]] Record* Find(const Bucket& bucket, uint64_t hash, uint32_t quota) const noexcept
      WEIR_REQUIRES(bucket) {
    for (uint32_t place = bucket.head(); place != 0;) {
      Record& record = At(place);
      if (record.hash == hash && record.quota == quota) {
        return &record;
      }
      place = record.next;
    }
    return nullptr;
  }

  // A record with a body of zeros, in the bucket's list. nullptr: all are live. `floor_ns` says
  // what may be taken back.
  Record* Add(Bucket& bucket, uint64_t hash, uint32_t quota, uint64_t words,
              uint64_t floor_ns) noexcept WEIR_REQUIRES(bucket);

  void Remove(Bucket& bucket, Record& record) noexcept WEIR_REQUIRES(bucket);

 private:
  static constexpr size_t kFetchedBytes = 80;  // of a small record, which may be on two lines
  // A bucket to this many bytes, the size of the smallest records: six percent.
  static constexpr size_t kBytesPerBucket = 64;
  static constexpr uint64_t kSweptAtOnce = 1 << 16;

  [[nodiscard]] Record& At(uint32_t place) const noexcept {
    return *reinterpret_cast<Record*>(arena_.At(place));
  }

  void Sweep(uint64_t floor_ns) noexcept;

  base::MappedMemory memory_;
  Bucket* buckets_ = nullptr;
  uint64_t bucket_count_ = 0;
  Arena arena_;
  std::atomic<uint64_t> count_{0};
  std::atomic<uint64_t> hand_{0};  // the next bucket to sweep
  // Relaxed: at worst a sweep too many, or one that waits for the next floor.
  std::atomic<uint64_t> swept_floor_ns_{0};
  std::atomic<uint64_t> swept_{0};  // buckets, at that floor
};

}  // namespace weir::store
