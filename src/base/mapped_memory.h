// A block of zeroed memory straight from the kernel, on huge pages where it grants them.
#pragma once

#include <cstddef>

namespace weir::base {

class MappedMemory {
 public:
  enum class Pages { kDefault, kHuge };

  MappedMemory() = default;
  // Takes and touches all of it at once, so that the memory is either there for good or refused
  // here. data() is nullptr if refused. Aligned to 2 MiB when that large, else to a page.
  MappedMemory(size_t bytes, Pages pages) noexcept;
  ~MappedMemory();
  MappedMemory(MappedMemory&& other) noexcept;
  MappedMemory& operator=(MappedMemory&& other) noexcept;

  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] size_t size() const noexcept { return size_; }
  // Whether the kernel took the advice; it may still back parts with small pages.
  [[nodiscard]] bool huge() const noexcept { return huge_; }

 private:
  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  void* data_ = nullptr;
  size_t size_ = 0;
  bool huge_ = false;
};

}  // namespace weir::base
