// Replies of the Redis protocol into a buffer, in version 2 or 3.
//
// One set of calls for both: a map is a flat array in version 2, null is "$-1", a double is a bulk
// string, a boolean is 0 or 1, a push is an array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "base/byte_buffer.h"

namespace weir::codec::resp {

enum class Protocol : uint8_t { k2 = 2, k3 = 3 };

class Writer {
 public:
  Writer(base::ByteBuffer& out, Protocol protocol) noexcept : out_(out), protocol_(protocol) {}

  [[nodiscard]] Protocol protocol() const noexcept { return protocol_; }
  void set_protocol(Protocol protocol) noexcept { protocol_ = protocol; }

  // One line each. A CR, LF or NUL in the text is written as a space: it would end the reply early.
  void Simple(std::string_view text) { Line('+', text); }
  void Error(std::string_view text) { Line('-', text); }  // begins with its code: "ERR …"
  void Ok() { out_.Append("+OK\r\n"); }

  void Integer(int64_t number);
  // An array of integers, in one go: what CL.THROTTLE answers.
  void Integers(std::span<const int64_t> numbers);
  void Integers(std::initializer_list<int64_t> numbers) {
    Integers(std::span(numbers.begin(), numbers.size()));
  }

  void Bulk(std::string_view text);
  void Verbatim(std::string_view text);  // text for people: "txt:" in version 3
  void Null();
  void Bool(bool value);
  void Double(double number);

  // Each is followed by that many replies; a map by twice as many.
  void Array(size_t size) { Head('*', size); }
  void Map(size_t pairs);
  void Set(size_t size) { Head(protocol_ == Protocol::k3 ? '~' : '*', size); }
  void Push(size_t size) { Head(protocol_ == Protocol::k3 ? '>' : '*', size); }

 private:
  void Line(char type, std::string_view text);
  void Head(char type, size_t size);

  base::ByteBuffer& out_;
  Protocol protocol_;
};

}  // namespace weir::codec::resp
