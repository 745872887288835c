#include "server/config.h"

#include <algorithm>

#include "base/ip_address.h"
#include "net/endpoint.h"

namespace weir::server {

namespace {

Error InOption(const std::string& option, const Error& error) {
  return Error{error.code, "--" + option + " " + error.message};
}

// Each must be an endpoint; `exposed` is one that others than this machine can reach.
Result<void> CheckEndpoints(const std::string& option, const std::vector<std::string>& addresses,
                            std::string& exposed) {
  for (const std::string& address : addresses) {
    const Result<net::Endpoint> endpoint = net::Endpoint::Parse(address);
    if (!endpoint) {
      return InOption(option, endpoint.error());
    }
    if (!endpoint->local_only) {
      exposed = "--" + option + " " + address;
    }
  }
  return {};
}

}  // namespace

Result<void> ServerConfig::Validate() const {
  std::string data;
  std::string managed;
  if (auto good = CheckEndpoints("http", http, data); !good) {
    return good;
  }
  if (auto good = CheckEndpoints("resp", resp, data); !good) {
    return good;
  }
  if (auto good = CheckEndpoints("grpc", grpc, data); !good) {
    return good;
  }
  if (auto good = CheckEndpoints("admin", admin, managed); !good) {
    return good;
  }
  if (http.empty() && resp.empty() && grpc.empty()) {
    return Error::Invalid("nothing to listen on; give --http, --resp or --grpc an address");
  }
  if (grpc_on_http && proxy_protocol) {
    return Error::Invalid(
        "--grpc-on-http does not go with --proxy-protocol; give --grpc an address of its own");
  }
  if (!managed.empty() && admin_token.empty()) {
    return Error::Invalid(managed +
                          " can be reached from other machines; give it a token by "
                          "--admin-token-file, or listen on 127.0.0.1");
  }
  if (!test_clock.empty() && !(data + managed).empty()) {
    return Error::Invalid("--test-clock is for tests on this machine alone, but " +
                          (data.empty() ? managed : data) + " can be reached from others");
  }
  for (const std::string& prefix : trusted_proxies) {
    if (!base::IpPrefix::Parse(prefix)) {
      return Error::Invalid("--trusted-proxy '" + prefix +
                            "': expected an address or a prefix such as 10.0.0.0/8, without bits "
                            "beyond its length");
    }
  }
  if (ipv6_prefix < 1 || ipv6_prefix > 128) {
    return Error::Invalid("--ipv6-prefix " + std::to_string(ipv6_prefix) +
                          ": expected 1 to 128 bits");
  }
  return {};
}

}  // namespace weir::server
