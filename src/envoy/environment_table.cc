#include "envoy/environment.h"

namespace weir::envoy {

namespace {

using enum Treatment;

constexpr std::string_view kNoXds = "configuration comes from files";
constexpr std::string_view kNoMemcache = "only with BACKEND_TYPE=memcache, which is refused";
constexpr std::string_view kNoTracing = "no traces are exported";

constexpr Variable kVariables[] = {
    {"HOST", "0.0.0.0", kHonoured, "address of /json and /healthcheck"},
    {"PORT", "8080", kHonoured, "port of /json and /healthcheck"},
    {"GRPC_HOST", "0.0.0.0", kHonoured, "address of the gRPC service"},
    {"GRPC_PORT", "8081", kHonoured, "port of the gRPC service"},
    {"GRPC_UDS", "", kHonoured, "path of a Unix socket for gRPC, instead of host and port"},
    {"DEBUG_HOST", "0.0.0.0", kHonoured,
     "address of /rlconfig and /stats; without it 127.0.0.1, not the original's 0.0.0.0"},
    {"DEBUG_PORT", "6070", kHonoured, "port of /rlconfig and /stats"},
    {"GRPC_MAX_CONNECTION_AGE", "24h", kHonoured, "a connection is told to go after this long"},
    {"GRPC_MAX_CONNECTION_AGE_GRACE", "1h", kHonoured, "and closed after this long again"},
    {"GRPC_SERVER_USE_TLS", "false", kHonoured, "TLS for gRPC"},
    {"GRPC_SERVER_TLS_CERT", "", kHonoured, "its certificate"},
    {"GRPC_SERVER_TLS_KEY", "", kHonoured, "its key"},
    {"GRPC_CLIENT_TLS_CACERT", "", kHonoured, "clients must show a certificate of this authority"},
    {"GRPC_CLIENT_TLS_SAN", "", kHonoured,
     "which must have this name among its alternative names: DNS, address or URI"},
    {"LOG_LEVEL", "WARN", kHonoured, "debug, info, warn, error"},
    {"LOG_FORMAT", "text", kHonoured, "text or json"},
    {"CONFIG_TYPE", "FILE", kRefused, "FILE only; let a ConfigMap or a shared folder bring files"},
    {"FORCE_START_WITHOUT_INITIAL_CONFIG", "false", kHonoured,
     "starts with a bad or missing configuration, and answers errors until there is one"},
    {"CONFIG_GRPC_XDS_NODE_ID", "default", kIgnored, kNoXds},
    {"CONFIG_GRPC_XDS_NODE_METADATA", "", kIgnored, kNoXds},
    {"CONFIG_GRPC_XDS_SERVER_URL", "localhost:18000", kIgnored, kNoXds},
    {"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", "3s", kIgnored, kNoXds},
    {"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", "", kIgnored, kNoXds},
    {"CONFIG_GRPC_XDS_SERVER_USE_TLS", "false", kIgnored, kNoXds},
    {"CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "", kIgnored, kNoXds},
    {"CONFIG_GRPC_XDS_CLIENT_TLS_KEY", "", kIgnored, kNoXds},
    {"CONFIG_GRPC_XDS_SERVER_TLS_CACERT", "", kIgnored, kNoXds},
    {"CONFIG_GRPC_XDS_SERVER_TLS_SAN", "", kIgnored, kNoXds},
    {"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", "10s", kIgnored, kNoXds},
    {"XDS_CLIENT_BACKOFF_MAX_INTERVAL", "60s", kIgnored, kNoXds},
    {"XDS_CLIENT_BACKOFF_RANDOM_FACTOR", "0.5", kIgnored, kNoXds},
    {"XDS_CLIENT_BACKOFF_JITTER", "true", kIgnored, kNoXds},
    {"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", "", kIgnored, kNoXds},
    {"USE_STATSD", "true", kHonoured, "sends statistics to statsd"},
    {"STATSD_HOST", "localhost", kHonoured, "where to"},
    {"STATSD_PORT", "8125", kHonoured, "where to"},
    {"USE_DOG_STATSD", "false", kHonoured, "tags as DogStatsD writes them"},
    {"USE_DOG_STATSD_MOGRIFIERS", "", kIgnored, "names are sent as they are"},
    {"EXTRA_TAGS", "", kHonoured, "name:value,... on every statistic sent to statsd"},
    {"STATS_FLUSH_INTERVAL", "10s", kHonoured, "how often statistics are sent"},
    {"DISABLE_STATS", "false", kHonoured, "sends none; /stats stays"},
    {"USE_PROMETHEUS", "false", kHonoured, "serves the original's Prometheus names"},
    {"PROMETHEUS_ADDR", ":9090", kHonoured, "where"},
    {"PROMETHEUS_PATH", "/metrics", kHonoured, "at which path"},
    {"PROMETHEUS_MAPPER_YAML", "", kIgnored, "names are those of the default mapping"},
    {"PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS", "false", kIgnored, "times are in seconds"},
    {"RUNTIME_ROOT", "/srv/runtime_data/current", kHonoured, "folder of the files"},
    {"RUNTIME_SUBDIRECTORY", "", kHonoured, "a folder in it"},
    {"RUNTIME_APPDIRECTORY", "config", kHonoured, "a folder in that, which has the files"},
    {"RUNTIME_IGNOREDOTFILES", "false", kHonoured, "leaves out names with a leading dot"},
    {"RUNTIME_WATCH_ROOT", "true", kIgnored, "changes are seen either way, links included"},
    {"EXPIRATION_JITTER_MAX_SECONDS", "300", kIgnored, "windows end by themselves in memory"},
    {"LOCAL_CACHE_SIZE_IN_BYTES", "0", kHonoured,
     "counts over_limit_with_local_cache if not 0; the store is local anyway"},
    {"NEAR_LIMIT_RATIO", "0.8", kHonoured, "share of a limit from which hits count as near it"},
    {"CACHE_KEY_PREFIX", "", kHonoured, "in front of every counter's key"},
    {"BACKEND_TYPE", "redis", kRefused,
     "memcache loses counters at will; leave it out, and weir counts in its own memory"},
    {"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "false", kHonoured,
     "all or nothing: a refused request is not counted anywhere"},
    {"LIMIT_RESPONSE_HEADERS_ENABLED", "false", kHonoured, "three headers for the response"},
    {"LIMIT_LIMIT_HEADER", "RateLimit-Limit", kHonoured, "name of the first"},
    {"LIMIT_REMAINING_HEADER", "RateLimit-Remaining", kHonoured, "name of the second"},
    {"LIMIT_RESET_HEADER", "RateLimit-Reset", kHonoured, "name of the third"},
    {"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", "false", kHonoured,
     "unhealthy until a configuration with a domain is there"},
    {"SHADOW_MODE", "false", kHonoured, "every request passes; statuses tell what would not"},
    {"QUOTA_MODE", "false", kHonoured, "every limit as if it had quota_mode"},
    {"RESPONSE_DYNAMIC_METADATA", "false", kHonoured, "what was asked, and metadata of the rules"},
    {"MERGE_DOMAIN_CONFIG", "false", kHonoured, "several files of one domain"},
    {"REDIS_SOCKET_TYPE", "unix", kHonoured, "tcp or unix"},
    {"REDIS_TYPE", "SINGLE", kHonoured, "SINGLE, SENTINEL or CLUSTER"},
    {"REDIS_URL", "/var/run/nutcracker/ratelimit.sock", kHonoured,
     "where all nodes count together; without it each counts in its memory"},
    {"REDIS_POOL_SIZE", "10", kIgnored, "all questions of one turn of a loop go out together"},
    {"REDIS_AUTH", "", kHonoured, "a password, or user:password"},
    {"REDIS_SENTINEL_AUTH", "", kHonoured, "the same for Sentinels"},
    {"REDIS_TLS", "false", kHonoured, "and its certificate is verified"},
    {"REDIS_TLS_CLIENT_CERT", "", kHonoured, "PEM"},
    {"REDIS_TLS_CLIENT_KEY", "", kHonoured, "PEM"},
    {"REDIS_TLS_CACERT", "", kHonoured, "PEM; else what the system trusts"},
    {"REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", "false", kHonoured,
     "then nothing of the certificate is verified"},
    {"REDIS_PIPELINE_WINDOW", "0", kIgnored, "all questions of one turn of a loop go out together"},
    {"REDIS_PIPELINE_LIMIT", "0", kIgnored, "without effect in the original as well"},
    {"REDIS_CLUSTER_PIPELINE_PARALLELISM", "1", kIgnored,
     "all questions of one turn of a loop go out together"},
    {"REDIS_PERSECOND", "false", kIgnored, "limits by second are counted with all others"},
    {"REDIS_PERSECOND_SOCKET_TYPE", "unix", kIgnored,
     "limits by second are counted with all others"},
    {"REDIS_PERSECOND_TYPE", "SINGLE", kIgnored, "limits by second are counted with all others"},
    {"REDIS_PERSECOND_URL", "/var/run/nutcracker/ratelimitpersecond.sock", kIgnored,
     "limits by second are counted with all others"},
    {"REDIS_PERSECOND_POOL_SIZE", "10", kIgnored, "limits by second are counted with all others"},
    {"REDIS_PERSECOND_AUTH", "", kIgnored, "limits by second are counted with all others"},
    {"REDIS_PERSECOND_SENTINEL_AUTH", "", kIgnored, "limits by second are counted with all others"},
    {"REDIS_PERSECOND_TLS", "false", kIgnored, "limits by second are counted with all others"},
    {"REDIS_PERSECOND_PIPELINE_WINDOW", "0", kIgnored,
     "limits by second are counted with all others"},
    {"REDIS_PERSECOND_PIPELINE_LIMIT", "0", kIgnored, "without effect in the original as well"},
    {"REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM", "1", kIgnored,
     "limits by second are counted with all others"},
    {"REDIS_PERSECOND_TIMEOUT", "10s", kIgnored, "limits by second are counted with all others"},
    {"REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR", "WAIT", kRefused,
     "WAIT only, as in the original; leave it out"},
    {"REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", "false", kIgnored,
     "a Redis that is away is shown by weir_fleet_away"},
    {"REDIS_TIMEOUT", "10s", kHonoured, "of one question; 10 ms if it is not set"},
    {"REDIS_POOL_ON_EMPTY_BEHAVIOR", "WAIT", kRefused,
     "WAIT only, as in the original; leave it out"},
    {"REDIS_STARTUP_INITIAL_INTERVAL", "1s", kIgnored,
     "weir starts without Redis and finds it by itself"},
    {"REDIS_STARTUP_MAX_INTERVAL", "30s", kIgnored,
     "weir starts without Redis and finds it by itself"},
    {"REDIS_STARTUP_MAX_ELAPSED_TIME", "0", kIgnored,
     "weir starts without Redis and finds it by itself"},
    {"MEMCACHE_HOST_PORT", "", kIgnored, kNoMemcache},
    {"MEMCACHE_MAX_IDLE_CONNS", "2", kIgnored, kNoMemcache},
    {"MEMCACHE_SRV", "", kIgnored, kNoMemcache},
    {"MEMCACHE_SRV_REFRESH", "0", kIgnored, kNoMemcache},
    {"MEMCACHE_TLS", "false", kIgnored, kNoMemcache},
    {"MEMCACHE_TLS_CLIENT_CERT", "", kIgnored, kNoMemcache},
    {"MEMCACHE_TLS_CLIENT_KEY", "", kIgnored, kNoMemcache},
    {"MEMCACHE_TLS_CACERT", "", kIgnored, kNoMemcache},
    {"MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION", "false", kIgnored, kNoMemcache},
    {"TRACING_ENABLED", "false", kIgnored, kNoTracing},
    {"TRACING_SERVICE_NAME", "RateLimit", kIgnored, kNoTracing},
    {"TRACING_SERVICE_NAMESPACE", "", kIgnored, kNoTracing},
    {"TRACING_SERVICE_INSTANCE_ID", "", kIgnored, kNoTracing},
    {"TRACING_EXPORTER_PROTOCOL", "http", kIgnored, kNoTracing},
    {"TRACING_SAMPLING_RATE", "1", kIgnored, kNoTracing},
};

}  // namespace

std::string_view ToString(Treatment treatment) noexcept {
  switch (treatment) {
    case kHonoured:
      return "honoured";
    case kIgnored:
      return "ignored";
    case kRefused:
      break;
  }
  return "refused";
}

std::span<const Variable> Variables() noexcept {
  return kVariables;
}

}  // namespace weir::envoy
