#include "store/memory/arena.h"

#include <algorithm>
#include <bit>

namespace weir::store {

namespace {

constexpr uint32_t kAfterFree = 1;  // in a tag

// Sizes with four bits after the leading one.
unsigned ShiftOf(uint32_t units) noexcept {
  return std::max(static_cast<unsigned>(std::bit_width(units)), 5U) - 5;
}

// The largest class whose size a block of so many units has.
unsigned ClassOf(uint32_t units) noexcept {
  const unsigned shift = ShiftOf(units);
  return shift * 16 + (units >> shift);
}

uint32_t RoundedUp(uint32_t units) noexcept {
  const uint32_t step = uint32_t{1} << ShiftOf(units);
  return (units + step - 1) & ~(step - 1);
}

}  // namespace

void Arena::Use(std::byte* memory, size_t bytes) noexcept {
  memory_ = memory;
  const base::MutexLock lock(mutex_);
  end_ = static_cast<uint32_t>(std::min<size_t>(bytes / kUnit, kPlaceMax));
}

uint32_t Arena::Take(size_t bytes) noexcept {
  const size_t least = (bytes + kUnit - 1) / kUnit;
  if (least > kPlaceMax) {
    return 0;
  }
  const uint32_t units = RoundedUp(static_cast<uint32_t>(least));
  const base::MutexLock lock(mutex_);
  if (const unsigned found = FirstClassFrom(ClassOf(units)); found != kClasses) {
    const uint32_t place = lists_[found];
    const uint32_t end = EndOf(place);
    Unlink(place);
    BlockAt(place).tag = units << 1;
    if (place + units != end) {
      Link(place + units, end);
    } else {
      BlockAt(end).tag &= ~kAfterFree;
    }
    return place;
  }
  if (taken_ >= end_ || units > end_ - taken_) {
    return 0;
  }
  const uint32_t place = taken_;
  taken_ += units;
  BlockAt(place).tag = units << 1;
  return place;
}

void Arena::Free(uint32_t place) noexcept {
  const base::MutexLock lock(mutex_);
  uint32_t begin = place;
  uint32_t end = EndOf(place);
  if ((BlockAt(place).tag & kAfterFree) != 0) {
    begin -= BlockAt(place - 1).units;
    Unlink(begin);
  }
  if (end == taken_) {
    taken_ = begin;
    return;
  }
  if (IsFree(end)) {
    const uint32_t behind = end;
    end = EndOf(behind);
    Unlink(behind);
  }
  Link(begin, end);
}

bool Arena::IsFree(uint32_t place) const noexcept {
  const uint32_t end = EndOf(place);
  return end != taken_ && (BlockAt(end).tag & kAfterFree) != 0;
}

// REQUIRES: the blocks on both sides are in use.
void Arena::Link(uint32_t place, uint32_t end) noexcept {
  const uint32_t units = end - place;
  const unsigned size_class = ClassOf(units);
  uint32_t& first = lists_[size_class];
  FreeBlock& block = BlockAt(place);
  block.tag = units << 1;
  block.next = first;
  block.previous = 0;
  BlockAt(end - 1).units = units;
  BlockAt(end).tag |= kAfterFree;
  if (first != 0) {
    BlockAt(first).previous = place;
  }
  first = place;
  some_[size_class / 64] |= uint64_t{1} << size_class % 64;
}

void Arena::Unlink(uint32_t place) noexcept {
  const FreeBlock& block = BlockAt(place);
  if (block.next != 0) {
    BlockAt(block.next).previous = block.previous;
  }
  if (block.previous != 0) {
    BlockAt(block.previous).next = block.next;
    return;
  }
  const unsigned size_class = ClassOf(block.tag >> 1);
  lists_[size_class] = block.next;
  if (block.next == 0) {
    some_[size_class / 64] &= ~(uint64_t{1} << size_class % 64);
  }
}

unsigned Arena::FirstClassFrom(unsigned size_class) const noexcept {
  uint64_t some = some_[size_class / 64] & (~uint64_t{0} << size_class % 64);
  for (size_t i = size_class / 64;;) {
    if (some != 0) {
      return static_cast<unsigned>(i * 64) + static_cast<unsigned>(std::countr_zero(some));
    }
    if (++i == some_.size()) {
      return kClasses;
    }
    some = some_[i];
  }
}

}  // namespace weir::store
