// What the server is told: by flags, environment and file (apps/weir/serve_command.cc), in one
// struct.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

#include "envoy/environment.h"
#include "server/log.h"

namespace weir::shared {
class FleetStore;
}

namespace weir::server {

// "tls:127.0.0.1:8443" is an address and how to speak there.
struct ListenAddress {
  enum class Security : uint8_t {
    kNone,
    kTls,
    kMutualTls,  // clients show a certificate as well
  };

  Security security = Security::kNone;
  std::string endpoint;

  static ListenAddress Parse(std::string_view text);
};

struct ServerConfig {
  // Where to listen; none: that front is off.
  std::vector<std::string> http = {"127.0.0.1:8080"};
  std::vector<std::string> resp = {"127.0.0.1:6380"};
  std::vector<std::string> admin = {"127.0.0.1:8081"};
  std::vector<std::string> grpc;         // off unless asked for
  bool grpc_on_http = false;             // the HTTP listeners speak gRPC as well
  std::vector<std::string> descriptors;  // files or folders for Envoy's questions
  unsigned grpc_max_age_s = 0;           // 0: connections may grow old
  unsigned grpc_max_age_grace_s = 3600;

  // For addresses that begin with tls: or mtls:. Each is FILE, for all fronts, or FRONT=FILE.
  std::vector<std::string> tls_cert;
  std::vector<std::string> tls_key;
  std::vector<std::string> tls_client_ca;  // who mtls: lets in
  // Whom of these: any of the names, each NAME for all fronts, or FRONT=NAME. None: all of them.
  std::vector<std::string> tls_client_names;

  // Stands in for envoyproxy/ratelimit, as its environment says.
  std::optional<envoy::EnvoySettings> envoy;
  std::shared_ptr<envoy::RlsService> rls;     // what it decides by; none: one for `descriptors`
  std::shared_ptr<shared::FleetStore> fleet;  // what `redis` names, once it is open

  std::vector<std::string> rules;  // files
  std::string state_dir;           // for the last good rules; empty: not kept

  // Where a fleet counts together (docs/reference/redis.md); empty: here, in memory.
  std::string redis;
  unsigned redis_timeout_us = 0;  // of one question to it; 0: what the URL says, or 10 ms
  unsigned fleet_nodes = 1;       // each has this part of a limit while Redis is away
  bool redis_allow_eviction = false;

  size_t memory_bytes = size_t{256} << 20;  // for all that is counted
  unsigned threads = 0;                     // 0: one a processor
  bool pin_threads = false;

  std::string resp_password;
  std::string admin_token;

  std::vector<std::string> trusted_proxies;     // prefixes whose forwarding headers are believed
  std::string client_from = "x-forwarded-for";  // the header that they set
  bool proxy_protocol = false;                  // every connection begins with it
  unsigned ipv6_prefix = 64;
  std::vector<std::string> geo_db;  // files of MaxMind's format, for `asn` and `country`

  // What /v1/auth takes from header fields.
  std::vector<std::string> attributes = {"api_key=header:x-api-key", "user=header:x-user-id",
                                         "tier=header:x-tier"};
  // Families of headers; docs/reference/http.md.
  std::vector<std::string> headers = {"x-ratelimit", "ietf", "weir", "retry-after"};
  bool reset_as_delta = false;

  unsigned connections_max = 10'000;
  unsigned connections_per_address = 1'000;  // 0: no limit
  unsigned idle_s = 300;
  unsigned message_s = 10;
  unsigned drain_s = 10;
  unsigned top_keys = 50;  // kept track of for each rule; 0: none

  std::string fleet_secret;  // the same on every node of a fleet
  std::string test_clock;

  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;

  // The file of a front, or that of all; empty: none.
  [[nodiscard]] static std::string FileFor(const std::vector<std::string>& files,
                                           std::string_view front);

  // The names of a front, and those of all.
  [[nodiscard]] static std::vector<std::string> NamesFor(const std::vector<std::string>& names,
                                                         std::string_view front);

  // One budget for the process: what rules count in, and what Envoy's questions count in.
  struct MemoryShares {
    size_t rules = 0;
    size_t rls = 0;
  };
  [[nodiscard]] MemoryShares ShareMemory() const;

  // Whether a front may listen where other machines reach it; `where` is what the error calls that.
  [[nodiscard]] Result<void> MayExpose(std::string_view front, const std::string& where) const;

  // What cannot be together, or is not safe; the error says which and what to do.
  [[nodiscard]] Result<void> Validate() const;
};

}  // namespace weir::server
