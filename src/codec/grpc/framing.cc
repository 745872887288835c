#include "codec/grpc/framing.h"

#include "base/same_text.h"

namespace weir::codec::grpc {

Prefix ReadPrefix(std::string_view bytes) noexcept {
  Prefix prefix;
  prefix.compressed = bytes[0] != 0;
  for (size_t i = 1; i < kPrefixBytes; ++i) {
    prefix.size = (prefix.size << 8) | static_cast<uint8_t>(bytes[i]);
  }
  return prefix;
}

void WritePrefix(uint32_t size, char* to) noexcept {
  to[0] = 0;
  for (size_t i = 1; i < kPrefixBytes; ++i) {
    to[i] = static_cast<char>(size >> (8 * (kPrefixBytes - 1 - i)));
  }
}

std::optional<Duration> ParseTimeout(std::string_view text) noexcept {
  constexpr size_t kDigitsMax = 8;
  if (text.size() < 2 || text.size() > kDigitsMax + 1) {
    return std::nullopt;
  }
  int64_t number = 0;
  for (const char digit : text.substr(0, text.size() - 1)) {
    if (digit < '0' || digit > '9') {
      return std::nullopt;
    }
    number = number * 10 + (digit - '0');
  }
  // 10^8 hours are 3.6 * 10^20 ns, more than 64 bits hold; a year is as good as for ever.
  constexpr auto kMost = std::chrono::hours(24 * 365);
  switch (text.back()) {
    case 'H':
      return std::min<Duration>(std::chrono::hours(std::min<int64_t>(number, kMost.count())),
                                kMost);
    case 'M':
      return std::min<Duration>(std::chrono::minutes(number), kMost);
    case 'S':
      return std::min<Duration>(std::chrono::seconds(number), kMost);
    case 'm':
      return std::chrono::milliseconds(number);
    case 'u':
      return std::chrono::microseconds(number);
    case 'n':
      return std::chrono::nanoseconds(number);
    default:
      return std::nullopt;
  }
}

ContentType ParseContentType(std::string_view text) noexcept {
  constexpr std::string_view kBase = "application/grpc";
  if (!base::SameLetters(text.substr(0, kBase.size()), kBase)) {
    return ContentType::kOther;
  }
  text.remove_prefix(kBase.size());
  if (text.empty() || text.front() == ';') {
    return ContentType::kGrpc;
  }
  if (text.front() != '+') {
    return ContentType::kOther;  // application/grpc-web, for one
  }
  const std::string_view encoding = text.substr(1, text.find(';') - 1);
  return base::SameLetters(encoding, "proto") ? ContentType::kGrpc : ContentType::kEncoding;
}

std::string PercentEncode(std::string_view message, size_t bytes_max) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char character : message.substr(0, bytes_max)) {
    const auto byte = static_cast<uint8_t>(character);
    if (byte >= 0x20 && byte <= 0x7e && byte != '%') {
      encoded += character;
    } else {
      encoded += '%';
      encoded += kDigits[byte >> 4];
      encoded += kDigits[byte & 15];
    }
  }
  return encoded;
}

}  // namespace weir::codec::grpc
