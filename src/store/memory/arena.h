// Blocks of any size from one piece of memory. A block that becomes free is joined with the free
// ones beside it, and a free one is cut to what is asked for: what small blocks have left serves
// large ones, and the other way round. Taking and freeing cost the same however many there are.
//
// Blocks are whole units of 16 bytes and are known by their place, counted in these; place 0 is
// none. Every block begins with a tag, [its units:31 | the block before it is free:1], which is
// ours also while the block is in use; all else is its owner's then. A free one goes on with its
// neighbours in the list of its class and ends with its units, so that the block behind it finds
// its beginning. Classes are a sixteenth apart; what is asked for is rounded up to one, so that a
// block that comes back in its size serves the next of that size.
//
// Two free blocks are never neighbours, and the last block is in use: what is behind it was never
// used or is no block any more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/mutex.h"

namespace weir::store {

class Arena {
 public:
  static constexpr size_t kUnit = 16;
  static constexpr uint32_t kPlaceMax = ~uint32_t{0} >> 1;  // 32 GiB; more than that is not used

  // Uses none of the memory before something is taken.
  void Use(std::byte* memory, size_t bytes) noexcept;

  // A block of at least so many bytes, but for its tag as whoever had it last left it; 0 if there
  // is none.
  [[nodiscard]] uint32_t Take(size_t bytes) noexcept;
  void Free(uint32_t place) noexcept;

  [[nodiscard]] std::byte* At(uint32_t place) const noexcept {
    return memory_ + size_t{place} * kUnit;
  }

  [[nodiscard]] uint32_t PlaceOf(const void* block) const noexcept {
    return static_cast<uint32_t>((static_cast<const std::byte*>(block) - memory_) /
                                 static_cast<ptrdiff_t>(kUnit));
  }

 private:
  struct FreeBlock {
    uint32_t tag;
    uint32_t next;      // in the list of its class, 0 ends it
    uint32_t previous;  // 0: the first
    uint32_t units;     // in the last unit of the block, which may be this one
  };
  static_assert(sizeof(FreeBlock) == kUnit);

  static constexpr unsigned kClasses = 512;
  static constexpr uint32_t kFirst = 64 / kUnit;  // so that records of a line's size are on one

  [[nodiscard]] FreeBlock& BlockAt(uint32_t place) const noexcept {
    return *reinterpret_cast<FreeBlock*>(At(place));
  }
  [[nodiscard]] uint32_t EndOf(uint32_t place) const noexcept WEIR_REQUIRES(mutex_) {
    return place + (BlockAt(place).tag >> 1);
  }
  [[nodiscard]] bool IsFree(uint32_t place) const noexcept WEIR_REQUIRES(mutex_);
  void Link(uint32_t place, uint32_t end) noexcept WEIR_REQUIRES(mutex_);
  void Unlink(uint32_t place) noexcept WEIR_REQUIRES(mutex_);
  [[nodiscard]] unsigned FirstClassFrom(unsigned size_class) const noexcept WEIR_REQUIRES(mutex_);

  std::byte* memory_ = nullptr;
  base::Mutex mutex_;
  uint32_t taken_ WEIR_GUARDED_BY(mutex_) = kFirst;  // the end of the last block
  uint32_t end_ WEIR_GUARDED_BY(mutex_) = kFirst;
  uint32_t lists_[kClasses] WEIR_GUARDED_BY(mutex_) = {};
  std::array<uint64_t, kClasses / 64> some_ WEIR_GUARDED_BY(mutex_) = {};  // lists with blocks
};

}  // namespace weir::store
