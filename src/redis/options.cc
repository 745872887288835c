#include "redis/options.h"

#include <sys/un.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <optional>

namespace weir::redis {

namespace {

constexpr uint16_t kPort = 6379;
constexpr uint16_t kSentinelPort = 26379;
constexpr size_t kAddressesMax = 64;
constexpr size_t kUrlBytesMax = 8192;
constexpr uint32_t kConnectionsMax = 16;
constexpr uint32_t kInFlightMax = 65536;
constexpr std::string_view kExpected =
    "; expected redis://[user:password@]host[:port][/database], rediss://…, unix:///path, "
    "redis+sentinel://host,…/name, redis+cluster://host,… or redis+list://host,…";

Error Bad(const std::string& what) {
  return Error::Invalid("Redis URL: " + what);
}

template <class Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                  : std::nullopt;
}

// %41 to A. Nothing if a % is not followed by two digits.
std::optional<std::string> Decode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    uint8_t byte = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) {
      return std::nullopt;
    }
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

std::optional<Duration> DurationOf(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = NumberOf<uint32_t>(text.substr(0, digits));
  const std::string_view unit = text.substr(digits);
  if (!number || (unit != "ms" && unit != "s" && unit != "us")) {
    return std::nullopt;
  }
  return unit == "s"    ? Duration(std::chrono::seconds(*number))
         : unit == "ms" ? Duration(std::chrono::milliseconds(*number))
                        : Duration(std::chrono::microseconds(*number));
}

Result<Address> AddressOf(std::string_view text, uint16_t port) {
  Address address{.host = {}, .port = port, .unix_path = {}};
  std::string_view rest;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) {
      return Bad("'" + std::string(text) + "' has [ without ]");
    }
    address.host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
  } else {
    const size_t colon = text.find(':');
    address.host = text.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon);
  }
  if (rest.rfind(':') != 0 && rest.find(':') == 0) {
    return Bad("'" + std::string(text) + "': IPv6 addresses go into brackets");
  }
  if (address.host.empty()) {
    return Bad("no host in '" + std::string(text) + "'" + std::string(kExpected));
  }
  if (!rest.empty()) {
    const auto number = rest.starts_with(':') ? NumberOf<uint16_t>(rest.substr(1)) : std::nullopt;
    if (!number || *number == 0) {
      return Bad("'" + std::string(text) + "' has no port from 1 to 65535");
    }
    address.port = *number;
  }
  return address;
}

std::optional<std::string> ReadFirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) {
    return std::nullopt;
  }
  if (line.ends_with('\r')) {
    line.pop_back();
  }
  return line;
}

// One `name=value` after the ?.
Result<void> Apply(Options& options, std::string_view name, const std::string& value) {
  const auto refuse = [&](std::string_view expected) -> Result<void> {
    const bool secret = name.find("password") != std::string_view::npos;
    return Bad(std::string(name) + (secret ? "" : "='" + value + "'") + ": expected " +
               std::string(expected));
  };
  const auto number = [&](uint32_t& into, uint32_t least, uint32_t most) -> Result<void> {
    const auto read = NumberOf<uint32_t>(value);
    if (!read || *read < least || *read > most) {
      return refuse("a number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    into = *read;
    return {};
  };
  const auto duration = [&](Duration& into) -> Result<void> {
    const auto read = DurationOf(value);
    if (!read || *read < std::chrono::milliseconds(1) || *read > std::chrono::minutes(1)) {
      return refuse("a time from 1ms to 60s, such as 10ms");
    }
    into = *read;
    return {};
  };
  const auto text = [&](std::string& into) -> Result<void> {
    into = value;
    return {};
  };
  if (name == "timeout") {
    return duration(options.timeout);
  }
  if (name == "connect-timeout") {
    return duration(options.connect_timeout);
  }
  if (name == "connections") {
    return number(options.connections, 1, kConnectionsMax);
  }
  if (name == "in-flight") {
    return number(options.in_flight_max, 1, kInFlightMax);
  }
  if (name == "db") {
    return number(options.database, 0, 1 << 20);
  }
  if (name == "name") {
    const bool good = !value.empty() && value.size() <= 64 &&
                      std::all_of(value.begin(), value.end(), [](char character) {
                        return character > ' ' && character < 127;
                      });
    return good ? text(options.client_name) : refuse("1 to 64 printable characters");
  }
  if (name == "user") {
    return text(options.user);
  }
  if (name == "sentinel-user") {
    return text(options.sentinel_user);
  }
  if (name == "password") {
    options.password = Secret(value);
    return {};
  }
  if (name == "sentinel-password") {
    options.sentinel_password = Secret(value);
    return {};
  }
  if (name == "password-file") {
    const auto line = ReadFirstLine(value);
    if (!line) {
      return Bad("password-file '" + value + "' cannot be read, or is empty");
    }
    options.password = Secret(*line);
    return {};
  }
  if (name == "ca") {
    return text(options.tls.ca_file);
  }
  if (name == "cert") {
    return text(options.tls.certificate_file);
  }
  if (name == "key") {
    return text(options.tls.key_file);
  }
  if (name == "server-name") {
    return text(options.tls.server_name);
  }
  if (name == "verify") {
    options.tls.verify = value == "yes";
    return value == "yes" || value == "no" ? Result<void>() : refuse("yes or no");
  }
  return Bad("unknown parameter '" + std::string(name) +
             "'; known are timeout, connect-timeout, connections, in-flight, db, name, user, "
             "password, password-file, sentinel-user, sentinel-password, ca, cert, key, "
             "server-name, verify");
}

Result<void> ApplyAll(Options& options, std::string_view query) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const size_t equals = pair.find('=');
    const auto value =
        equals == std::string_view::npos ? std::nullopt : Decode(pair.substr(equals + 1));
    if (!value) {
      return Bad("'" + std::string(pair.substr(0, equals)) + "' after ? is not name=value");
    }
    if (Result<void> applied = Apply(options, pair.substr(0, equals), *value); !applied) {
      return applied;
    }
  }
  return {};
}

struct Scheme {
  std::string_view text;
  Topology topology;
  bool tls;
};

constexpr std::array kSchemes = {
    Scheme{"redis", Topology::kSingle, false},
    Scheme{"rediss", Topology::kSingle, true},
    Scheme{"redis+sentinel", Topology::kSentinel, false},
    Scheme{"rediss+sentinel", Topology::kSentinel, true},
    Scheme{"redis+cluster", Topology::kCluster, false},
    Scheme{"rediss+cluster", Topology::kCluster, true},
    Scheme{"redis+list", Topology::kList, false},
    Scheme{"rediss+list", Topology::kList, true},
};

Result<void> ReadUser(Options& options, std::string_view text) {
  const size_t colon = text.find(':');
  const auto user = Decode(text.substr(0, colon));
  const auto password =
      Decode(colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1));
  if (!user || !password) {
    return Bad("a % before @ is not followed by two hexadecimal digits; write % itself as %25");
  }
  options.user = *user;
  options.password = Secret(*password);
  return {};
}

// What follows the hosts: the database, or the name that Sentinels know.
Result<void> ReadPath(Options& options, std::string_view path) {
  if (options.topology == Topology::kSentinel) {
    const size_t slash = path.find('/');
    const auto name = Decode(path.substr(0, slash));
    if (!name || name->empty()) {
      return Bad("no name of a master after the Sentinels; expected redis+sentinel://host,…/name");
    }
    options.master_name = *name;
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  if (path.empty()) {
    return {};
  }
  const auto database = NumberOf<uint32_t>(path);
  if (!database) {
    return Bad("'" + std::string(path) + "' is not the number of a database");
  }
  options.database = *database;
  return {};
}

Result<void> ReadHosts(Options& options, std::string_view hosts) {
  const uint16_t port = options.topology == Topology::kSentinel ? kSentinelPort : kPort;
  while (!hosts.empty()) {
    const std::string_view one = hosts.substr(0, hosts.find(','));
    hosts.remove_prefix(std::min(hosts.size(), one.size() + 1));
    Result<Address> address = AddressOf(one, port);
    if (!address) {
      return address.error();
    }
    const auto& known = options.addresses;
    if (std::find(known.begin(), known.end(), *address) != known.end()) {
      return Bad("'" + address->ToText() + "' is there twice");
    }
    options.addresses.push_back(*std::move(address));
  }
  if (options.addresses.empty() || options.addresses.size() > kAddressesMax) {
    return Bad(options.addresses.empty() ? "no host" + std::string(kExpected)
                                         : "more than 64 hosts");
  }
  if (options.topology == Topology::kSingle && options.addresses.size() > 1) {
    return Bad(
        "several hosts; say what they are: redis+cluster:// (nodes of a Cluster), "
        "redis+sentinel:// (Sentinels) or redis+list:// (instances that share the keys)");
  }
  return {};
}

Result<void> Check(const Options& options) {
  if (options.database != 0 && options.topology == Topology::kCluster) {
    return Bad("a Cluster has only database 0");
  }
  if (options.password.empty() && !options.user.empty()) {
    return Bad("a user without a password; for a password alone write redis://:password@host");
  }
  if (options.tls.certificate_file.empty() != options.tls.key_file.empty()) {
    return Bad("cert and key go together");
  }
  const bool any_tls = !options.tls.ca_file.empty() || !options.tls.certificate_file.empty() ||
                       !options.tls.server_name.empty() || !options.tls.verify;
  if (any_tls && !options.tls.enabled) {
    return Bad("ca, cert, key, server-name and verify are for TLS: rediss://");
  }
  return {};
}

}  // namespace

std::string_view NameOf(Topology topology) noexcept {
  switch (topology) {
    case Topology::kSingle:
      return "single";
    case Topology::kSentinel:
      return "sentinel";
    case Topology::kCluster:
      return "cluster";
    case Topology::kList:
      return "list";
  }
  return "unknown";
}

std::string Address::ToText() const {
  if (!unix_path.empty()) {
    return "unix:" + unix_path;
  }
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Options> Options::Parse(std::string_view url) {
  const size_t mark = url.find("://");
  if (mark == std::string_view::npos || url.size() > kUrlBytesMax) {
    return Bad((mark == std::string_view::npos ? "no scheme such as redis://" : "too long") +
               std::string(kExpected));
  }
  const std::string_view scheme = url.substr(0, mark);
  std::string_view rest = url.substr(mark + 3);
  Options options;
  const size_t question = rest.find('?');
  const std::string_view query =
      question == std::string_view::npos ? std::string_view() : rest.substr(question + 1);
  rest = rest.substr(0, question);
  // A password may hold an @ that nobody wrote as %40.
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    if (Result<void> read = ReadUser(options, rest.substr(0, at)); !read) {
      return read.error();
    }
    rest.remove_prefix(at + 1);
  }
  if (scheme == "unix" || scheme == "redis+unix") {
    const auto path = Decode(rest);
    if (!path || !path->starts_with('/') || path->size() >= sizeof(sockaddr_un::sun_path)) {
      return Bad("unix:// needs an absolute path that fits a socket" + std::string(kExpected));
    }
    options.addresses.push_back({.host = {}, .port = 0, .unix_path = *path});
  } else {
    const auto* known = std::find_if(kSchemes.begin(), kSchemes.end(),
                                     [&](const Scheme& one) { return one.text == scheme; });
    if (known == kSchemes.end()) {
      return Bad("unknown scheme '" + std::string(scheme) + "'" + std::string(kExpected));
    }
    options.topology = known->topology;
    options.tls.enabled = known->tls;
    const size_t slash = rest.find('/');
    const std::string_view path =
        slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
    if (Result<void> read = ReadHosts(options, rest.substr(0, slash)); !read) {
      return read.error();
    }
    if (Result<void> read = ReadPath(options, path); !read) {
      return read.error();
    }
  }
  if (Result<void> applied = ApplyAll(options, query); !applied) {
    return applied.error();
  }
  if (Result<void> good = Check(options); !good) {
    return good.error();
  }
  return options;
}

std::string Options::ToText() const {
  std::string text = tls.enabled ? "rediss" : "redis";
  if (topology != Topology::kSingle) {
    text += "+" + std::string(NameOf(topology));
  }
  text += "://";
  for (const Address& address : addresses) {
    text += (&address == &addresses.front() ? "" : ",") + address.ToText();
  }
  if (!master_name.empty()) {
    text += "/" + master_name;
  }
  if (database != 0) {
    text += "/" + std::to_string(database);
  }
  return text;
}

}  // namespace weir::redis
