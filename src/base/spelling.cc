#include "base/spelling.h"

#include <algorithm>
#include <array>
#include <limits>

namespace weir::base {

namespace {

char Lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

size_t SpellingDistance(std::string_view a, std::string_view b) noexcept {
  constexpr size_t kMost = kMaxWordBytes;
  if (a.size() > kMost || b.size() > kMost) {
    return std::numeric_limits<size_t>::max();
  }
  std::array<size_t, kMost + 1> row{};
  for (size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (Lower(a[i - 1]) == Lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

std::string Quoted(std::string_view text, size_t max_bytes) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text.substr(0, max_bytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e || c == '"' || c == '\\') {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += text.size() > max_bytes ? "...\"" : "\"";
  return out;
}

}  // namespace weir::base
