// The small texts of gRPC over HTTP/2: message prefixes, timeouts, content types, status messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/time.h"

namespace weir::codec::grpc {

// Before each message: a byte that says whether it is compressed, and its size.
inline constexpr size_t kPrefixBytes = 5;

struct Prefix {
  bool compressed = false;
  uint32_t size = 0;
};

// REQUIRES: bytes.size() >= kPrefixBytes.
[[nodiscard]] Prefix ReadPrefix(std::string_view bytes) noexcept;
void WritePrefix(uint32_t size, char* to) noexcept;

// "20m" is 20 milliseconds: up to 8 digits and one of H, M, S, m, u, n. None: it is something else.
[[nodiscard]] std::optional<Duration> ParseTimeout(std::string_view text) noexcept;

enum class ContentType : uint8_t {
  kGrpc,      // messages are protobuf
  kEncoding,  // gRPC with messages that are something else
  kOther,
};
[[nodiscard]] ContentType ParseContentType(std::string_view text) noexcept;

// What may stand in a header field as it is; the rest as %XX. At most `bytes_max` of the message.
[[nodiscard]] std::string PercentEncode(std::string_view message, size_t bytes_max = 1024);

}  // namespace weir::codec::grpc
