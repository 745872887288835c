#include "net/endpoint.h"

#include <sys/un.h>

#include <charconv>
#include <cstring>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

namespace weir::net {

namespace {

namespace asio = boost::asio;

Error Malformed(std::string_view text, std::string_view problem) {
  return Error::Invalid("'" + std::string(text) + "': " + std::string(problem) +
                        "; expected ADDRESS:PORT, [IPV6]:PORT, :PORT or unix:/PATH");
}

Endpoint FromTcp(const asio::ip::tcp::endpoint& tcp) {
  Endpoint endpoint;
  endpoint.address = tcp;
  const bool v6 = tcp.address().is_v6();
  endpoint.text =
      (v6 ? "[" : "") + tcp.address().to_string() + (v6 ? "]:" : ":") + std::to_string(tcp.port());
  endpoint.local_only = tcp.address().is_loopback();
  return endpoint;
}

Endpoint FromUnix(const std::string& path) {
  Endpoint endpoint;
  endpoint.address = asio::local::stream_protocol::endpoint(path);
  endpoint.text = "unix:" + path;
  endpoint.unix_path = path;
  endpoint.local_only = true;
  return endpoint;
}

}  // namespace

Result<Endpoint> Endpoint::Parse(std::string_view text) {
  constexpr std::string_view kUnix = "unix:";
  if (text.starts_with(kUnix)) {
    const std::string path(text.substr(kUnix.size()));
    if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path)) {
      return Malformed(text, path.empty() ? "no path" : "the path is too long for a socket");
    }
    return FromUnix(path);
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return Malformed(text, "no port");
  }
  const std::string_view digits = text.substr(colon + 1);
  uint16_t port = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (problem != std::errc() || end != digits.data() + digits.size()) {
    return Malformed(text, "'" + std::string(digits) + "' is not a port from 0 to 65535");
  }
  std::string_view host = text.substr(0, colon);
  if (host.empty()) {
    return FromTcp({asio::ip::address_v6::any(), port});  // and IPv4, as the system maps it
  }
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  }
  if (host == "localhost") {
    host = "127.0.0.1";
  }
  boost::system::error_code error;
  const asio::ip::address address = asio::ip::make_address(std::string(host), error);
  if (error || address.is_v6() != bracketed) {
    return Malformed(text, "'" + std::string(host) + "' is not an address");
  }
  return FromTcp({address, port});
}

Endpoint Endpoint::Of(const asio::generic::stream_protocol::endpoint& address) {
  if (address.protocol().family() == AF_UNIX) {
    sockaddr_un there{};
    std::memcpy(&there, address.data(), std::min(address.size(), sizeof there));
    return FromUnix(there.sun_path);
  }
  asio::ip::tcp::endpoint tcp;
  std::memcpy(tcp.data(), address.data(), std::min(address.size(), tcp.capacity()));
  tcp.resize(address.size());
  return FromTcp(tcp);
}

}  // namespace weir::net
