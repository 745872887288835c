// What all HTTP connections share of the configuration, ready to be used.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weir/result.h"

#include "codec/http/answer.h"
#include "codec/http/client_address.h"
#include "server/config.h"
#include "server/metrics.h"
#include "server/rule_source.h"
#include "server/rule_switches.h"

namespace weir::server {

struct FrontOptions {
  codec::http::AnswerOptions answers;
  codec::http::ClientAddress client;
  std::string admin_token;  // empty: only listeners that nobody else reaches
  bool proxy_protocol = false;
  // Attributes that /v1/auth takes from header fields: name, field in lower case.
  std::vector<std::pair<std::string, std::string>> attributes;
  int64_t start_time_s = 0;

  // What the admin endpoints ask of the server as a whole.
  std::function<Metrics()> metrics;
  std::function<RuleStatus()> rule_status;
  std::function<std::string()> rule_text;
  std::function<RuleSource::Outcome()> reload;
  RuleSwitches* switches = nullptr;

  static Result<FrontOptions> From(const ServerConfig& config);
};

}  // namespace weir::server
