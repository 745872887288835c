// The environment of envoyproxy/ratelimit: every variable that it reads, and what weir does about
// each. The table is data: docs/reference/envoy.md shows the same one, and a test compares the two.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/result.h"
#include "weir/time.h"

#include "envoy/rls_service.h"
#include "envoy/runtime_directory.h"

namespace weir::envoy {

enum class Treatment : uint8_t {
  kHonoured,  // means what it means there
  kIgnored,   // accepted; a line of the log says why it has no effect
  kRefused,   // other values than the default are an error that names the alternative
};

[[nodiscard]] std::string_view ToString(Treatment treatment) noexcept;

struct Variable {
  std::string_view name;
  std::string_view default_value;  // as the original documents it
  Treatment treatment;
  std::string_view remark;  // what it does here, why it has no effect, or what to do instead
};

[[nodiscard]] std::span<const Variable> Variables() noexcept;

struct EnvoySettings {
  std::string host = "0.0.0.0";
  uint16_t port = 8080;
  std::string grpc_host = "0.0.0.0";
  uint16_t grpc_port = 8081;
  std::string grpc_uds;  // a socket's path, instead of host and port
  std::string debug_host = "127.0.0.1";
  uint16_t debug_port = 6070;
  Duration grpc_max_connection_age = std::chrono::hours(24);
  Duration grpc_max_connection_age_grace = std::chrono::hours(1);
  bool grpc_tls = false;
  std::string grpc_tls_cert;
  std::string grpc_tls_key;
  std::string grpc_client_ca;
  std::string grpc_client_san;

  RuntimeDirectory runtime;
  bool force_start_without_initial_config = false;
  bool healthy_with_at_least_one_config_loaded = false;

  RlsOptions service;
  std::string redis_url;  // as --redis takes it; empty: counters are in memory

  bool use_statsd = true;
  std::string statsd_host = "localhost";
  uint16_t statsd_port = 8125;
  bool dog_statsd = false;
  std::vector<std::pair<std::string, std::string>> extra_tags;
  Duration stats_flush_interval = std::chrono::seconds(10);
  bool disable_stats = false;
  bool use_prometheus = false;
  std::string prometheus_address = ":9090";
  std::string prometheus_path = "/metrics";

  std::string log_level = "WARN";
  std::string log_format = "text";

  bool store_failure_is_503 = false;  // WEIR_ENVOY_JSON_503

  std::vector<std::string> notes;  // a line for the log for each variable that has no effect
};

// Looks up a variable; none: not set.
using Environment = std::function<std::optional<std::string>(std::string_view)>;

// The process's own.
[[nodiscard]] Environment ProcessEnvironment();

// Whether anything that only users of the original set is set: weir then serves as a drop-in
// without being told.
[[nodiscard]] bool IsForEnvoy(const Environment& environment);

// The error names the variable, what was found and what is expected.
[[nodiscard]] Result<EnvoySettings> ReadEnvironment(const Environment& environment);

// "1h30m", "250ms", as Go writes durations; none for anything else.
[[nodiscard]] std::optional<Duration> ParseGoDuration(std::string_view text);

}  // namespace weir::envoy
