// JSON as text, written in order. Small things only: nothing here is on a hot path.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace weir::rules {

class JsonWriter {
 public:
  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& EndArray() { return Close(']'); }

  JsonWriter& Key(std::string_view name) {
    String(name);
    text_ += ':';
    after_key_ = true;
    return *this;
  }
  JsonWriter& Bool(bool value) { return Raw(value ? "true" : "false"); }
  JsonWriter& Number(uint64_t value) { return Raw(std::to_string(value)); }
  // Text that is JSON already.
  JsonWriter& Raw(std::string_view value) {
    Separate();
    text_ += value;
    return *this;
  }
  JsonWriter& String(std::string_view value) {
    Separate();
    text_ += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') {
        text_ += '\\';
        text_ += c;
      } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
        std::array<char, 8> escape{};
        std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
        text_ += escape.data();
      } else {
        text_ += c;
      }
    }
    text_ += '"';
    return *this;
  }

  [[nodiscard]] std::string Take() { return std::move(text_); }

 private:
  void Separate() {
    const bool first = text_.empty() || text_.back() == '{' || text_.back() == '[' || after_key_;
    if (!first) {
      text_ += ',';
    }
    after_key_ = false;
  }
  JsonWriter& Open(char bracket) {
    Separate();
    text_ += bracket;
    return *this;
  }
  JsonWriter& Close(char bracket) {
    text_ += bracket;
    return *this;
  }

  std::string text_;
  bool after_key_ = false;
};

}  // namespace weir::rules
