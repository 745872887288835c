// Writes into room that was asked for once. For answers of many small pieces, whose greatest length
// is known before the first: none of them has to look whether it fits.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/byte_buffer.h"
#include "base/decimal.h"

namespace weir::base {

class Pen {
 public:
  // REQUIRES: not more than `most` bytes are written, and nothing else to `out` meanwhile.
  Pen(ByteBuffer& out, size_t most) : out_(out), begin_(out.Reserve(most)), at_(begin_) {
#ifndef NDEBUG
    end_ = begin_ + most;
#endif
  }
  ~Pen() {
    assert(at_ <= end_);
    out_.Commit(static_cast<size_t>(at_ - begin_));
  }

  Pen(const Pen&) = delete;
  Pen& operator=(const Pen&) = delete;

  // Always inline: a literal's length is then known, and it is copied in one or two moves.
  [[gnu::always_inline]] void Append(std::string_view text) noexcept {
    assert(text.size() <= static_cast<size_t>(end_ - at_));
    if (!text.empty()) {
      std::memcpy(at_, text.data(), text.size());
      at_ += text.size();
    }
  }
  // The same without a call, by whole blocks. REQUIRES: kBlockBytes more than `bytes` may be read
  // and written.
  static constexpr size_t kBlockBytes = 32;
  void AppendBlocks(const char* text, size_t bytes) noexcept {
    assert(bytes + kBlockBytes <= static_cast<size_t>(end_ - at_));
    for (size_t done = 0; done < bytes; done += kBlockBytes) {
      std::memcpy(at_ + done, text + done, kBlockBytes);
    }
    at_ += bytes;
  }
  void Append(char character) noexcept { *at_++ = character; }
  void AppendNumber(uint64_t number) noexcept { at_ = WriteDecimal(at_, number); }

  // Where the next byte goes; and back to such a place.
  [[nodiscard]] char* at() const noexcept { return at_; }
  void MoveTo(char* place) noexcept { at_ = place; }

 private:
  ByteBuffer& out_;
  char* begin_;
  char* at_;
#ifndef NDEBUG
  char* end_;
#endif
};

}  // namespace weir::base
