#include "apps/weir/target.h"

#include <netdb.h>

#include <charconv>
#include <cstring>
#include <memory>

namespace weir::app {

namespace {

Error Wrong(std::string_view text, std::string_view problem) {
  return Error::Invalid("'" + std::string(text) + "': " + std::string(problem) +
                        "; expected http://HOST:PORT/PATH or resp://HOST:PORT");
}

bool IsPort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  return problem == std::errc() && end == text.data() + text.size() && port != 0;
}

}  // namespace

Result<Target> Target::Parse(std::string_view text) {
  constexpr std::string_view kHttp = "http://";
  constexpr std::string_view kResp = "resp://";
  Target target;
  std::string_view rest = text;
  if (text.starts_with(kHttp)) {
    rest.remove_prefix(kHttp.size());
    target.port = "80";
  } else if (text.starts_with(kResp)) {
    rest.remove_prefix(kResp.size());
    target.protocol = Protocol::kResp;
    target.port = "6379";
  } else {
    return Wrong(text, text.starts_with("https://") ? "TLS is not spoken here" : "no such scheme");
  }
  const size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view authority = rest.substr(0, slash);
  target.authority = authority;
  target.path = slash == rest.size() ? "/" : rest.substr(slash);
  if (target.protocol == Protocol::kResp && target.path != "/") {
    return Wrong(text, "the Redis protocol knows no paths");
  }
  std::string_view host = authority;
  const size_t bracket = authority.rfind(']');
  const size_t colon = authority.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    const std::string_view port = authority.substr(colon + 1);
    if (!IsPort(port)) {
      return Wrong(text, "'" + std::string(port) + "' is not a port from 1 to 65535");
    }
    target.port = port;
    host = authority.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]@") != std::string_view::npos) {
    return Wrong(text, "'" + std::string(host) + "' is not a host (IPv6 goes into brackets)");
  }
  if (host.empty()) {
    return Wrong(text, "no host");
  }
  target.host = host;
  return target;
}

Result<Address> Address::Resolve(const Target& target) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int problem = getaddrinfo(target.host.c_str(), target.port.c_str(), &wanted, &found);
  if (problem != 0) {
    return Error{ErrorCode::kUnavailable,
                 "cannot resolve '" + target.host + "': " + gai_strerror(problem)};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.bytes = found->ai_addrlen;
  return address;
}

}  // namespace weir::app
