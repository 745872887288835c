#include "envoy/redis_environment.h"

#include <chrono>
#include <string_view>

#include "base/same_text.h"
#include "base/spelling.h"

namespace weir::envoy {

namespace {

class Given {
 public:
  explicit Given(const Environment& environment) : environment_(environment) {}

  [[nodiscard]] std::string Text(std::string_view name) const {
    return environment_(name).value_or("");
  }
  // What a number of words mean true to Go.
  [[nodiscard]] bool IsTrue(std::string_view name) const {
    const std::string text = Text(name);
    return text == "1" || text == "t" || base::SameLetters(text, "true") || text == "T";
  }

 private:
  const Environment& environment_;
};

std::string Escaped(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char character : text) {
    const bool plain = (character >= 'a' && character <= 'z') ||
                       (character >= 'A' && character <= 'Z') ||
                       (character >= '0' && character <= '9') || character == '-' ||
                       character == '_' || character == '.' || character == '/';
    if (plain) {
      out += character;
    } else {
      const auto byte = static_cast<unsigned char>(character);
      out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  return out;
}

// Parameters behind the ?.
class Query {
 public:
  void Add(std::string_view name, std::string_view value) {
    if (!value.empty()) {
      text_ += text_.empty() ? '?' : '&';
      text_.append(name).append("=").append(Escaped(value));
    }
  }
  // "password", or "user:password".
  void AddAuth(std::string_view prefix, std::string_view auth) {
    const size_t colon = auth.find(':');
    if (colon != std::string_view::npos) {
      Add(std::string(prefix) + "user", auth.substr(0, colon));
      auth.remove_prefix(colon + 1);
    }
    Add(std::string(prefix) + "password", auth);
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

Result<void> AddTimeout(std::string_view text, Query& query) {
  if (text.empty()) {
    return {};
  }
  const auto timeout = ParseGoDuration(text);
  if (!timeout || *timeout < std::chrono::milliseconds(1) || *timeout > std::chrono::minutes(1)) {
    return Error::Invalid("REDIS_TIMEOUT: found " + base::Quoted(text) +
                          "; expected a time from 1ms to 1m, such as 20ms");
  }
  query.Add(
      "timeout",
      std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(*timeout).count()) +
          "ms");
  return {};
}

}  // namespace

Result<std::string> RedisUrl(const Environment& environment) {
  const Given variables(environment);
  const std::string where = variables.Text("REDIS_URL");
  if (where.empty()) {
    return std::string();
  }
  const bool tls = variables.IsTrue("REDIS_TLS");
  Query query;
  query.AddAuth("", variables.Text("REDIS_AUTH"));
  if (tls) {
    query.Add("ca", variables.Text("REDIS_TLS_CACERT"));
    query.Add("cert", variables.Text("REDIS_TLS_CLIENT_CERT"));
    query.Add("key", variables.Text("REDIS_TLS_CLIENT_KEY"));
    query.Add("verify", variables.IsTrue("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION") ? "no" : "");
  }
  if (auto added = AddTimeout(variables.Text("REDIS_TIMEOUT"), query); !added) {
    return added.error();
  }
  const std::string type = variables.Text("REDIS_TYPE");
  const std::string scheme = tls ? "rediss" : "redis";
  if (base::SameLetters(type, "cluster")) {
    return scheme + "+cluster://" + where + query.text();
  }
  if (base::SameLetters(type, "sentinel")) {
    const size_t comma = where.find(',');
    if (comma == std::string::npos) {
      return Error::Invalid("REDIS_URL: found " + base::Quoted(where) +
                            "; expected the master's name and Sentinels: mymaster,host:port,…");
    }
    query.AddAuth("sentinel-", variables.Text("REDIS_SENTINEL_AUTH"));
    return scheme + "+sentinel://" + where.substr(comma + 1) + "/" + where.substr(0, comma) +
           query.text();
  }
  if (!type.empty() && !base::SameLetters(type, "single")) {
    return Error::Invalid("REDIS_TYPE: found " + base::Quoted(type) +
                          "; expected SINGLE, SENTINEL or CLUSTER");
  }
  const std::string socket = variables.Text("REDIS_SOCKET_TYPE");
  if (base::SameLetters(socket, "tcp")) {
    return scheme + "://" + where + query.text();
  }
  if (!socket.empty() && !base::SameLetters(socket, "unix")) {
    return Error::Invalid("REDIS_SOCKET_TYPE: found " + base::Quoted(socket) +
                          "; expected tcp or unix");
  }
  return "unix://" + where + query.text();
}

}  // namespace weir::envoy
