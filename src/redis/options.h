// Where Redis is and how to speak with it, as one URL says it:
//
//   redis://[user:password@]host[:6379][/database]           one server
//   rediss://…                                               the same by TLS
//   unix:///path/to/socket                                   a unix socket
//   redis+sentinel://[user:password@]host[:26379],…/name     the master that Sentinels know by name
//   redis+cluster://[user:password@]host[:6379],…            a Cluster, from some of its nodes
//   redis+list://[user:password@]host[:6379],…               plain instances; keys by rendezvous
//   hash
//
// with rediss+… for TLS, and after a ? what docs/reference/redis.md lists: timeout, connections,
// ca, cert, key, verify, server-name, name, sentinel-user, sentinel-password, password-file …
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/result.h"
#include "weir/time.h"

namespace weir::redis {

enum class Topology : uint8_t { kSingle, kSentinel, kCluster, kList };

[[nodiscard]] std::string_view NameOf(Topology topology) noexcept;

struct Address {
  std::string host;  // a name, an IPv4 or an IPv6 address without brackets
  uint16_t port = 0;
  std::string unix_path;  // if not empty, all there is

  [[nodiscard]] std::string ToText() const;  // "host:port", "[::1]:6379", "unix:/path"
  bool operator==(const Address&) const = default;
};

// A text that is never printed by accident.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}
  [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
  [[nodiscard]] const std::string& Reveal() const noexcept { return text_; }

 private:
  std::string text_;
};

struct TlsClientOptions {
  bool enabled = false;
  bool verify = true;            // the server's certificate and its name
  std::string ca_file;           // PEM; empty: what the system trusts
  std::string certificate_file;  // PEM; empty: none is shown
  std::string key_file;
  std::string server_name;  // to be found in the certificate; empty: the host of the address
};

struct BreakerOptions {
  uint32_t consecutive_failures = 5;
  uint32_t calls_min = 20;  // within a second, of which half fail
  // Silence shorter than this, once a deadline is over, is a moment in which somebody's machine
  // stood still, whatever the number of calls that it kept waiting.
  Duration silence_min = std::chrono::milliseconds(30);
  Duration open = std::chrono::seconds(10);
  // The first time in a while, if it was no silence but a lost connection, that we see return.
  Duration open_after_disconnect = std::chrono::seconds(1);
  uint32_t successes_to_close = 3;
};

struct Options {
  Topology topology = Topology::kSingle;
  std::vector<Address> addresses;  // the server, the Sentinels, some of a Cluster, or the instances
  std::string master_name;         // of Sentinel
  std::string user;
  Secret password;
  std::string sentinel_user;
  Secret sentinel_password;
  uint32_t database = 0;
  std::string client_name = "weir";
  TlsClientOptions tls;

  Duration timeout = std::chrono::milliseconds(10);    // of a call
  Duration connect_timeout = std::chrono::seconds(1);  // until a connection is ready
  Duration reconnect_min = std::chrono::milliseconds(100);
  Duration reconnect_max = std::chrono::milliseconds(800);
  uint32_t in_flight_max = 128;  // to one node
  uint32_t connections = 1;      // to one node
  uint32_t call_bytes_max = 64 << 10;
  BreakerOptions breaker;

  // The error names what was found and what is expected; never a password.
  static Result<Options> Parse(std::string_view url);
  // For logs: without user and password.
  [[nodiscard]] std::string ToText() const;
};

}  // namespace weir::redis
