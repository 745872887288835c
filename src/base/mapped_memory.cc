#include "base/mapped_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <utility>

namespace weir::base {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kSmallPage = 4096;

size_t RoundUp(size_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

MappedMemory::MappedMemory(size_t bytes, Pages pages) noexcept {
  const size_t alignment = bytes >= kHugePage ? kHugePage : kSmallPage;
  const size_t mapping_bytes = RoundUp(bytes, kSmallPage) + (alignment - kSmallPage);
  void* const mapping =
      mmap(nullptr, mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return;
  }
  mapping_ = mapping;
  mapping_bytes_ = mapping_bytes;
  const auto start = reinterpret_cast<uintptr_t>(mapping);
  data_ = reinterpret_cast<void*>(RoundUp(start, alignment));
  size_ = bytes;
  if (pages == Pages::kHuge && alignment == kHugePage) {
    huge_ = madvise(data_, bytes, MADV_HUGEPAGE) == 0;
  }
  // Volatile: the stores must happen although they change nothing.
  auto* const byte = static_cast<volatile char*>(data_);
  for (size_t i = 0; i < bytes; i += kSmallPage) {
    byte[i] = 0;
  }
}

MappedMemory::~MappedMemory() {
  if (mapping_ != nullptr) {
    munmap(mapping_, mapping_bytes_);
  }
}

MappedMemory::MappedMemory(MappedMemory&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(std::exchange(other.mapping_bytes_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      huge_(std::exchange(other.huge_, false)) {}

MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(huge_, other.huge_);
  return *this;
}

}  // namespace weir::base
