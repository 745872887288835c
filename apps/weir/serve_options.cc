#include "apps/weir/serve_options.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace weir::app {

namespace {

class Toml {
 public:
  void Section(std::string_view title) { text_.append("\n# ").append(title).append("\n"); }
  void Text(std::string_view name, std::string_view value) {
    if (!value.empty()) {
      Line(name, Quoted(value));
    }
  }
  void List(std::string_view name, const std::vector<std::string>& values) {
    std::string all;
    for (const std::string& value : values) {
      all += (all.empty() ? "" : ", ") + Quoted(value);
    }
    if (!all.empty()) {
      Line(name, "[" + all + "]");
    }
  }
  // None at all is told, since these have defaults.
  void Addresses(std::string_view name, const std::vector<std::string>& values) {
    List(name, values.empty() ? std::vector<std::string>{"off"} : values);
  }
  void Number(std::string_view name, uint64_t value) { Line(name, std::to_string(value)); }
  void Flag(std::string_view name, bool value) { Line(name, value ? "true" : "false"); }

  [[nodiscard]] std::string Take() { return std::move(text_); }

 private:
  void Line(std::string_view name, std::string_view value) {
    text_.append(name).append(" = ").append(value).append("\n");
  }

  // What is read back knows no escapes, but either kind of quotes.
  static std::string Quoted(std::string_view value) {
    const char quote = value.find('"') == std::string_view::npos ? '"' : '\'';
    return quote + std::string(value) + quote;
  }

  std::string text_;
};

// "redis://user:***@host?password=***": what is shown may end up in a ticket. Rather too much is
// hidden than too little: what an unescaped @, ? or & of a password leaves behind is, too.
std::string WithoutPassword(const std::string& url) {
  constexpr std::string_view kHidden = "***";
  const size_t mark = url.find("://");
  const size_t begin = mark == std::string::npos ? 0 : mark + 3;
  const size_t at = url.rfind('@');
  std::string shown = url.substr(0, begin);
  std::string_view rest = std::string_view(url).substr(begin);
  if (at != std::string::npos && at >= begin) {
    const std::string_view user = rest.substr(0, rest.find(':'));
    if (begin + user.size() < at) {
      shown.append(user).append(":").append(kHidden);
      rest = std::string_view(url).substr(at);
    }
  }
  const size_t question = std::min(rest.find('?'), rest.size());
  shown += rest.substr(0, question);
  for (rest.remove_prefix(question); !rest.empty();) {
    const std::string_view pair = rest.substr(0, rest.find('&', 1));  // with its ? or &
    const size_t equals = pair.find('=');
    const bool is_piece = equals == std::string_view::npos;
    if (is_piece || pair.substr(0, equals).ends_with("password")) {
      shown.append(pair.substr(0, is_piece ? 1 : equals + 1)).append(kHidden);
    } else {
      shown += pair;
    }
    rest.remove_prefix(pair.size());
  }
  return shown;
}

std::string_view NameOf(server::LogLevel level) {
  constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};
  return kNames[static_cast<size_t>(level)];
}

}  // namespace

std::string ToToml(const ServeOptions& options) {
  const server::ServerConfig& config = options.config;
  Toml toml;
  toml.Section("weir serve --config this-file");
  toml.List("rules", config.rules);
  toml.Text("state-dir", config.state_dir);
  toml.List("descriptors", config.descriptors);
  toml.Section("Where");
  toml.Addresses("http", config.http);
  toml.Addresses("resp", config.resp);
  toml.List("grpc", config.grpc);
  toml.Flag("grpc-on-http", config.grpc_on_http);
  toml.Addresses("admin", config.admin);
  toml.List("trusted-proxy", config.trusted_proxies);
  toml.Text("client-from", config.client_from);
  toml.Flag("proxy-protocol", config.proxy_protocol);
  toml.List("geo-db", config.geo_db);
  toml.Section("TLS");
  toml.List("tls-cert", config.tls_cert);
  toml.List("tls-key", config.tls_key);
  toml.List("tls-client-ca", config.tls_client_ca);
  toml.List("tls-client-name", config.tls_client_names);
  toml.Section("Secrets: the first lines of these files, which are not shown");
  toml.Text("resp-password-file", options.resp_password_file);
  toml.Text("admin-token-file", options.admin_token_file);
  toml.Text("fleet-secret-file", options.fleet_secret_file);
  toml.Section("Fleet");
  toml.Text("redis", WithoutPassword(config.redis));
  if (config.redis_timeout_us != 0) {
    toml.Text("redis-timeout", std::to_string(config.redis_timeout_us) + "us");
  }
  toml.Number("fleet-nodes", config.fleet_nodes);
  toml.Flag("redis-allow-eviction", config.redis_allow_eviction);
  toml.Section("How much");
  toml.Number("memory", config.memory_bytes);
  toml.Number("threads", config.threads);
  toml.Flag("pin-threads", config.pin_threads);
  toml.Number("connections-max", config.connections_max);
  toml.Number("connections-per-address", config.connections_per_address);
  toml.Number("idle-seconds", config.idle_s);
  toml.Number("message-seconds", config.message_s);
  toml.Number("drain-seconds", config.drain_s);
  toml.Number("grpc-max-age-seconds", config.grpc_max_age_s);
  toml.Number("grpc-max-age-grace-seconds", config.grpc_max_age_grace_s);
  toml.Number("top-keys", config.top_keys);
  toml.Section("Answers");
  toml.List("headers", config.headers);
  toml.Flag("reset-as-delta", config.reset_as_delta);
  toml.List("attribute", config.attributes);
  toml.Number("ipv6-prefix", config.ipv6_prefix);
  toml.Section("Log");
  toml.Text("log-level", NameOf(config.log_level));
  toml.Text("log-format", config.log_format == server::LogFormat::kJson ? "json" : "text");
  toml.Section("Tests");
  toml.Text("test-clock", config.test_clock);
  return toml.Take();
}

}  // namespace weir::app
