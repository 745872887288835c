#include "envoy/environment.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/same_text.h"
#include "base/spelling.h"
#include "envoy/redis_environment.h"

namespace weir::envoy {

namespace {

// What only those who run the original set; HOST and PORT are too common.
constexpr std::array<std::string_view, 6> kTelltales = {
    "RUNTIME_ROOT", "RUNTIME_SUBDIRECTORY",   "RUNTIME_APPDIRECTORY",
    "GRPC_PORT",    "RUNTIME_IGNOREDOTFILES", "RUNTIME_WATCH_ROOT"};

// Reads variables one by one; the first that is wrong is told.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  [[nodiscard]] const std::string& error() const { return error_; }

  void Text(std::string_view name, std::string& into) {
    if (auto text = environment_(name)) {
      into = *std::move(text);
    }
  }

  void Truth(std::string_view name, bool& into) {
    Parse(name, "true or false", [&](const std::string& text) {
      const auto is = [&](std::initializer_list<std::string_view> words) {
        return std::find(words.begin(), words.end(), text) != words.end();
      };
      const bool truth = is({"1", "t", "T", "true", "TRUE", "True"});
      into = truth;
      return truth || is({"0", "f", "F", "false", "FALSE", "False"});
    });
  }

  template <class Number>
  void Whole(std::string_view name, Number& into, std::string_view expected) {
    Parse(name, expected, [&](const std::string& text) {
      const char* const end = text.data() + text.size();
      const auto read = std::from_chars(text.data(), end, into);
      return read.ec == std::errc() && read.ptr == end;
    });
  }

  void Port(std::string_view name, uint16_t& into) { Whole(name, into, "a port, 0 to 65535"); }

  void Time(std::string_view name, Duration& into) {
    Parse(name, "a duration such as 30s or 1h30m", [&](const std::string& text) {
      const auto duration = ParseGoDuration(text);
      into = duration.value_or(into);
      return duration.has_value();
    });
  }

  void Ratio(std::string_view name, double& into) {
    Parse(name, "a number from 0 to 1", [&](const std::string& text) {
      const char* const end = text.data() + text.size();
      const auto read = std::from_chars(text.data(), end, into);
      return read.ec == std::errc() && read.ptr == end && into >= 0 && into <= 1;
    });
  }

  // name:value,name:value
  void Tags(std::string_view name, std::vector<std::pair<std::string, std::string>>& into) {
    Parse(name, "name:value, several joined by commas", [&](const std::string& text) {
      for (size_t begin = 0; begin <= text.size();) {
        const size_t end = std::min(text.find(',', begin), text.size());
        const std::string tag = text.substr(begin, end - begin);
        const size_t colon = tag.find(':');
        if (colon == std::string::npos || colon == 0) {
          return false;
        }
        into.emplace_back(tag.substr(0, colon), tag.substr(colon + 1));
        begin = end + 1;
      }
      return true;
    });
  }

  void Word(std::string_view name, std::string& into, std::initializer_list<std::string_view> words,
            std::string_view expected) {
    Parse(name, expected, [&](const std::string& text) {
      into = text;
      return std::any_of(words.begin(), words.end(),
                         [&](std::string_view word) { return base::SameLetters(text, word); });
    });
  }

  void Fail(std::string message) {
    if (error_.empty()) {
      error_ = std::move(message);
    }
  }

 private:
  template <class Take>
  void Parse(std::string_view name, std::string_view expected, Take take) {
    const auto text = environment_(name);
    // Empty is as if it were not set: deployments often spell a default like that.
    if (text.has_value() && !text->empty() && !take(*text)) {
      Fail(std::string(name) + ": found " + base::Quoted(*text) + "; expected " +
           std::string(expected));
    }
  }

  const Environment& environment_;
  std::string error_;
};

void ReadListeners(Reader& reader, EnvoySettings& settings) {
  reader.Text("HOST", settings.host);
  reader.Port("PORT", settings.port);
  reader.Text("GRPC_HOST", settings.grpc_host);
  reader.Port("GRPC_PORT", settings.grpc_port);
  reader.Text("GRPC_UDS", settings.grpc_uds);
  reader.Text("DEBUG_HOST", settings.debug_host);
  reader.Port("DEBUG_PORT", settings.debug_port);
  reader.Time("GRPC_MAX_CONNECTION_AGE", settings.grpc_max_connection_age);
  reader.Time("GRPC_MAX_CONNECTION_AGE_GRACE", settings.grpc_max_connection_age_grace);
  reader.Truth("GRPC_SERVER_USE_TLS", settings.grpc_tls);
  reader.Text("GRPC_SERVER_TLS_CERT", settings.grpc_tls_cert);
  reader.Text("GRPC_SERVER_TLS_KEY", settings.grpc_tls_key);
  reader.Text("GRPC_CLIENT_TLS_CACERT", settings.grpc_client_ca);
  reader.Text("GRPC_CLIENT_TLS_SAN", settings.grpc_client_san);
  if (!settings.grpc_client_san.empty() && settings.grpc_client_ca.empty()) {
    settings.notes.emplace_back(
        "GRPC_CLIENT_TLS_SAN has no effect without GRPC_CLIENT_TLS_CACERT: clients are not asked "
        "for a certificate");
  }
  if (settings.grpc_tls && (settings.grpc_tls_cert.empty() || settings.grpc_tls_key.empty())) {
    reader.Fail("GRPC_SERVER_USE_TLS: needs GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY");
  }
}

void ReadService(Reader& reader, const Environment& environment, EnvoySettings& settings) {
  RlsOptions& service = settings.service;
  int64_t cache_bytes = 0;
  reader.Whole("LOCAL_CACHE_SIZE_IN_BYTES", cache_bytes, "a number of bytes");
  service.local_cache = cache_bytes > 0;
  reader.Ratio("NEAR_LIMIT_RATIO", service.near_limit_ratio);
  reader.Text("CACHE_KEY_PREFIX", service.cache_key_prefix);
  reader.Truth("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", service.all_or_nothing);
  reader.Truth("MERGE_DOMAIN_CONFIG", service.merge_domain_configs);
  reader.Truth("SHADOW_MODE", service.global_shadow_mode);
  reader.Truth("QUOTA_MODE", service.global_quota_mode);
  reader.Truth("RESPONSE_DYNAMIC_METADATA", service.response_dynamic_metadata);
  reader.Truth("LIMIT_RESPONSE_HEADERS_ENABLED", service.response_headers);
  for (const auto& [name, header] :
       {std::pair<std::string_view, std::string*>{"LIMIT_LIMIT_HEADER", &service.limit_header},
        {"LIMIT_REMAINING_HEADER", &service.remaining_header},
        {"LIMIT_RESET_HEADER", &service.reset_header}}) {
    if (auto text = environment(name); text.has_value() && !text->empty()) {
      *header = *std::move(text);
    }
  }
  // weir's own.
  reader.Truth("WEIR_ENVOY_STRICT_MATCHING", service.strict_matching);
  reader.Truth("WEIR_ENVOY_JSON_503", settings.store_failure_is_503);
}

void ReadStatistics(Reader& reader, EnvoySettings& settings) {
  reader.Truth("USE_STATSD", settings.use_statsd);
  reader.Text("STATSD_HOST", settings.statsd_host);
  reader.Port("STATSD_PORT", settings.statsd_port);
  reader.Truth("USE_DOG_STATSD", settings.dog_statsd);
  reader.Tags("EXTRA_TAGS", settings.extra_tags);
  reader.Time("STATS_FLUSH_INTERVAL", settings.stats_flush_interval);
  reader.Truth("DISABLE_STATS", settings.disable_stats);
  reader.Truth("USE_PROMETHEUS", settings.use_prometheus);
  reader.Text("PROMETHEUS_ADDR", settings.prometheus_address);
  reader.Text("PROMETHEUS_PATH", settings.prometheus_path);
  reader.Word("LOG_LEVEL", settings.log_level,
              {"trace", "debug", "info", "warn", "warning", "error", "fatal", "panic"},
              "debug, info, warn or error");
  reader.Word("LOG_FORMAT", settings.log_format, {"text", "json"}, "text or json");
}

// What is refused, and a line for each that has no effect.
void ReadTable(Reader& reader, const Environment& environment, EnvoySettings& settings) {
  for (const Variable& variable : Variables()) {
    const auto text = environment(variable.name);
    if (!text.has_value() || text->empty() || *text == variable.default_value) {
      continue;
    }
    const std::string name(variable.name);
    switch (variable.treatment) {
      case Treatment::kHonoured:
        break;
      case Treatment::kIgnored:
        settings.notes.push_back(name + " has no effect: " + std::string(variable.remark));
        break;
      case Treatment::kRefused:
        reader.Fail(
            name + ": found " + base::Quoted(*text) + "; expected " +
            std::string(variable.default_value.empty() ? "nothing" : variable.default_value) +
            ": " + std::string(variable.remark));
        break;
    }
  }
}

}  // namespace

Environment ProcessEnvironment() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* const text = std::getenv(std::string(name).c_str());
    return text == nullptr ? std::nullopt : std::optional<std::string>(text);
  };
}

bool IsForEnvoy(const Environment& environment) {
  return std::any_of(kTelltales.begin(), kTelltales.end(),
                     [&](std::string_view name) { return environment(name).has_value(); });
}

Result<EnvoySettings> ReadEnvironment(const Environment& environment) {
  EnvoySettings settings;
  Reader reader(environment);
  ReadTable(reader, environment, settings);
  ReadListeners(reader, settings);
  reader.Text("RUNTIME_ROOT", settings.runtime.root);
  reader.Text("RUNTIME_SUBDIRECTORY", settings.runtime.subdirectory);
  reader.Text("RUNTIME_APPDIRECTORY", settings.runtime.app_directory);
  reader.Truth("RUNTIME_IGNOREDOTFILES", settings.runtime.ignore_dot_files);
  reader.Truth("FORCE_START_WITHOUT_INITIAL_CONFIG", settings.force_start_without_initial_config);
  reader.Truth("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED",
               settings.healthy_with_at_least_one_config_loaded);
  ReadService(reader, environment, settings);
  ReadStatistics(reader, settings);
  if (!reader.error().empty()) {
    return Error::Invalid(reader.error());
  }
  auto redis = RedisUrl(environment);
  if (!redis) {
    return redis.error();
  }
  settings.redis_url = *std::move(redis);
  return settings;
}

std::optional<Duration> ParseGoDuration(std::string_view text) {
  if (text == "0") {
    return Duration::zero();
  }
  constexpr std::array<std::pair<std::string_view, double>, 8> kUnitNs = {{{"ns", 1},
                                                                           {"us", 1e3},
                                                                           {"\xc2\xb5s", 1e3},
                                                                           {"\xce\xbcs", 1e3},
                                                                           {"ms", 1e6},
                                                                           {"s", 1e9},
                                                                           {"m", 6e10},
                                                                           {"h", 3.6e12}}};
  double total_ns = 0;
  if (text.empty()) {
    return std::nullopt;
  }
  while (!text.empty()) {
    double number = 0;
    const auto read =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (read.ec != std::errc() || number < 0 || !std::isfinite(number)) {
      return std::nullopt;
    }
    text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
    const size_t letters = std::min(text.find_first_of("0123456789."), text.size());
    const auto* const unit = std::find_if(kUnitNs.begin(), kUnitNs.end(), [&](const auto& one) {
      return one.first == text.substr(0, letters);
    });
    if (unit == kUnitNs.end()) {
      return std::nullopt;
    }
    total_ns += number * unit->second;
    text.remove_prefix(letters);
  }
  if (total_ns > static_cast<double>(std::numeric_limits<int64_t>::max() / 2)) {
    return std::nullopt;
  }
  return Duration(static_cast<int64_t>(std::llround(total_ns)));
}

}  // namespace weir::envoy
