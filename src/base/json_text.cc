#include "base/json_text.h"

#include <cstddef>
#include <cstdint>

namespace weir::base {
namespace {

// Bytes of the UTF-8 character that the text begins with; 0 if that is none (RFC 3629: no longer
// forms than needed, no surrogates, nothing above U+10FFFF).
size_t CharacterBytes(std::string_view text) {
  const auto byte = [text](size_t at) {
    return at < text.size() ? static_cast<uint8_t>(text[at]) : uint8_t{0};
  };
  const auto continues = [&](size_t at) { return (byte(at) & 0xC0) == 0x80; };
  const uint8_t first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xC2 && first <= 0xDF) {
    return continues(1) ? 2 : 0;
  }
  if (first >= 0xE0 && first <= 0xEF) {
    const bool second = first == 0xE0   ? byte(1) >= 0xA0 && byte(1) <= 0xBF
                        : first == 0xED ? byte(1) >= 0x80 && byte(1) <= 0x9F
                                        : continues(1);
    return second && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool second = first == 0xF0   ? byte(1) >= 0x90 && byte(1) <= 0xBF
                        : first == 0xF4 ? byte(1) >= 0x80 && byte(1) <= 0x8F
                                        : continues(1);
    return second && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

void AppendJsonText(ByteBuffer& out, std::string_view text) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  out.Append('"');
  while (!text.empty()) {
    const char character = text.front();
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) {
      out.Append("\\ufffd");
      text.remove_prefix(1);
      continue;
    }
    if (character == '"' || character == '\\') {
      out.Append('\\');
      out.Append(character);
    } else if (static_cast<uint8_t>(character) < 0x20) {
      out.Append("\\u00");
      out.Append(kHexDigits[static_cast<uint8_t>(character) >> 4]);
      out.Append(kHexDigits[static_cast<uint8_t>(character) & 15]);
    } else {
      out.Append(text.substr(0, bytes));
    }
    text.remove_prefix(bytes);
  }
  out.Append('"');
}

}  // namespace weir::base
