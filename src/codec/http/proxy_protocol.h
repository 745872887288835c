// The PROXY protocol, versions 1 and 2: what HAProxy, or a cloud's load balancer, says before the
// first byte of a connection about where it comes from. Only for listeners that are told to expect
// it from trusted peers: it is as easily forged as a header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/ip_address.h"

namespace weir::codec::http {

enum class ProxyState : uint8_t {
  kMore,   // the header is not whole yet
  kReady,  // drop `consumed` bytes; what follows is the client's
  kError,  // no PROXY header: close
};

struct ProxyHeader {
  ProxyState state = ProxyState::kMore;
  size_t consumed = 0;
  bool has_address = false;  // false: a health check of the proxy's own, or no IP; use the peer's
  base::IpAddress source;
  uint16_t source_port = 0;
  std::string_view error;
};

// The longest header that is read: version 2 with its extensions.
inline constexpr size_t kProxyHeaderBytesMax = 2048;

// `input`: everything that came so far. It is short, so each call reads from the start.
[[nodiscard]] ProxyHeader ParseProxyHeader(std::string_view input) noexcept;

}  // namespace weir::codec::http
