#include "server/rule_commands.h"

#include <charconv>
#include <string>

namespace weir::server {

namespace {

std::string_view ToText(Outcome outcome) {
  switch (outcome) {
    case Outcome::kAllowed:
      return "allowed";
    case Outcome::kDenied:
      return "denied";
    case Outcome::kRefused:
      break;
  }
  return "refused";
}

constexpr uint64_t kTtlMsMax = 86'400'000;

bool ParseNumber(std::string_view text, uint64_t most, uint64_t& number) {
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  return problem == std::errc() && rest == end && number <= most;
}

}  // namespace

bool RuleCommands::Run(std::string_view name, std::span<const std::string_view> arguments) {
  if (name == "weir.settle") {
    return Settle(arguments[0], arguments[1]);
  }
  if (name == "weir.release") {
    return Settle(arguments[0], "0");
  }
  if (name == "weir.renew") {
    return Renew(arguments[0]);
  }
  const bool about_others = name == "weir.explain" || name == "weir.reset";
  if (!ParseRequest(arguments, about_others)) {
    return false;
  }
  if (name == "weir.check") {
    return Check(ChargeMode::kAdmit);
  }
  if (name == "weir.peek") {
    return Check(ChargeMode::kDryRun);
  }
  if (name == "weir.usage") {
    return Usage();
  }
  if (name == "weir.reset") {
    return Reset();
  }
  if (name == "weir.hold") {
    return HoldOn();
  }
  return Explain();
}

bool RuleCommands::Fail(std::string_view error) {
  writer_.Error(error);
  return false;
}

bool RuleCommands::ParseRequest(std::span<const std::string_view> arguments, bool about_others) {
  while (arguments.size() > 1 &&
         (arguments[0] == "COST" || arguments[0] == "TTL" || arguments[0] == "RULE")) {
    if (arguments[0] == "RULE") {
      rule_ = arguments[1];
      arguments = arguments.subspan(2);
      continue;
    }
    const bool is_cost = arguments[0] == "COST";
    const uint64_t most = is_cost ? Cost::kMax : kTtlMsMax;
    uint64_t number = 0;
    if (!ParseNumber(arguments[1], most, number)) {
      return Fail("ERR " + std::string(arguments[0]) + " '" +
                  std::string(arguments[1].substr(0, 64)) + "' is not a whole number from 0 to " +
                  std::to_string(most));
    }
    if (is_cost) {
      request_.cost = number;
    } else {
      lasts_ = std::chrono::milliseconds(number);
    }
    arguments = arguments.subspan(2);
  }
  if (arguments.empty() || arguments.size() % 2 != 0) {
    return Fail("ERR attributes come in pairs of name and value, such as: ip 192.0.2.1 path /");
  }
  if (arguments.size() / 2 > kMaxAttributes) {
    return Fail("ERR " + std::to_string(arguments.size() / 2) +
                " attributes; at most 128 are allowed");
  }
  constexpr std::string_view kTlsClient = "tls_client";
  size_t count = 0;
  if (!about_others && !tls_client_.empty()) {
    attributes_[count++] = {kTlsClient, tls_client_};
  }
  for (size_t i = 0; i < arguments.size(); i += 2) {
    if (about_others || arguments[i] != kTlsClient) {  // which only a certificate says
      attributes_[count++] = {arguments[i], arguments[i + 1]};
    }
  }
  request_.attributes = std::span(attributes_).first(count);
  request_.now = now_;
  request_.wall = wall_;
  return true;
}

void RuleCommands::WriteMs(std::string_view name, Duration duration) {
  writer_.Bulk(name);
  writer_.Integer(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

// The deciding rule, as docs/reference/resp.md shows it.
bool RuleCommands::Check(ChargeMode mode) {
  const RuleLimiter::Pin pin = deciders_.rules->pin();
  request_.mode = mode;
  deciders_.rules->Check(pin, request_, reply_);
  if (reply_.problem != Problem::kNone) {
    return Fail("ERR " + std::string(weir::Explain(reply_.problem)));
  }
  WriteReply({});
  return true;
}

void RuleCommands::WriteReply(std::string_view token) {
  if (!reply_.allowed()) {
    denials_.Note("resp", reply_, wall_);
  }
  const RulePart* const part = reply_.deciding();
  const RuleView* const rule = part != nullptr ? part->rule : reply_.refusing;
  const bool away = !reply_.allowed() && reply_.trouble != StoreTrouble::kNone;
  const bool refused = reply_.why != RuleRefusal::kNone || away;
  writer_.Map(3 + (refused ? 1 : 0) + (rule != nullptr ? 1 : 0) + (part != nullptr ? 4 : 0) +
              (token.empty() ? 0 : 1) + (reply_.start_after > Duration::zero() ? 1 : 0));
  writer_.Bulk("allowed");
  writer_.Bool(reply_.allowed());
  writer_.Bulk("outcome");
  writer_.Bulk(ToText(reply_.outcome));
  WriteMs("retry_after_ms", reply_.retry_after);
  if (reply_.start_after > Duration::zero()) {
    WriteMs("start_after_ms", reply_.start_after);
  }
  if (refused) {
    writer_.Bulk("reason");
    writer_.Bulk(away ? "store unavailable" : ToString(reply_.why));
  }
  if (!token.empty()) {
    writer_.Bulk("token");
    writer_.Bulk(token);
  }
  if (rule != nullptr) {
    writer_.Bulk("rule");
    writer_.Bulk(rule->name);
  }
  if (part != nullptr) {
    writer_.Bulk("limit");
    writer_.Integer(part->decision.limit);
    writer_.Bulk("remaining");
    writer_.Integer(part->decision.remaining);
    WriteMs("reset_after_ms", part->decision.reset_after);
    writer_.Bulk("basis");
    writer_.Bulk(ToString(part->decision.basis));
  }
}

// Charges the rates and takes the concurrency that a request meets, until it is settled, released,
// or its time is over.
bool RuleCommands::HoldOn() {
  const RuleLimiter::Pin pin = deciders_.rules->pin();
  const std::string token = deciders_.reservations.Reserve(*deciders_.rules, pin,
                                                           {.attributes = request_.attributes,
                                                            .estimate = request_.cost.units,
                                                            .lasts = lasts_,
                                                            .now = now_,
                                                            .wall = wall_},
                                                           reply_);
  if (reply_.problem != Problem::kNone) {
    return Fail("ERR " + std::string(weir::Explain(reply_.problem)));
  }
  WriteReply(token);
  return true;
}

bool RuleCommands::Settle(std::string_view token, std::string_view actual) {
  uint64_t units = 0;
  if (!ParseNumber(actual, Cost::kMax, units)) {
    return Fail("ERR '" + std::string(actual.substr(0, 64)) + "' is not a whole number from 0 to " +
                std::to_string(Cost::kMax));
  }
  const ReservationBook::Settled settled = deciders_.reservations.Settle(token, units, now_);
  if (settled.trouble != StoreTrouble::kNone) {
    return Fail("TRYAGAIN the store is out of reach; nothing is known to have been settled");
  }
  switch (settled.outcome) {
    case SettleOutcome::kSettled:
      writer_.Integer(1);
      return true;
    case SettleOutcome::kAlreadySettled:
      writer_.Integer(0);
      return true;
    case SettleOutcome::kGone:
    case SettleOutcome::kRefused:
      break;
  }
  return Fail("ERR no such token: it has ended, or was never given out");
}

bool RuleCommands::Renew(std::string_view token) {
  writer_.Integer(static_cast<int64_t>(deciders_.reservations.Renew(token, now_)));
  return true;
}

// How many quotas knew what the request is counted by.
bool RuleCommands::Reset() {
  int64_t known = 0;
  for (const RuleReset& one : deciders_.rules->Reset(request_.attributes, rule_, now_)) {
    known += one.outcome == ResetOutcome::kDone || one.outcome == ResetOutcome::kShared ? 1 : 0;
  }
  writer_.Integer(known);
  return true;
}

// Every quota that the request would meet, and what is left of it.
bool RuleCommands::Usage() {
  const RuleLimiter::Pin pin = deciders_.rules->pin();
  request_.mode = ChargeMode::kDryRun;
  request_.cost = 0;
  deciders_.rules->Check(pin, request_, reply_);
  if (reply_.problem != Problem::kNone) {
    return Fail("ERR " + std::string(weir::Explain(reply_.problem)));
  }
  writer_.Array(reply_.parts().size());
  for (const RulePart& part : reply_.parts()) {
    writer_.Map(7);
    writer_.Bulk("rule");
    writer_.Bulk(part.rule->name);
    writer_.Bulk("quota");
    writer_.Bulk(part.quota->text);
    writer_.Bulk("limit");
    writer_.Integer(part.decision.limit);
    writer_.Bulk("remaining");
    writer_.Integer(part.decision.remaining);
    WriteMs("reset_after_ms", part.decision.reset_after);
    writer_.Bulk("shadow");
    writer_.Bool(part.shadow);
    writer_.Bulk("basis");
    writer_.Bulk(ToString(part.decision.basis));
  }
  return true;
}

bool RuleCommands::Explain() {
  writer_.Verbatim(ToText(deciders_.rules->Explain(request_.attributes, request_.cost)));
  return true;
}

}  // namespace weir::server
