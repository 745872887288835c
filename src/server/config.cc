#include "server/config.h"

#include <algorithm>
#include <utility>

#include "base/ip_address.h"
#include "net/endpoint.h"

namespace weir::server {

namespace {

Error InOption(const std::string& option, const Error& error) {
  return Error{error.code, "--" + option + " " + error.message};
}

// Each must be an endpoint, and may be reached by others only where that is safe.
Result<void> CheckEndpoints(const ServerConfig& config, const std::string& option,
                            const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    const ListenAddress listen = ListenAddress::Parse(address);
    const Result<net::Endpoint> endpoint = net::Endpoint::Parse(listen.endpoint);
    if (!endpoint) {
      return InOption(option, endpoint.error());
    }
    if (listen.security != ListenAddress::Security::kNone &&
        (ServerConfig::FileFor(config.tls_cert, option).empty() ||
         ServerConfig::FileFor(config.tls_key, option).empty())) {
      return Error::Invalid("--" + option + " " + address + " needs --tls-cert and --tls-key");
    }
    if (listen.security == ListenAddress::Security::kMutualTls &&
        ServerConfig::FileFor(config.tls_client_ca, option).empty()) {
      return Error::Invalid("--" + option + " " + address +
                            " needs --tls-client-ca: who may have signed the clients");
    }
    if (!endpoint->local_only) {
      if (Result<void> good = config.MayExpose(option, "--" + option + " " + address); !good) {
        return good;
      }
    }
  }
  return {};
}

}  // namespace

ListenAddress ListenAddress::Parse(std::string_view text) {
  constexpr std::string_view kTls = "tls:";
  constexpr std::string_view kMutual = "mtls:";
  if (text.starts_with(kTls)) {
    return {Security::kTls, std::string(text.substr(kTls.size()))};
  }
  if (text.starts_with(kMutual)) {
    return {Security::kMutualTls, std::string(text.substr(kMutual.size()))};
  }
  return {Security::kNone, std::string(text)};
}

std::string ServerConfig::FileFor(const std::vector<std::string>& files, std::string_view front) {
  std::string found;
  for (const std::string& file : files) {
    const size_t equals = file.find('=');
    if (equals == std::string::npos) {
      found = found.empty() ? file : found;
    } else if (std::string_view(file).substr(0, equals) == front) {
      return file.substr(equals + 1);
    }
  }
  return found;
}

std::vector<std::string> ServerConfig::NamesFor(const std::vector<std::string>& names,
                                                std::string_view front) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    const std::string_view before = std::string_view(name).substr(0, name.find('='));
    const bool for_one = before.size() != name.size() && (before == "http" || before == "resp" ||
                                                          before == "grpc" || before == "admin");
    if (!for_one || before == front) {
      found.push_back(for_one ? name.substr(before.size() + 1) : name);
    }
  }
  return found;
}

ServerConfig::MemoryShares ServerConfig::ShareMemory() const {
  const bool asks_rls = envoy.has_value() || !grpc.empty() || grpc_on_http;
  const bool asks_rules = !http.empty() || !resp.empty();
  if (!asks_rls) {
    return {memory_bytes, 0};
  }
  // Nobody can ask the rules: what they need to be there at all.
  constexpr size_t kIdleShare = 16;
  const size_t for_rules = memory_bytes / (asks_rules ? 2 : kIdleShare);
  return {for_rules, memory_bytes - for_rules};
}

Result<void> ServerConfig::MayExpose(std::string_view front, const std::string& where) const {
  if (front == "admin" && admin_token.empty()) {
    return Error::Invalid(where +
                          " can be reached from other machines; give it a token by "
                          "--admin-token-file, or listen on 127.0.0.1");
  }
  if (!test_clock.empty()) {
    return Error::Invalid("--test-clock is for tests on this machine alone, but " + where +
                          " can be reached from others");
  }
  return {};
}

Result<void> ServerConfig::Validate() const {
  for (const auto& [option, addresses] : {std::pair("http", &http), std::pair("resp", &resp),
                                          std::pair("grpc", &grpc), std::pair("admin", &admin)}) {
    if (Result<void> good = CheckEndpoints(*this, option, *addresses); !good) {
      return good;
    }
  }
  if (http.empty() && resp.empty() && grpc.empty()) {
    return Error::Invalid("nothing to listen on; give --http, --resp or --grpc an address");
  }
  if (grpc_on_http && proxy_protocol) {
    return Error::Invalid(
        "--grpc-on-http does not go with --proxy-protocol; give --grpc an address of its own");
  }
  if (!test_clock.empty() && !redis.empty()) {
    return Error::Invalid("--test-clock does not go with --redis, which has a clock of its own");
  }
  if (fleet_nodes < 1) {
    return Error::Invalid("--fleet-nodes 0: expected how many nodes share the limits, at least 1");
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
