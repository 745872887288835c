// Replies of the Redis protocol, version 2 and 3, out of bytes: what a client of Redis reads.
//
// As with CommandParser the caller keeps the bytes and drops consumed() of them; nothing is read
// twice. A reply is a tree in one array, parents before children:
//
//   if (parser.Parse(input) == ReplyState::kReply) {
//     const Reply& reply = parser.reply();              // e.g. an array
//     for (const Reply& element : reply.elements()) …   // each may have elements of its own
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace weir::codec::resp {

enum class ReplyType : uint8_t {
  kSimple,
  kError,  // also the long errors of version 3
  kInteger,
  kBulk,
  kNull,
  kBool,  // integer is 0 or 1
  kDouble,
  kBigNumber,
  kVerbatim,  // text without its format
  kArray,
  kMap,  // elements: name, value, name, value …
  kSet,
  kPush,
};

class Reply {
 public:
  // The elements of one reply, in order; each skips what lies below the one before.
  class Elements;

  ReplyType type = ReplyType::kNull;
  uint32_t size = 0;      // direct elements; a map has two for each pair
  int64_t integer = 0;    // kInteger, kBool
  std::string_view text;  // of everything that is written as text; numbers too

  [[nodiscard]] Elements elements() const noexcept;
  // REQUIRES: index < size.
  [[nodiscard]] const Reply& element(size_t index) const noexcept;
  [[nodiscard]] bool is_aggregate() const noexcept { return type >= ReplyType::kArray; }

 private:
  friend class ReplyParser;
  uint32_t below_ = 0;   // replies in this one, at any depth
  uint32_t offset_ = 0;  // of text, while the reply is not whole and addresses may change
  uint32_t bytes_ = 0;
};

class Reply::Elements {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Reply;
    using difference_type = std::ptrdiff_t;
    using pointer = const Reply*;
    using reference = const Reply&;

    Iterator() = default;
    Iterator(const Reply* at, uint32_t left) noexcept : at_(at), left_(left) {}
    const Reply& operator*() const noexcept { return *at_; }
    const Reply* operator->() const noexcept { return at_; }
    Iterator& operator++() noexcept {
      at_ += 1 + at_->below_;
      --left_;
      return *this;
    }
    Iterator operator++(int) noexcept {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const noexcept { return left_ == other.left_; }

   private:
    const Reply* at_ = nullptr;
    uint32_t left_ = 0;
  };

  Elements(const Reply* first, uint32_t size) noexcept : first_(first), size_(size) {}
  [[nodiscard]] Iterator begin() const noexcept { return {first_, size_}; }
  [[nodiscard]] Iterator end() const noexcept { return {}; }

 private:
  const Reply* first_;
  uint32_t size_;
};

enum class ReplyState : uint8_t { kMore, kReply, kError };

struct ReplyLimits {
  uint32_t depth_max = 4;             // aggregates in one another
  uint32_t bulk_bytes_max = 1 << 20;  // one text
  uint32_t line_bytes_max = 64 << 10;
  uint32_t replies_max = 1 << 16;       // in one reply, at any depth
  uint32_t reply_bytes_max = 64 << 20;  // where the last of them may begin
};

class ReplyParser {
 public:
  explicit ReplyParser(const ReplyLimits& limits = {}) : limits_(limits) {}

  [[nodiscard]] ReplyState Parse(std::string_view input);

  // After kReply: its bytes; the texts point into them.
  [[nodiscard]] size_t consumed() const noexcept { return consumed_; }
  [[nodiscard]] const Reply& reply() const noexcept { return replies_.front(); }

  // After kError: what was found and what is expected.
  [[nodiscard]] std::string_view error() const noexcept { return error_; }

 private:
  enum class Step : uint8_t { kDone, kMore, kError };
  struct Open {  // an aggregate whose elements are still coming
    uint32_t index;
    uint32_t left;
  };

  Step ParseOne(std::string_view input);
  Step ParseText(std::string_view input, Reply reply, int64_t size);
  Step OpenAggregate(Reply reply, int64_t size);
  void Close();
  Step Fail(std::string_view message);
  void Restart() noexcept;

  ReplyLimits limits_;
  size_t consumed_ = 0;
  uint32_t position_ = 0;  // everything before is read
  uint32_t scanned_ = 0;   // no line end between position_ and here
  uint32_t promised_ = 0;  // elements that the heads so far announce
  std::vector<Reply> replies_;
  std::vector<Open> open_;
  std::string error_;
  bool whole_ = false;
};

inline Reply::Elements Reply::elements() const noexcept {
  return {this + 1, size};
}

}  // namespace weir::codec::resp
