// weir serve: flags, environment and file to a configuration; then the server, until a signal.
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "apps/weir/commands.h"
#include "apps/weir/serve_options.h"
#include "envoy/environment.h"
#include "server/config.h"
#include "server/run.h"

namespace weir::app {

namespace {

using server::ServerConfig;

constexpr const char* kAbout =
    "Answers over HTTP and the Redis protocol whether a request may pass.\n\n"
    "  weir serve --rules rules.yaml\n"
    "  curl -i localhost:8080/v1/check -d '{\"attributes\": {\"ip\": \"192.0.2.1\"}}'\n"
    "  redis-cli -p 6380 CL.THROTTLE user123 15 30 60 1\n\n"
    "Each option can also be a line of a file (--config weir.toml: rules = \"rules.yaml\") or a\n"
    "variable of the environment (WEIR_RULES). A flag wins over the environment, and that over\n"
    "the file. Changed rule files are taken without a restart; SIGHUP looks at once, SIGTERM ends\n"
    "after what is under way has been answered.";

// A secret is a file's first line, so that it is on no command line and in no environment.
std::string ReadSecret(const std::string& option, const std::string& path) {
  if (path.empty()) {
    return {};
  }
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line.empty()) {
    throw CLI::ValidationError("--" + option, path + ": no secret in its first line");
  }
  return line;
}

// "off" turns a front off.
void WithoutOff(std::vector<std::string>& addresses) {
  std::erase_if(addresses, [](const std::string& address) { return address == "off"; });
}

void AddListeners(CLI::App& command, ServerConfig& config) {
  command.add_option("--http", config.http, "HTTP: addresses, or off")
      ->delimiter(',')
      ->envname("WEIR_HTTP")
      ->capture_default_str()
      ->group("Where");
  command.add_option("--resp", config.resp, "Redis protocol: addresses, or off")
      ->delimiter(',')
      ->envname("WEIR_RESP")
      ->capture_default_str()
      ->group("Where");
  command.add_option("--grpc", config.grpc, "gRPC, as Envoy asks: addresses, or off")
      ->delimiter(',')
      ->envname("WEIR_GRPC")
      ->group("Where");
  command
      .add_option(
          "--descriptors", config.descriptors,
          "what Envoy's questions are decided by: files of envoyproxy/ratelimit, or folders "
          "of them")
      ->delimiter(',')
      ->envname("WEIR_DESCRIPTORS")
      ->check(CLI::ExistingPath);
  command
      .add_flag("--grpc-on-http", config.grpc_on_http, "the addresses of --http speak gRPC as well")
      ->envname("WEIR_GRPC_ON_HTTP")
      ->group("Where");
  command
      .add_option("--admin", config.admin,
                  "metrics, explain, top keys, reload: addresses, or off. Others than this machine "
                  "need --admin-token-file")
      ->delimiter(',')
      ->envname("WEIR_ADMIN")
      ->capture_default_str()
      ->group("Where");
  command
      .add_option("--trusted-proxy", config.trusted_proxies,
                  "prefixes whose X-Forwarded-For, X-Real-IP and Forwarded are believed")
      ->delimiter(',')
      ->envname("WEIR_TRUSTED_PROXY")
      ->group("Where");
  command
      .add_option("--client-from", config.client_from,
                  "the one header that those proxies set: x-forwarded-for, forwarded, x-real-ip, "
                  "or peer")
      ->envname("WEIR_CLIENT_FROM")
      ->capture_default_str()
      ->group("Where");
  command
      .add_option(
          "--geo-db", config.geo_db,
          "databases of MaxMind's format (GeoLite2-ASN, GeoLite2-Country): rules know asn and "
          "country of a client's address; taken anew when they change")
      ->delimiter(',')
      ->envname("WEIR_GEO_DB")
      ->type_name("FILE")
      ->group("Where");
  command
      .add_flag("--proxy-protocol", config.proxy_protocol,
                "every HTTP connection begins with the PROXY protocol")
      ->envname("WEIR_PROXY_PROTOCOL")
      ->group("Where");
}

void AddTls(CLI::App& command, ServerConfig& config) {
  const auto add = [&command](const char* name, std::vector<std::string>& files, const char* about,
                              const char* variable) {
    command.add_option(name, files, about)
        ->delimiter(',')
        ->envname(variable)
        ->group("TLS, for addresses such as tls:0.0.0.0:8443 (FILE, or FRONT=FILE for one front)");
  };
  add("--tls-cert", config.tls_cert, "PEM: the certificate, then those that lead to its authority",
      "WEIR_TLS_CERT");
  add("--tls-key", config.tls_key, "PEM: its key, not encrypted", "WEIR_TLS_KEY");
  add("--tls-client-ca", config.tls_client_ca,
      "PEM: at addresses such as mtls:0.0.0.0:8443, who must have signed a client's certificate",
      "WEIR_TLS_CLIENT_CA");
  add("--tls-client-name", config.tls_client_names,
      "a name that such a certificate must have: DNS, address or URI (NAME, or FRONT=NAME)",
      "WEIR_TLS_CLIENT_NAME");
}

void AddSecrets(CLI::App& command, ServeOptions& options) {
  command
      .add_option("--resp-password-file", options.resp_password_file,
                  "what clients of the Redis protocol must AUTH with")
      ->envname("WEIR_RESP_PASSWORD_FILE")
      ->group("Secrets (the first line of a file)");
  command
      .add_option("--admin-token-file", options.admin_token_file,
                  "what the admin endpoints want as Authorization: Bearer")
      ->envname("WEIR_ADMIN_TOKEN_FILE")
      ->group("Secrets (the first line of a file)");
  command
      .add_option("--fleet-secret-file", options.fleet_secret_file,
                  "shifts windows and canaries alike on every node of a fleet")
      ->envname("WEIR_FLEET_SECRET_FILE")
      ->group("Secrets (the first line of a file)");
}

void AddLimits(CLI::App& command, ServerConfig& config) {
  command.add_option("--memory", config.memory_bytes, "for all that is counted")
      ->envname("WEIR_MEMORY")
      ->transform(CLI::AsSizeValue(false))
      ->default_str("256MiB")
      ->group("How much");
  command.add_option("--threads", config.threads, "loops; 0: one a processor")
      ->envname("WEIR_THREADS")
      ->check(CLI::Range(0, 256))
      ->capture_default_str()
      ->group("How much");
  command.add_flag("--pin-threads", config.pin_threads, "each loop on a processor of its own")
      ->envname("WEIR_PIN_THREADS")
      ->group("How much");
  command.add_option("--connections-max", config.connections_max, "in all")
      ->envname("WEIR_CONNECTIONS_MAX")
      ->check(CLI::Range(1U, 1'000'000U))
      ->capture_default_str()
      ->group("How much");
  command
      .add_option("--connections-per-address", config.connections_per_address,
                  "of one address (IPv6: network); 0: as many. This machine and trusted proxies "
                  "are not counted")
      ->envname("WEIR_CONNECTIONS_PER_ADDRESS")
      ->check(CLI::Range(0U, 1'000'000U))
      ->capture_default_str()
      ->group("How much");
  command.add_option("--idle-seconds", config.idle_s, "between requests; 0: for ever")
      ->envname("WEIR_IDLE_SECONDS")
      ->check(CLI::Range(0U, 86'400U))
      ->capture_default_str()
      ->group("How much");
  command.add_option("--message-seconds", config.message_s, "for all of a request to come in")
      ->envname("WEIR_MESSAGE_SECONDS")
      ->check(CLI::Range(1U, 3600U))
      ->capture_default_str()
      ->group("How much");
  command.add_option("--drain-seconds", config.drain_s, "to end after SIGTERM")
      ->envname("WEIR_DRAIN_SECONDS")
      ->check(CLI::Range(0U, 3600U))
      ->capture_default_str()
      ->group("How much");
  command
      .add_option("--grpc-max-age-seconds", config.grpc_max_age_s,
                  "of a gRPC connection, which is then asked to come anew; 0: any")
      ->envname("WEIR_GRPC_MAX_AGE_SECONDS")
      ->check(CLI::Range(0U, 31'536'000U))
      ->capture_default_str()
      ->group("How much");
  command
      .add_option("--grpc-max-age-grace-seconds", config.grpc_max_age_grace_s,
                  "for calls that are under way then; 0: any")
      ->envname("WEIR_GRPC_MAX_AGE_GRACE_SECONDS")
      ->check(CLI::Range(0U, 31'536'000U))
      ->capture_default_str()
      ->group("How much");
  command.add_option("--top-keys", config.top_keys, "to keep track of for each rule; 0: none")
      ->envname("WEIR_TOP_KEYS")
      ->check(CLI::Range(0U, 10'000U))
      ->capture_default_str()
      ->group("How much");
}

void AddFleet(CLI::App& command, ServerConfig& config) {
  constexpr const char* kGroup = "Fleet: nodes that share their limits";
  command
      .add_option("--redis", config.redis,
                  "where they count together, such as redis://10.0.0.5, "
                  "redis+cluster://a,b,c or redis+sentinel://a,b,c/master")
      ->envname("WEIR_REDIS")
      ->group(kGroup);
  command
      .add_option("--redis-timeout", config.redis_timeout_us,
                  "of one question; then each rule does what its on-store-failure says")
      ->envname("WEIR_REDIS_TIMEOUT")
      ->transform(CLI::AsNumberWithUnit(
          std::map<std::string, unsigned>{{"us", 1}, {"ms", 1000}, {"s", 1'000'000}},
          CLI::AsNumberWithUnit::UNIT_REQUIRED))
      ->default_str("10ms")
      ->group(kGroup);
  command
      .add_option("--fleet-nodes", config.fleet_nodes,
                  "how many nodes there are: each has this part of a limit while Redis is away")
      ->envname("WEIR_FLEET_NODES")
      ->check(CLI::Range(1U, 10'000U))
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_flag("--redis-allow-eviction", config.redis_allow_eviction,
                "use a Redis that forgets keys when its memory is full, and with them limits")
      ->envname("WEIR_REDIS_ALLOW_EVICTION")
      ->group(kGroup);
}

void AddAnswers(CLI::App& command, ServerConfig& config) {
  command
      .add_option("--headers", config.headers,
                  "families of headers: x-ratelimit, ietf, ietf-07, ietf-03, polli, weir, "
                  "retry-after, or none")
      ->delimiter(',')
      ->envname("WEIR_HEADERS")
      ->capture_default_str()
      ->group("Answers");
  command
      .add_flag("--reset-as-delta", config.reset_as_delta,
                "X-RateLimit-Reset in seconds from now instead of Unix time")
      ->envname("WEIR_RESET_AS_DELTA")
      ->group("Answers");
  command
      .add_option("--attribute", config.attributes,
                  "what /v1/auth takes from header fields, NAME=header:FIELD")
      ->delimiter(',')
      ->envname("WEIR_ATTRIBUTE")
      ->capture_default_str()
      ->group("Answers");
  command.add_option("--ipv6-prefix", config.ipv6_prefix, "bits of an IPv6 address that count")
      ->envname("WEIR_IPV6_PREFIX")
      ->check(CLI::Range(1U, 128U))
      ->capture_default_str()
      ->group("Answers");
}

// One of a few names. CLI11's own transformer shows the values behind them in the help and in
// messages: bytes, for these.
template <class Value>
CLI::Option* AddChoice(CLI::App& command, const char* flag, Value& value,
                       const std::map<std::string, Value>& choices, const std::string& named) {
  const auto take = [&value, &choices](const std::string& name) { value = choices.at(name); };
  const auto check = [&choices, named](const std::string& name) {
    return choices.contains(name) ? std::string() : "'" + name + "' is none of these: " + named;
  };
  return command.add_option_function<std::string>(flag, take, named)->check(check, "");
}

void AddLogging(CLI::App& command, ServerConfig& config) {
  static const std::map<std::string, server::LogLevel> kLevels = {
      {"debug", server::LogLevel::kDebug},
      {"info", server::LogLevel::kInfo},
      {"warning", server::LogLevel::kWarning},
      {"error", server::LogLevel::kError}};
  static const std::map<std::string, server::LogFormat> kFormats = {
      {"text", server::LogFormat::kText}, {"json", server::LogFormat::kJson}};
  AddChoice(command, "--log-level", config.log_level, kLevels, "debug, info, warning or error")
      ->envname("WEIR_LOG_LEVEL")
      ->default_str("info")
      ->group("Log");
  AddChoice(command, "--log-format", config.log_format, kFormats, "text or json")
      ->envname("WEIR_LOG_FORMAT")
      ->default_str("text")
      ->group("Log");
}

// Options that neither a flag nor the environment has given are taken from the file. CLI11 does so
// for a program's own options, but not for those of its commands.
void ReadConfig(CLI::App& command, const std::string& path) {
  CLI::ConfigBase reader;
  for (const CLI::ConfigItem& item : reader.from_file(path)) {
    if (item.name == "++" || item.name == "--") {
      continue;  // a section begins or ends
    }
    const bool ours = item.parents.empty() || item.parents == std::vector<std::string>{"serve"};
    CLI::Option* const option = ours ? command.get_option_no_throw("--" + item.name) : nullptr;
    if (option == nullptr || !option->get_configurable()) {
      throw CLI::ValidationError(
          "--config",
          path + ": '" + item.fullname() + "' is no option of weir serve; see weir serve --help");
    }
    if (option->count() != 0) {
      continue;
    }
    if (option->get_expected_min() == 0) {
      option->add_result(option->get_flag_value(item.name, reader.to_flag(item)));
    } else {
      option->add_result(item.inputs);
    }
    option->run_callback();
  }
}

// What envoyproxy/ratelimit's environment says. weir's own addresses are off then, unless given.
void StandInForEnvoy(const CLI::App& command, ServerConfig& config) {
  auto settings = envoy::ReadEnvironment(envoy::ProcessEnvironment());
  if (!settings) {
    throw CLI::ValidationError("--envoy-compat", settings.error().message);
  }
  const auto is_given = [&command](const char* option) {
    return command.get_option(option)->count() != 0;
  };
  for (const auto& [option, addresses] :
       {std::pair("--http", &config.http), std::pair("--resp", &config.resp),
        std::pair("--admin", &config.admin)}) {
    if (!is_given(option)) {
      addresses->clear();
    }
  }
  if (!is_given("--grpc")) {
    const std::string address =
        settings->grpc_uds.empty() ? settings->grpc_host + ":" + std::to_string(settings->grpc_port)
                                   : "unix:" + settings->grpc_uds;
    const std::string security = !settings->grpc_tls                ? ""
                                 : settings->grpc_client_ca.empty() ? "tls:"
                                                                    : "mtls:";
    config.grpc = {security + address};
    if (settings->grpc_tls) {
      config.tls_cert.push_back("grpc=" + settings->grpc_tls_cert);
      config.tls_key.push_back("grpc=" + settings->grpc_tls_key);
      if (!settings->grpc_client_ca.empty()) {
        config.tls_client_ca.push_back("grpc=" + settings->grpc_client_ca);
        if (!settings->grpc_client_san.empty()) {
          config.tls_client_names.push_back("grpc=" + settings->grpc_client_san);
        }
      }
    }
  }
  const auto whole_seconds = [](Duration duration) {
    return static_cast<unsigned>(
        std::chrono::duration_cast<std::chrono::seconds>(duration).count());
  };
  if (!is_given("--grpc-max-age-seconds")) {
    config.grpc_max_age_s = whole_seconds(settings->grpc_max_connection_age);
    config.grpc_max_age_grace_s = whole_seconds(settings->grpc_max_connection_age_grace);
  }
  if (!is_given("--log-level")) {
    const char first = static_cast<char>(settings->log_level[0] | 0x20);
    config.log_level = first == 't' || first == 'd' ? server::LogLevel::kDebug
                       : first == 'i'               ? server::LogLevel::kInfo
                       : first == 'w'               ? server::LogLevel::kWarning
                                                    : server::LogLevel::kError;
  }
  if (!is_given("--log-format") && settings->log_format == "json") {
    config.log_format = server::LogFormat::kJson;
  }
  if (!is_given("--redis")) {
    config.redis = settings->redis_url;
  }
  config.envoy = *std::move(settings);
}

void Serve(CLI::App& command, ServeOptions& options, int& status) {
  ServerConfig& config = options.config;
  if (!options.config_file.empty()) {
    ReadConfig(command, options.config_file);
  }
  if (options.envoy_compat || envoy::IsForEnvoy(envoy::ProcessEnvironment())) {
    StandInForEnvoy(command, config);
  }
  if (options.print_config) {
    std::cout << ToToml(options);
    return;
  }
  config.resp_password = ReadSecret("resp-password-file", options.resp_password_file);
  config.admin_token = ReadSecret("admin-token-file", options.admin_token_file);
  config.fleet_secret = ReadSecret("fleet-secret-file", options.fleet_secret_file);
  for (std::vector<std::string>* const addresses :
       {&config.http, &config.resp, &config.grpc, &config.admin}) {
    WithoutOff(*addresses);
  }
  status = server::RunUntilSignal(config) ? kSuccess : kFailure;
}

}  // namespace

void RegisterServe(CLI::App& app, int& status) {
  CLI::App* const command = app.add_subcommand("serve", kAbout);
  auto options = std::make_shared<ServeOptions>();
  ServerConfig& config = options->config;
  command->add_option("--config", options->config_file, "a file with these options, as TOML")
      ->envname("WEIR_CONFIG")
      ->check(CLI::ExistingFile)
      ->configurable(false);
  command->add_option("--rules", config.rules, "rule files; weir rules check looks at them first")
      ->delimiter(',')
      ->envname("WEIR_RULES")
      ->check(CLI::ExistingFile);
  command
      ->add_option("--state-dir", config.state_dir,
                   "where the last good rules are kept, for a start with bad ones")
      ->envname("WEIR_STATE_DIR")
      ->check(CLI::ExistingDirectory);
  AddListeners(*command, config);
  AddTls(*command, config);
  AddSecrets(*command, *options);
  AddFleet(*command, config);
  AddLimits(*command, config);
  AddAnswers(*command, config);
  AddLogging(*command, config);
  command
      ->add_option("--test-clock", config.test_clock,
                   "for tests: 8 bytes of a file, a little-endian int64, nanoseconds since 1970, "
                   "replace every clock of the decisions")
      ->envname("WEIR_TEST_CLOCK")
      ->group("Tests");
  command
      ->add_flag("--envoy-compat", options->envoy_compat,
                 "stand in for envoyproxy/ratelimit, as its environment says; any of its RUNTIME_ "
                 "variables says so as well")
      ->envname("WEIR_ENVOY_COMPAT")
      ->configurable(false);
  command
      ->add_flag("--print-config", options->print_config,
                 "print what is in effect as a file for --config, and go")
      ->configurable(false);
  command->callback([command, options, &status] { Serve(*command, *options, status); });
}

}  // namespace weir::app
