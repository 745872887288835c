// Memory for nghttp2, which takes and gives back eight pieces a call: freed pieces wait in lists by
// size. For one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <nghttp2/nghttp2.h>

namespace weir::codec::grpc {

class MemoryPool {
 public:
  // At most `kept_bytes_max` wait; what is beyond goes back to the system. 0 pools nothing, for
  // those who look for misuse of memory.
  explicit MemoryPool(size_t kept_bytes_max = size_t{8} << 20);
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool();

  // For nghttp2_session_server_new3. All sessions must be gone before the pool is.
  [[nodiscard]] nghttp2_mem* interface() noexcept { return &interface_; }

  // Pieces that no list had, so far.
  [[nodiscard]] uint64_t taken_from_system() const noexcept { return taken_from_system_; }

  void* Take(size_t size) noexcept;
  void Give(void* memory) noexcept;
  void* Resize(void* memory, size_t size) noexcept;

 private:
  static constexpr size_t kSmallest = 64;
  static constexpr size_t kClasses = 10;  // up to 32 KiB
  static constexpr size_t kUnpooled = kClasses;

  // In front of each piece, and as aligned as malloc's.
  struct alignas(16) Head {
    size_t size_class;
    Head* next;
  };

  static size_t ClassOf(size_t size) noexcept;
  static size_t SizeOf(size_t size_class) noexcept { return kSmallest << size_class; }

  nghttp2_mem interface_;
  std::array<Head*, kClasses> free_{};
  size_t kept_bytes_ = 0;
  uint64_t taken_from_system_ = 0;
  const size_t kept_bytes_max_;
};

}  // namespace weir::codec::grpc
