#include "store/memory/records.h"

#include <algorithm>
#include <new>

namespace weir::store {

Records::Records(size_t budget_bytes, base::MappedMemory::Pages pages) noexcept
    : memory_(budget_bytes, pages) {
  if (memory_.data() == nullptr) {
    return;
  }
  bucket_count_ = std::max<size_t>(budget_bytes / kBytesPerBucket, 1);
  auto* const bytes = static_cast<std::byte*>(memory_.data());
  buckets_ = reinterpret_cast<Bucket*>(bytes);
  for (uint64_t i = 0; i < bucket_count_; ++i) {
    new (&buckets_[i]) Bucket{};
  }
  constexpr size_t kLine = 64;  // so that records of a line's size are on one
  const size_t bucket_bytes = (bucket_count_ * sizeof(Bucket) + kLine - 1) / kLine * kLine;
  arena_.Use(bytes + bucket_bytes, budget_bytes - bucket_bytes);
}

Record* Records::Add(Bucket& bucket, uint64_t hash, uint32_t quota, uint64_t words,
                     uint64_t floor_ns) noexcept {
  const size_t bytes = sizeof(Record) + words * sizeof(uint64_t);
  uint32_t place = arena_.Take(bytes);
  if (place == 0) {
    Sweep(floor_ns);
    place = arena_.Take(bytes);
  }
  if (place == 0) {
    return nullptr;
  }
  Record* const record = &At(place);
  record->next = bucket.head();
  record->hash = hash;
  record->live_until_ns = 0;
  record->quota = quota;
  record->words = static_cast<uint32_t>(words);
  std::ranges::fill(record->body(), uint64_t{0});
  bucket.set_head(place);
  count_.fetch_add(1, std::memory_order_relaxed);
  return record;
}

void Records::Remove(Bucket& bucket, Record& record) noexcept {
  const uint32_t place = arena_.PlaceOf(&record);
  if (bucket.head() == place) {
    bucket.set_head(record.next);
  } else {
    uint32_t before = bucket.head();
    while (At(before).next != place) {
      before = At(before).next;
    }
    At(before).next = record.next;
  }
  count_.fetch_sub(1, std::memory_order_relaxed);
  arena_.Free(place);
}

// Goes on where the last one stopped. Buckets that somebody holds, the caller's own among them, are
// left for the next round. Once round at one floor is enough: nothing more has expired then, and an
// arena that is full of live records must not cost every new key a sweep.
void Records::Sweep(uint64_t floor_ns) noexcept {
  if (swept_floor_ns_.exchange(floor_ns, std::memory_order_relaxed) != floor_ns) {
    swept_.store(0, std::memory_order_relaxed);
  }
  const uint64_t count = std::min(bucket_count_, kSweptAtOnce);
  if (swept_.fetch_add(count, std::memory_order_relaxed) >= bucket_count_) {
    return;
  }
  const uint64_t begin = hand_.fetch_add(count, std::memory_order_relaxed);
  for (uint64_t i = 0; i < count; ++i) {
    Bucket& bucket = buckets_[(begin + i) % bucket_count_];
    if (!bucket.TryLock()) {
      continue;
    }
    for (uint32_t place = bucket.head(); place != 0;) {
      Record& record = At(place);
      place = record.next;
      if (record.live_until_ns <= floor_ns) {
        Remove(bucket, record);
      }
    }
    bucket.Unlock();
  }
}

}  // namespace weir::store
