// Bytes on their way out: appended at the end, taken from the front.
//
// Codecs write into it and connections send from it. It keeps its memory, so that a warm connection
// does not allocate.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/decimal.h"

namespace weir::base {

class ByteBuffer {
 public:
  [[nodiscard]] size_t size() const noexcept { return end_ - begin_; }
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
  [[nodiscard]] size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] const char* data() const noexcept { return bytes_.get() + begin_; }
  [[nodiscard]] std::string_view view() const noexcept { return {data(), size()}; }
  [[nodiscard]] std::span<char> span() noexcept { return {bytes_.get() + begin_, size()}; }

  // Room for `size` bytes at the end, which Commit then makes part of the content.
  [[nodiscard]] char* Reserve(size_t size) {
    if (capacity_ - end_ < size) {
      Grow(size);
    }
    return bytes_.get() + end_;
  }

  // REQUIRES: size <= what Reserve gave room for.
  void Commit(size_t size) noexcept { end_ += size; }

  void Append(std::string_view text) {
    if (!text.empty()) {
      std::memcpy(Reserve(text.size()), text.data(), text.size());
      Commit(text.size());
    }
  }

  void Append(char character) {
    *Reserve(1) = character;
    Commit(1);
  }

  void AppendNumber(int64_t number) { AppendDigits(number); }
  void AppendNumber(uint64_t number) { AppendDigits(number); }

  // Takes bytes from the front. REQUIRES: size <= size().
  void Consume(size_t size) noexcept {
    begin_ += size;
    if (begin_ == end_) {
      begin_ = end_ = 0;
    }
  }

  // Drops what was appended after the content had this size. REQUIRES: size <= size().
  void Truncate(size_t size) noexcept { end_ = begin_ + size; }

  void Clear() noexcept { begin_ = end_ = 0; }

  void Swap(ByteBuffer& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(capacity_, other.capacity_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
  }

  // Gives the memory back if it is more than `most` and nothing is in it.
  void Shrink(size_t most) noexcept {
    if (empty() && capacity_ > most) {
      bytes_.reset();
      capacity_ = begin_ = end_ = 0;
    }
  }

 private:
  template <class Number>
  void AppendDigits(Number number) {
    char* const to = Reserve(kDecimalBytesMax);
    Commit(static_cast<size_t>(WriteDecimal(to, number) - to));
  }

  void Grow(size_t size) {
    const size_t held = this->size();
    if (begin_ != 0 && capacity_ - held >= size && held <= begin_) {
      std::memcpy(bytes_.get(), data(), held);  // the front has room, and the parts do not overlap
    } else {
      constexpr size_t kSmallest = 4096;
      capacity_ = std::max({kSmallest, 2 * capacity_, held + size});
      auto larger = std::make_unique_for_overwrite<char[]>(capacity_);
      if (held != 0) {
        std::memcpy(larger.get(), data(), held);
      }
      bytes_ = std::move(larger);
    }
    begin_ = 0;
    end_ = held;
  }

  std::unique_ptr<char[]> bytes_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace weir::base
