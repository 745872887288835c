// JSON as text: one string, or a document written piece by piece. Documents are for what is not on
// a hot path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/time.h"

#include "base/byte_buffer.h"

namespace weir::base {

// Appends text as a JSON string, with its quotes. What is not UTF-8 becomes U+FFFD, so that a
// document always is.
void AppendJsonText(ByteBuffer& out, std::string_view text);

class JsonText {
 public:
  JsonText& Begin(char bracket) {
    Separate();
    text_.Append(bracket);
    fresh_ = true;
    return *this;
  }
  JsonText& End(char bracket) {
    text_.Append(bracket);
    fresh_ = false;
    return *this;
  }
  JsonText& Name(std::string_view name) {
    Separate();
    Quote(name);
    text_.Append(':');
    fresh_ = true;
    return *this;
  }
  JsonText& Text(std::string_view value) {
    Separate();
    Quote(value);
    return *this;
  }
  JsonText& Number(uint64_t value) { return Raw(std::to_string(value)); }
  JsonText& Bool(bool value) { return Raw(value ? "true" : "false"); }
  // Seconds, to the millisecond above.
  JsonText& Seconds(Duration value) {
    const int64_t ms = std::chrono::ceil<std::chrono::milliseconds>(value).count();
    std::string number = std::to_string(ms / 1000);
    if (ms % 1000 != 0) {
      std::string part = std::to_string(1000 + ms % 1000).substr(1);
      part.erase(part.find_last_not_of('0') + 1);
      number += "." + part;
    }
    return Raw(number);
  }
  // What is JSON already.
  JsonText& Raw(std::string_view value) {
    Separate();
    text_.Append(value);
    return *this;
  }

  [[nodiscard]] std::string_view text() const noexcept { return text_.view(); }

 private:
  void Separate() {
    if (!fresh_) {
      text_.Append(',');
    }
    fresh_ = false;
  }

  void Quote(std::string_view value) { AppendJsonText(text_, value); }

  ByteBuffer text_;
  bool fresh_ = true;
};

}  // namespace weir::base
