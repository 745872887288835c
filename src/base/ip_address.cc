#include "base/ip_address.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace weir::base {

namespace {

constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::array<uint8_t, 12> kNat64 = {0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0};
constexpr std::array<uint8_t, 4> kTeredo = {0x20, 0x01, 0, 0};

bool IsDigit(char c) noexcept {
  return c >= '0' && c <= '9';
}

// Decimal without a leading zero, at most `most`.
std::optional<unsigned> Decimal(std::string_view text, unsigned most) noexcept {
  if (text.empty() || text.size() > 5 || (text[0] == '0' && text.size() > 1) ||
      !std::all_of(text.begin(), text.end(), IsDigit)) {
    return std::nullopt;
  }
  unsigned value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value <= most ? std::optional(value) : std::nullopt;
}

bool ParseV4(std::string_view text, uint8_t* out) noexcept {
  for (int part = 0; part < 4; ++part) {
    const size_t end = part == 3 ? text.size() : text.find('.');
    if (end == std::string_view::npos) {
      return false;
    }
    const auto value = Decimal(text.substr(0, end), 255);
    if (!value) {
      return false;
    }
    out[part] = static_cast<uint8_t>(*value);
    text.remove_prefix(part == 3 ? end : end + 1);
  }
  return true;
}

// One to four hexadecimal digits.
std::optional<unsigned> Group(std::string_view text) noexcept {
  unsigned value = 0;
  if (text.empty() || text.size() > 4) {
    return std::nullopt;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

// Groups between colons into `out`, up to 16 bytes; an IPv4 address may stand for the last two.
std::optional<size_t> ParseGroups(std::string_view text, uint8_t* out) noexcept {
  size_t size = 0;
  while (!text.empty()) {
    const size_t colon = text.find(':');
    const std::string_view group = text.substr(0, colon);
    if (colon == std::string_view::npos && group.find('.') != std::string_view::npos) {
      return size <= 12 && ParseV4(group, out + size) ? std::optional(size + 4) : std::nullopt;
    }
    const auto value = Group(group);
    if (!value || size == 16) {
      return std::nullopt;
    }
    out[size++] = static_cast<uint8_t>(*value >> 8);
    out[size++] = static_cast<uint8_t>(*value & 0xff);
    if (colon == std::string_view::npos) {
      break;
    }
    text.remove_prefix(colon + 1);
    if (text.empty()) {
      return std::nullopt;  // ends with a colon
    }
  }
  return size;
}

bool ParseV6(std::string_view text, std::array<uint8_t, 16>& out) noexcept {
  const size_t gap = text.find("::");
  if (gap == std::string_view::npos) {
    return ParseGroups(text, out.data()) == 16;
  }
  std::array<uint8_t, 16> tail{};
  const std::string_view before = text.substr(0, gap);
  if (before.find('.') != std::string_view::npos) {
    return false;  // an IPv4 address stands at the end only
  }
  const auto head_size = ParseGroups(before, out.data());
  const auto tail_size = ParseGroups(text.substr(gap + 2), tail.data());
  // "::" stands for one group at least.
  if (!head_size || !tail_size || *head_size + *tail_size > 14) {
    return false;
  }
  std::copy_n(tail.begin(), *tail_size, out.end() - static_cast<ptrdiff_t>(*tail_size));
  return true;
}

char* WriteNumber(char* at, char* end, unsigned value, int base) noexcept {
  return std::to_chars(at, end, value, base).ptr;
}

}  // namespace

std::optional<IpAddress> IpAddress::Parse(std::string_view text) noexcept {
  IpAddress address;
  if (text.find(':') == std::string_view::npos) {
    address.is_v4 = true;
    return ParseV4(text, address.bytes.data()) ? std::optional(address) : std::nullopt;
  }
  if (const size_t zone = text.find('%'); zone != std::string_view::npos) {
    if (zone + 1 == text.size()) {
      return std::nullopt;
    }
    text = text.substr(0, zone);
  }
  return ParseV6(text, address.bytes) ? std::optional(address) : std::nullopt;
}

std::optional<IpAddress> IpAddress::ParseWithPort(std::string_view text) noexcept {
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) {
      return std::nullopt;
    }
    const std::string_view inside = text.substr(1, end - 1);
    const std::string_view behind = text.substr(end + 1);
    const bool port = behind.starts_with(':') && Decimal(behind.substr(1), 65535).has_value();
    const bool is_v6 = inside.find(':') != std::string_view::npos;
    return is_v6 && (behind.empty() || port) ? Parse(inside) : std::nullopt;
  }
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos && text.find(':', colon + 1) == std::string_view::npos) {
    return Decimal(text.substr(colon + 1), 65535) ? Parse(text.substr(0, colon)) : std::nullopt;
  }
  return Parse(text);
}

IpAddress IpAddress::Unwrapped() const noexcept {
  const auto begins = [this](const auto& prefix) {
    return std::equal(prefix.begin(), prefix.end(), bytes.begin());
  };
  const bool is_teredo = begins(kTeredo);
  if (is_v4 || (!is_teredo && !begins(kMapped) && !begins(kNat64))) {
    return *this;
  }
  IpAddress inside;
  inside.is_v4 = true;
  std::copy_n(bytes.begin() + 12, 4, inside.bytes.begin());
  if (is_teredo) {  // the client's, with its bits turned over (RFC 4380)
    std::transform(inside.bytes.begin(), inside.bytes.begin() + 4, inside.bytes.begin(),
                   [](uint8_t byte) { return static_cast<uint8_t>(~byte); });
  }
  return inside;
}

IpAddress IpAddress::Masked(unsigned kept) const noexcept {
  IpAddress masked = *this;
  if (kept >= bits()) {
    return masked;
  }
  const unsigned whole = kept / 8;
  masked.bytes[whole] &= static_cast<uint8_t>(0xff00U >> (kept % 8));
  std::fill(masked.bytes.begin() + whole + 1, masked.bytes.end(), uint8_t{0});
  return masked;
}

std::string_view IpAddress::Format(std::span<char, kTextBytes> out) const noexcept {
  char* at = out.data();
  char* const end = at + out.size();
  const auto done = [&] {
    return std::string_view(out.data(), static_cast<size_t>(at - out.data()));
  };
  if (is_v4) {
    for (size_t i = 0; i < 4; ++i) {
      if (i != 0) {
        *at++ = '.';
      }
      at = WriteNumber(at, end, bytes[i], 10);
    }
    return done();
  }
  const auto group = [this](size_t i) { return unsigned{bytes[2 * i]} << 8 | bytes[2 * i + 1]; };
  size_t gap = 8;  // the longest run of zero groups, of two at least
  size_t gap_size = 1;
  for (size_t i = 0; i < 8; ++i) {
    size_t size = 0;
    while (i + size < 8 && group(i + size) == 0) {
      ++size;
    }
    if (size > gap_size) {
      gap = i;
      gap_size = size;
    }
  }
  for (size_t i = 0; i < 8; ++i) {
    if (i == gap) {
      *at++ = ':';
      *at++ = ':';
      i += gap_size - 1;
      continue;
    }
    if (i != 0 && at[-1] != ':') {
      *at++ = ':';
    }
    at = WriteNumber(at, end, group(i), 16);
  }
  return done();
}

std::optional<IpPrefix> IpPrefix::Parse(std::string_view text) noexcept {
  const size_t slash = text.find('/');
  if (text.find('%') != std::string_view::npos) {
    return std::nullopt;  // a zone has no prefixes
  }
  const auto address = IpAddress::Parse(text.substr(0, slash));
  if (!address) {
    return std::nullopt;
  }
  const auto bits = slash == std::string_view::npos
                        ? std::optional(address->bits())
                        : Decimal(text.substr(slash + 1), address->bits());
  if (!bits || address->Masked(*bits) != *address) {
    return std::nullopt;
  }
  return IpPrefix{*address, *bits};
}

bool IpPrefix::Contains(const IpAddress& other) const noexcept {
  return other.is_v4 == address.is_v4 && other.Masked(bits) == address;
}

}  // namespace weir::base
