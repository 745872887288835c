#include "codec/grpc/memory_pool.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

namespace weir::codec::grpc {

namespace {

MemoryPool& Of(void* user_data) {
  return *static_cast<MemoryPool*>(user_data);
}

}  // namespace

MemoryPool::MemoryPool(size_t kept_bytes_max)
    : interface_{.mem_user_data = this,
                 .malloc = [](size_t size, void* pool) { return Of(pool).Take(size); },
                 .free = [](void* memory, void* pool) { Of(pool).Give(memory); },
                 .calloc = [](size_t count, size_t size, void* pool) -> void* {
                   size_t bytes = 0;
                   if (__builtin_mul_overflow(count, size, &bytes)) {
                     return nullptr;
                   }
                   void* const memory = Of(pool).Take(bytes);
                   return memory != nullptr ? std::memset(memory, 0, bytes) : nullptr;
                 },
                 .realloc = [](void* memory, size_t size,
                               void* pool) { return Of(pool).Resize(memory, size); }},
      kept_bytes_max_(kept_bytes_max) {}

MemoryPool::~MemoryPool() {
  for (Head* head : free_) {
    while (head != nullptr) {
      Head* const next = head->next;
      std::free(head);
      head = next;
    }
  }
}

size_t MemoryPool::ClassOf(size_t size) noexcept {
  if (size <= kSmallest) {
    return 0;
  }
  const size_t size_class = static_cast<size_t>(std::bit_width((size - 1) / kSmallest));
  return size_class < kClasses ? size_class : kUnpooled;
}

void* MemoryPool::Take(size_t size) noexcept {
  const size_t size_class = ClassOf(size);
  Head* head = nullptr;
  if (size_class != kUnpooled && free_[size_class] != nullptr) {
    head = free_[size_class];
    free_[size_class] = head->next;
    kept_bytes_ -= SizeOf(size_class);
  } else {
    const size_t room = size_class != kUnpooled ? SizeOf(size_class) : size;
    head = static_cast<Head*>(std::malloc(sizeof(Head) + room));
    ++taken_from_system_;
    if (head == nullptr) {
      return nullptr;
    }
    head->size_class = size_class;
  }
  return head + 1;
}

void MemoryPool::Give(void* memory) noexcept {
  if (memory == nullptr) {
    return;
  }
  Head* const head = static_cast<Head*>(memory) - 1;
  const size_t size_class = head->size_class;
  if (size_class == kUnpooled || kept_bytes_ + SizeOf(size_class) > kept_bytes_max_) {
    std::free(head);
    return;
  }
  kept_bytes_ += SizeOf(size_class);
  head->next = free_[size_class];
  free_[size_class] = head;
}

void* MemoryPool::Resize(void* memory, size_t size) noexcept {
  if (memory == nullptr) {
    return Take(size);
  }
  Head* const head = static_cast<Head*>(memory) - 1;
  if (head->size_class == kUnpooled && ClassOf(size) == kUnpooled) {
    auto* const moved = static_cast<Head*>(std::realloc(head, sizeof(Head) + size));
    ++taken_from_system_;
    return moved != nullptr ? moved + 1 : nullptr;
  }
  if (head->size_class != kUnpooled && size <= SizeOf(head->size_class)) {
    return memory;
  }
  void* const moved = Take(size);
  if (moved != nullptr) {
    // From large to small only where nghttp2 shrinks something beyond the classes.
    const size_t held = head->size_class != kUnpooled ? SizeOf(head->size_class) : size;
    std::memcpy(moved, memory, held < size ? held : size);
    Give(memory);
  }
  return moved;
}

}  // namespace weir::codec::grpc
