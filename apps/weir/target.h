// Whom to ask: http://127.0.0.1:8080/v1/check, http://[::1]/, resp://localhost:6380.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::app {

enum class Protocol : uint8_t { kHttp, kResp };

struct Target {
  Protocol protocol = Protocol::kHttp;
  std::string host;  // without the brackets of an IPv6 address
  std::string port;
  std::string path;       // of HTTP, and its query
  std::string authority;  // host and port as they were written, for the Host field and messages

  // The error names what was found and what is expected.
  static Result<Target> Parse(std::string_view text);
};

struct Address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  // Asks the system's resolver; takes the first address that it gives.
  static Result<Address> Resolve(const Target& target);
  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
};

}  // namespace weir::app
