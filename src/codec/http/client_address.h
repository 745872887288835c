// Who the client is: the other end of the socket, unless that is a proxy that we trust to say.
//
// Anybody can write any header, so only what trusted proxies wrote counts. Each of them appends the
// address it sees, so the list is walked from its end, as long as the addresses are trusted proxies
// themselves; the first that is not is the client. Text that is no address ends the walk: behind it
// nothing can be believed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ip_address.h"
#include "codec/http/request.h"

namespace weir::codec::http {

// The one header that the trusted proxies set. Believing several at once would let a client choose
// one that they pass on unseen.
enum class ClientSource : uint8_t {
  kPeer,  // none: the socket's other end
  kXForwardedFor,
  kForwarded,  // RFC 7239
  kXRealIp,
};

class ClientAddress {
 public:
  // More hops than this are not walked: the last one reached is the client.
  static constexpr size_t kHopsMax = 32;

  ClientAddress() = default;
  ClientAddress(ClientSource source, std::vector<base::IpPrefix> trusted)
      : source_(source), trusted_(std::move(trusted)) {}

  // Unwrapped (IPv4 inside IPv6), not masked.
  [[nodiscard]] base::IpAddress Find(const base::IpAddress& peer,
                                     const Request& request) const noexcept;
  [[nodiscard]] bool IsTrusted(const base::IpAddress& address) const noexcept;

 private:
  ClientSource source_ = ClientSource::kPeer;
  std::vector<base::IpPrefix> trusted_;
};

}  // namespace weir::codec::http
