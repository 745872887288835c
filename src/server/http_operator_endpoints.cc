// What operators and the curious ask for: not on the hot path, so written for reading.
#include <algorithm>
#include <charconv>
#include <string>
#include <unordered_map>

#include "base/json_text.h"
#include "base/spelling.h"
#include "codec/http/target.h"
#include "rules/issue_json.h"
#include "server/http_endpoints.h"
#include "server/openapi.h"

namespace weir::server {

namespace {

std::string Hex(uint64_t number) {
  char text[16];
  return {text, std::to_chars(text, text + sizeof text, number, 16).ptr};
}

void AddSwitches(const std::vector<RuleSwitches::One>& switches, Timestamp now,
                 base::JsonText& json) {
  json.Name("switches").Begin('[');
  for (const RuleSwitches::One& one : switches) {
    json.Begin('{');
    json.Name("rule").Text(one.rule);
    json.Name("to").Text(ToString(one.mode));
    if (one.ends) {
      json.Name("ends_in").Seconds(std::max(*one.ends - now, Duration::zero()));
    }
    json.End('}');
  }
  json.End(']');
}

std::string_view WordFor(ResetOutcome outcome) {
  switch (outcome) {
    case ResetOutcome::kDone:
      return "done";
    case ResetOutcome::kUnknown:
      return "unknown";
    case ResetOutcome::kShared:
      return "shared";
    case ResetOutcome::kRefused:
      break;
  }
  return "refused";
}

}  // namespace

// Every quota that such a request meets, and what is left of it; charges nothing.
void HttpEndpoints::Usage(const Request& request) {
  desk_.text.clear();
  const size_t count = WithQuery(request.query);
  if (count == 0) {
    Fail(400, "no attributes; expected a query such as ?user=42&ip=192.0.2.1");
    return;
  }
  const RuleLimiter::Pin pin = deciders_.rules->pin();
  RuleReply& reply = desk_.reply;
  deciders_.rules->Check(pin,
                         {.attributes = std::span(desk_.attributes).first(count),
                          .cost = 0,
                          .mode = ChargeMode::kDryRun,
                          .now = instant_.now,
                          .wall = instant_.wall},
                         reply);
  if (reply.outcome == Outcome::kRefused) {
    Fail(400, reply.problem != Problem::kNone ? weir::Explain(reply.problem) : ToString(reply.why));
    return;
  }
  base::JsonText json;
  json.Begin('{');
  json.Name("version").Text(Hex(reply.version));
  json.Name("quotas").Begin('[');
  for (const RulePart& part : reply.parts()) {
    json.Begin('{');
    json.Name("rule").Text(part.rule->name);
    json.Name("quota").Text(part.quota->text);
    json.Name("limit").Number(part.decision.limit);
    json.Name("remaining").Number(part.decision.remaining);
    json.Name("reset_after").Seconds(part.decision.reset_after);
    json.Name("shadow").Bool(part.shadow);
    json.Name("basis").Text(ToString(part.decision.basis));
    json.End('}');
  }
  json.End(']').End('}');
  Json(json.text());
}

void HttpEndpoints::Explain(const Request& request) {
  if (!desk_.json.ReadCheck(request.body) || desk_.json.is_batch()) {
    Fail(400, desk_.json.error().empty() ? "a batch cannot be explained; ask for one at a time"
                                         : desk_.json.error());
    return;
  }
  const codec::http::CheckQuestion& question = desk_.json.checks().front();
  const Explanation explained = deciders_.rules->Explain(question.attributes, question.cost);
  const bool as_text = request.Find(codec::http::Known::kAccept).starts_with("text/plain");
  codec::http::WritePlain(output_,
                          {.content_type = as_text ? "text/plain" : "application/json",
                           .body = as_text ? ToText(explained) : ToJson(explained)},
                          answer_);
}

void HttpEndpoints::Metrics(const Request&) {
  codec::http::WritePlain(output_,
                          {.content_type = "text/plain; version=0.0.4; charset=utf-8",
                           .body = context_.options.metrics().ToText()},
                          answer_);
}

void HttpEndpoints::Rules(const Request&) {
  const RuleStatus status = context_.options.rule_status();
  const std::shared_ptr<const RuleSet> rules = context_.service.rules();
  base::JsonText json;
  json.Begin('{');
  json.Name("version").Text(Hex(rules->version()));
  json.Name("up_to_date").Bool(status.error.empty());
  json.Name("error").Text(status.error);
  json.Name("from_last_good").Bool(status.from_last_good);
  json.Name("loads").Number(status.loads);
  json.Name("failures").Number(status.failures);
  AddSwitches(context_.options.switches->all(), instant_.now, json);
  json.Name("issues").Begin('[');
  for (const RuleIssue& issue : status.issues) {
    rules::AddIssue(issue, json);
  }
  json.End(']');
  json.Name("rules").Begin('[');
  std::unordered_map<std::string, bool> meets_fresh_keys;
  for (const RuleCounts& counts : deciders_.rules->Counts()) {
    meets_fresh_keys.emplace(counts.rule, counts.meets_fresh_keys);
  }
  for (const RuleView& rule : rules->rules()) {
    json.Begin('{');
    json.Name("name").Text(rule.name);
    json.Name("group").Text(rule.group);
    json.Name("when").Text(rule.when);
    json.Name("per").Text(rule.per);
    json.Name("shadow").Bool(rule.shadow);
    json.Name("disabled").Bool(rule.disabled);
    json.Name("meets_fresh_keys").Bool(meets_fresh_keys[rule.name]);
    if (rule.switched != RuleMode::kAsWritten) {
      json.Name("switched").Text(ToString(rule.switched));
    }
    json.Name("quotas").Begin('[');
    for (const RuleVariant& variant : rule.variants) {
      for (const RuleQuota& quota : variant.quotas) {
        json.Begin('{');
        json.Name("tier").Text(variant.tier);
        json.Name("quota").Text(quota.text);
        json.Name("bound").Text(quota.bound);
        json.End('}');
      }
    }
    json.End(']').End('}');
  }
  json.End(']').End('}');
  Json(json.text());
}

// What is in effect, to be compared with what is to come.
void HttpEndpoints::RuleText(const Request&) {
  codec::http::WritePlain(
      output_, {.content_type = "application/yaml", .body = context_.options.rule_text()}, answer_);
}

void HttpEndpoints::Reload(const Request&) {
  switch (context_.options.reload()) {
    case RuleSource::Outcome::kUnchanged:
    case RuleSource::Outcome::kApplied:
      if (const std::string error = context_.options.rule_status().error; !error.empty()) {
        Fail(422, error);
        return;
      }
      Json("{\"version\":\"" + Hex(context_.service.rules()->version()) + "\"}");
      return;
    case RuleSource::Outcome::kRefused:
      break;
  }
  Fail(422, context_.options.rule_status().error);
}

void HttpEndpoints::Reset(const Request& request) {
  if (!desk_.json.ReadReset(request.body)) {
    Fail(400, desk_.json.error());
    return;
  }
  const codec::http::ResetQuestion& question = desk_.json.reset();
  const std::shared_ptr<const RuleSet> rules = context_.service.rules();
  if (!question.rule.empty() &&
      std::none_of(rules->rules().begin(), rules->rules().end(),
                   [&](const RuleView& view) { return view.name == question.rule; })) {
    Fail(404, "rule: none is called " + base::Quoted(question.rule) + "; see GET /v1/rules");
    return;
  }
  base::JsonText json;
  json.Begin('{').Name("quotas").Begin('[');
  for (const RuleReset& one :
       deciders_.rules->Reset(question.attributes, question.rule, instant_.now)) {
    json.Begin('{');
    json.Name("rule").Text(one.rule);
    json.Name("quota").Text(one.quota);
    json.Name("outcome").Text(WordFor(one.outcome));
    json.End('}');
    Log(LogLevel::kInfo, "key reset", {{"rule", one.rule}, {"outcome", WordFor(one.outcome)}});
  }
  json.End(']').End('}');
  Json(json.text());
}

void HttpEndpoints::Switch(const Request& request) {
  if (!desk_.json.ReadSwitch(request.body)) {
    Fail(400, desk_.json.error());
    return;
  }
  const codec::http::SwitchQuestion& question = desk_.json.change();
  const std::optional<RuleMode> mode = ParseRuleMode(question.to);
  if (!mode) {
    Fail(400, "to: " + base::Quoted(question.to) + "; expected " + std::string(kRuleModes));
    return;
  }
  std::optional<Timestamp> ends;
  if (question.lasts) {
    ends = instant_.now + *question.lasts;
  }
  const Result<void> done = context_.options.switches->Switch(question.rule, *mode, ends);
  if (!done) {
    Fail(422, done.error().message);
    return;
  }
  base::JsonText json;
  json.Begin('{').Name("version").Text(Hex(context_.service.rules()->version()));
  AddSwitches(context_.options.switches->all(), instant_.now, json);
  json.End('}');
  Json(json.text());
}

void HttpEndpoints::TopKeys(const Request& request) {
  desk_.text.clear();
  std::string rule;
  uint64_t most = 20;
  codec::http::QueryReader reader(request.query, desk_.text);
  while (const auto parameter = reader.Next()) {
    if (parameter->name == "rule") {
      rule = parameter->value;
    } else if (parameter->name == "most") {
      const char* const end = parameter->value.data() + parameter->value.size();
      if (std::from_chars(parameter->value.data(), end, most).ptr != end || most > 1000) {
        Fail(400, "most: expected a whole number up to 1000");
        return;
      }
    }
  }
  const std::shared_ptr<const RuleSet> rules = context_.service.rules();
  base::JsonText json;
  json.Begin('{').Name("rules").Begin('[');
  for (const RuleView& view : rules->rules()) {
    if (!rule.empty() && view.name != rule) {
      continue;
    }
    json.Begin('{').Name("rule").Text(view.name).Name("keys").Begin('[');
    for (const TopKey& key : deciders_.rules->TopKeys(view.name, most)) {
      json.Begin('{');
      json.Name("key").Text(key.key);
      json.Name("cut").Bool(key.cut);
      json.Name("hidden").Bool(key.hidden);
      json.Name("count").Number(key.count);
      json.Name("denied").Number(key.denied);
      json.Name("error").Number(key.error);
      json.End('}');
    }
    json.End(']').End('}');
  }
  json.End(']').End('}');
  Json(json.text());
}

void HttpEndpoints::Ready(const Request&) {
  // Rules are read before the first connection is taken, so whoever asks gets decisions.
  codec::http::WritePlain(output_, {.content_type = "text/plain", .body = "ready\n"}, answer_);
}

void HttpEndpoints::OpenApi(const Request&) {
  Json(OpenApiDocument());
}

}  // namespace weir::server
