#include "store/memory/records.h"

#include <algorithm>
#include <bit>
#include <new>

namespace weir::store {

namespace {

struct SizeClass {
  unsigned index;
  size_t bytes;
};

// Sizes with four bits after the leading one, so that at most a sixteenth is left unused; the
// smallest are multiples of 16, as all places are.
SizeClass ClassOf(size_t bytes) noexcept {
  constexpr size_t kSmallMax = 256;
  if (bytes <= kSmallMax) {
    const size_t units = (bytes + 15) / 16;
    return {static_cast<unsigned>(units), units * 16};
  }
  const auto shift = static_cast<unsigned>(std::bit_width(bytes)) - 5;
  const size_t steps = (bytes + (size_t{1} << shift) - 1) >> shift;  // 16 to 32
  return {shift * 16 + static_cast<unsigned>(steps - 16), steps << shift};
}

}  // namespace

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
  arena_ = bytes + bucket_bytes;
  const base::MutexLock lock(mutex_);
  // Places reach 32 GiB; more than that is not used.
  end_ = std::min(budget_bytes - bucket_bytes, size_t{kPlaceMax} * kUnit);
}

Record* Records::Take(unsigned size_class, size_t bytes) noexcept {
  const base::MutexLock lock(mutex_);
  if (const uint32_t place = free_[size_class]; place != 0) {
    Record& record = At(place);
    free_[size_class] = record.next;
    return &record;
  }
  if (bytes > end_ || taken_ > end_ - bytes) {
    return nullptr;
  }
  auto* const record = new (arena_ + taken_) Record{};
  taken_ += bytes;
  return record;
}

void Records::Free(Record& record) noexcept {
  const base::MutexLock lock(mutex_);
  record.next = free_[record.size_class];
  free_[record.size_class] = PlaceOf(record);
}

Record* Records::Add(Bucket& bucket, uint64_t hash, uint32_t quota, uint64_t words,
                     uint64_t floor_ns) noexcept {
  const SizeClass size = ClassOf(sizeof(Record) + words * sizeof(uint64_t));
  Record* record = Take(size.index, size.bytes);
  if (record == nullptr) {
    Sweep(floor_ns);
    record = Take(size.index, size.bytes);
  }
  if (record == nullptr) {
    return nullptr;
  }
  *record = Record{.hash = hash,
                   .live_until_ns = 0,
                   .next = bucket.head(),
                   .quota = quota,
                   .words = static_cast<uint32_t>(words),
                   .size_class = size.index};
  std::ranges::fill(record->body(), uint64_t{0});
  bucket.set_head(PlaceOf(*record));
  count_.fetch_add(1, std::memory_order_relaxed);
  return record;
}

void Records::Remove(Bucket& bucket, Record& record) noexcept {
  const uint32_t place = PlaceOf(record);
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
  Free(record);
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
