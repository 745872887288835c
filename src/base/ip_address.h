// IP addresses and prefixes: read strictly, compared, masked and written without allocation.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weir::base {

struct IpAddress {
  static constexpr size_t kTextBytes = 45;  // the longest that Format writes

  std::array<uint8_t, 16> bytes{};  // IPv4: the first four, the rest 0
  bool is_v4 = false;

  // Four decimal parts without leading zeros (which some read as octal), or RFC 4291 with at most
  // one "::". A zone id (fe80::1%eth0) is read over: it says where a packet came in, not from whom.
  [[nodiscard]] static std::optional<IpAddress> Parse(std::string_view text) noexcept;
  // The same, and with a port behind it: 192.0.2.1:80, [2001:db8::1]:80, [2001:db8::1].
  [[nodiscard]] static std::optional<IpAddress> ParseWithPort(std::string_view text) noexcept;

  [[nodiscard]] constexpr unsigned bits() const noexcept { return is_v4 ? 32 : 128; }

  // The IPv4 address inside a v4-mapped (::ffff:0:0/96), NAT64 (64:ff9b::/96) or Teredo (2001::/32)
  // one; itself otherwise.
  [[nodiscard]] IpAddress Unwrapped() const noexcept;
  // All but the first `kept` bits cleared.
  [[nodiscard]] IpAddress Masked(unsigned kept) const noexcept;

  // RFC 5952: lower case, the longest run of zeros as "::". Returns what was written.
  [[nodiscard]] std::string_view Format(std::span<char, kTextBytes> out) const noexcept;

  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

struct IpPrefix {
  IpAddress address;  // masked
  unsigned bits = 0;

  // "10.0.0.0/8"; an address alone is a prefix of all its bits. Bits beyond the length are refused:
  // 10.0.0.1/8 is more often a slip than a network.
  [[nodiscard]] static std::optional<IpPrefix> Parse(std::string_view text) noexcept;

  // False for an address of the other family: unwrap first.
  [[nodiscard]] bool Contains(const IpAddress& other) const noexcept;

  friend bool operator==(const IpPrefix&, const IpPrefix&) = default;
};

}  // namespace weir::base
