#include "server/front_options.h"

#include <chrono>
#include <string_view>

#include "base/same_text.h"

namespace weir::server {

namespace {

using codec::http::ClientSource;

struct Family {
  std::string_view name;
  uint8_t bits;
};

constexpr Family kFamilies[] = {
    {"x-ratelimit", codec::http::kXRateLimit}, {"ietf", codec::http::kRateLimit},
    {"ietf-07", codec::http::kRateLimit7},     {"ietf-03", codec::http::kRateLimit3},
    {"polli", codec::http::kXRateLimitList},   {"weir", codec::http::kWeir},
    {"retry-after", codec::http::kRetryAfter}, {"none", 0},
};

struct Source {
  std::string_view name;
  ClientSource source;
};

constexpr Source kSources[] = {{"x-forwarded-for", ClientSource::kXForwardedFor},
                               {"forwarded", ClientSource::kForwarded},
                               {"x-real-ip", ClientSource::kXRealIp},
                               {"peer", ClientSource::kPeer}};

template <class Table>
std::string Names(const Table& table) {
  std::string names;
  for (const auto& entry : table) {
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return names;
}

template <class Table>
const auto* Find(const Table& table, std::string_view name) {
  for (const auto& entry : table) {
    if (entry.name == name) {
      return &entry;
    }
  }
  return static_cast<decltype(&table[0])>(nullptr);
}

}  // namespace

Result<FrontOptions> FrontOptions::From(const ServerConfig& config) {
  FrontOptions options;
  options.answers.families = 0;
  for (const std::string& name : config.headers) {
    const Family* const family = Find(kFamilies, name);
    if (family == nullptr) {
      return Error::Invalid("--headers '" + name + "': expected " + Names(kFamilies));
    }
    options.answers.families |= family->bits;
  }
  if (config.reset_as_delta) {
    options.answers.reset = codec::http::ResetStyle::kDelta;
  }
  const Source* const source = Find(kSources, config.client_from);
  if (source == nullptr) {
    return Error::Invalid("--client-from '" + config.client_from + "': expected " +
                          Names(kSources));
  }
  std::vector<base::IpPrefix> trusted;
  for (const std::string& text : config.trusted_proxies) {
    trusted.push_back(*base::IpPrefix::Parse(text));  // Validate has looked
  }
  options.client = codec::http::ClientAddress(source->source, std::move(trusted));
  for (const std::string& mapping : config.attributes) {
    constexpr std::string_view kHeader = "=header:";
    const size_t at = mapping.find(kHeader);
    if (at == std::string::npos || at == 0 || at + kHeader.size() == mapping.size()) {
      return Error::Invalid("--attribute '" + mapping +
                            "': expected NAME=header:FIELD, such as user=header:x-user-id");
    }
    std::string field = mapping.substr(at + kHeader.size());
    for (char& character : field) {
      character = base::LowerCase(character);
    }
    options.attributes.emplace_back(mapping.substr(0, at), std::move(field));
  }
  options.admin_token = config.admin_token;
  options.proxy_protocol = config.proxy_protocol;
  options.start_time_s =
      std::chrono::duration_cast<std::chrono::seconds>(SystemClock().WallNow().time_since_epoch())
          .count();
  return options;
}

}  // namespace weir::server
