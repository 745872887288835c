// The KEYS and ARGV of a call in one piece of memory, kept from call to call: once it has grown,
// nothing is allocated.
#pragma once

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "store/redis/key_name.h"

namespace weir::script {

class TextList {
 public:
  void Clear() noexcept {
    bytes_.clear();
    ends_.clear();
    keys_count_ = 0;
  }

  // Keys come before arguments.
  void AddKey(const KeyName& name) {
    Put(name.view());
    End();
    ++keys_count_;
  }

  void Add(std::string_view text) {
    Put(text);
    End();
  }

  void AddNumber(uint64_t number) {
    char digits[20];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    Add(std::string_view(digits, static_cast<size_t>(end - digits)));
  }

  // Parts of an argument; End closes it. Numbers are below 2^53, and so exact.
  void Put(std::string_view text) { bytes_.insert(bytes_.end(), text.begin(), text.end()); }
  void Put(double number) {
    auto word = std::bit_cast<uint64_t>(number);
    if constexpr (std::endian::native == std::endian::big) {
      word = __builtin_bswap64(word);
    }
    char bytes[sizeof word];
    std::memcpy(bytes, &word, sizeof word);
    Put(std::string_view(bytes, sizeof bytes));
  }
  void Put(uint64_t number) { Put(static_cast<double>(number)); }
  void End() { ends_.push_back(bytes_.size()); }

  // After the last one, before keys() and arguments().
  void Seal() {
    views_.clear();
    size_t begin = 0;
    for (const size_t end : ends_) {
      views_.emplace_back(bytes_.data() + begin, end - begin);
      begin = end;
    }
  }

  [[nodiscard]] std::span<const std::string_view> keys() const noexcept {
    return std::span(views_).first(keys_count_);
  }
  [[nodiscard]] std::span<const std::string_view> arguments() const noexcept {
    return std::span(views_).subspan(keys_count_);
  }

 private:
  std::vector<char> bytes_;
  std::vector<size_t> ends_;
  std::vector<std::string_view> views_;
  size_t keys_count_ = 0;
};

}  // namespace weir::script
