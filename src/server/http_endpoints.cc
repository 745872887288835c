#include "server/http_endpoints.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/json_text.h"
#include "base/same_text.h"
#include "codec/http/target.h"
#include "net/fiber.h"

namespace weir::server {

namespace {

using codec::http::AnswerMode;
using codec::http::Known;
using codec::http::Method;

bool Allows(std::string_view methods, std::string_view method) {
  if (methods == method) {
    return true;
  }
  while (!methods.empty()) {
    const size_t comma = methods.find(", ");
    if (methods.substr(0, comma) == method) {
      return true;
    }
    methods.remove_prefix(comma == std::string_view::npos ? methods.size() : comma + 2);
  }
  return false;
}

constexpr std::string_view kTlsClient = "tls_client";
constexpr std::string_view kIdReused =
    "this id was used for another question; each question needs an id of its own";

// What makes two questions of batches the same; an id in a batch is another than one outside.
std::string Identity(const codec::http::CheckQuestion& question) {
  std::string text = "of a batch";
  const auto add = [&text](std::string_view part) {
    text.append(1, '\0').append(std::to_string(part.size())).append(1, ':').append(part);
  };
  add(std::to_string(question.cost));
  add(question.peek ? "peek" : "");
  for (const Attribute& attribute : question.attributes) {
    add(attribute.name);
    add(attribute.value);
  }
  return text;
}

}  // namespace

constexpr HttpEndpoints::Endpoint HttpEndpoints::kEndpoints[] = {
    {"/v1/check", "POST", false, &HttpEndpoints::Check},
    {"/v1/auth", "GET, HEAD, POST", false, &HttpEndpoints::AuthOr429},
    {"/v1/auth/403", "GET, HEAD, POST", false, &HttpEndpoints::AuthOr403},
    {"/v1/usage", "GET, HEAD", false, &HttpEndpoints::Usage},
    {"/v1/reserve", "POST", false, &HttpEndpoints::Reserve},
    {"/v1/settle", "POST", false, &HttpEndpoints::Settle},
    {"/v1/release", "POST", false, &HttpEndpoints::Release},
    {"/healthz", "GET, HEAD", false, &HttpEndpoints::Healthy},
    {"/readyz", "GET, HEAD", false, &HttpEndpoints::Ready},
    {"/openapi.json", "GET, HEAD", false, &HttpEndpoints::OpenApi},
    {"/v1/explain", "POST", true, &HttpEndpoints::Explain},
    {"/v1/rules", "GET, HEAD", true, &HttpEndpoints::Rules},
    {"/v1/rules/text", "GET, HEAD", true, &HttpEndpoints::RuleText},
    {"/v1/reload", "POST", true, &HttpEndpoints::Reload},
    {"/v1/rules/switch", "POST", true, &HttpEndpoints::Switch},
    {"/v1/reset", "POST", true, &HttpEndpoints::Reset},
    {"/v1/top", "GET, HEAD", true, &HttpEndpoints::TopKeys},
    {"/metrics", "GET, HEAD", true, &HttpEndpoints::Metrics},
};

HttpEndpoints::HttpEndpoints(HttpContext& context, Deciders& deciders,
                             const HttpContext::Instant& instant, const HttpPeer& peer,
                             bool keep_alive, base::ByteBuffer& output)
    : context_(context),
      lease_(context.desks),
      desk_(*lease_),
      deciders_(deciders),
      instant_(instant),
      peer_(peer),
      output_(output),
      answer_{.date = instant.date, .now = instant.wall} {
  answer_.keep_alive = keep_alive;
}

void HttpEndpoints::Answer(const Request& request) {
  answer_.head = request.method == Method::kHead;
  answer_.old_client = request.minor_version == 0;
  for (const Endpoint& endpoint : kEndpoints) {
    if (endpoint.path != request.path) {
      continue;
    }
    if (!Allows(endpoint.methods, request.method_text)) {
      Fail(405, "this path takes " + std::string(endpoint.methods), endpoint.methods);
    } else if (endpoint.admin && !MayAdminister(request)) {
      // The same for a wrong token and for the wrong listener.
      Fail(403, "this path is for operators: ask at the admin address, or with its token");
    } else {
      (this->*endpoint.handler)(request);
    }
    return;
  }
  Fail(404, "no such path; GET /openapi.json lists them");
}

// A listener for operators without a token is one that only this machine reaches: Validate sees to
// that.
bool HttpEndpoints::MayAdminister(const Request& request) const {
  const std::string& token = context_.options.admin_token;
  if (token.empty()) {
    return context_.face == HttpContext::Face::kAdmin;
  }
  constexpr std::string_view kBearer = "bearer ";
  const std::string_view given = request.Find(Known::kAuthorization);
  return given.size() > kBearer.size() &&
         base::SameLetters(given.substr(0, kBearer.size()), kBearer) &&
         base::SameSecret(given.substr(kBearer.size()), token);
}

void HttpEndpoints::Fail(int status, std::string_view detail, std::string_view allow) {
  LatencyCounters::Bump(context_.counters.errors, 1);
  codec::http::WriteError(output_, status, detail, answer_, allow);
}

void HttpEndpoints::Json(std::string_view body, int status) {
  codec::http::WritePlain(output_, {.status = status, .body = body}, answer_);
}

void HttpEndpoints::Decide(const RuleRequest& asked, AnswerMode mode) {
  const RuleLimiter::Pin pin = deciders_.rules->pin();
  deciders_.rules->Check(pin, asked, desk_.reply);
  answer_.mode = mode;
  answer_.jitter = NoteDenial(desk_.reply);
  context_.AnswersFor(pin)->WriteCheck(output_, codec::http::Ruling(desk_.reply), answer_);
}

Duration HttpEndpoints::NoteDenial(const RuleReply& reply) {
  if (reply.allowed()) [[likely]] {
    return {};
  }
  context_.denials.Note("http", reply, instant_.wall);
  return context_.Jitter(reply.retry_after);
}

void HttpEndpoints::Check(const Request& request) {
  answer_.error_body = codec::http::ChooseErrorBody(request);
  if (!desk_.json.ReadCheck(request.body)) {
    Fail(400, desk_.json.error());
    return;
  }
  if (desk_.json.is_batch()) {
    CheckBatch();
    return;
  }
  const codec::http::CheckQuestion& question = desk_.json.checks().front();
  const RuleRequest asked = Asked(question, desk_);
  if (question.id.empty() || deciders_.shared != nullptr) {
    Decide(asked, AnswerMode::kCheck);  // a shared store knows ids itself, and those of others too
    return;
  }
  // Before the memory's lock, as everywhere: who waits for new rules waits for no lock.
  const RuleLimiter::Pin pin = deciders_.rules->pin();
  const AnswerMemory::Outcome outcome =
      deciders_.answers.Once(asked.id, request.body, instant_.now, output_,
                             [&](base::ByteBuffer&) { Decide(asked, AnswerMode::kCheck); });
  if (outcome == AnswerMemory::Outcome::kDifferent) {
    Fail(422, kIdReused);
  }
}

void HttpEndpoints::CheckBatch() {
  const RuleLimiter::Pin pin = deciders_.rules->pin();
  const std::shared_ptr<codec::http::AnswerWriter> answers = context_.AnswersFor(pin);
  codec::http::AnswerWriter::Batch batch(*answers, output_, answer_);
  if (deciders_.shared != nullptr) {
    CheckTogether(pin, batch);
    batch.End();
    return;
  }
  const auto decide = [&](const codec::http::CheckQuestion& question) {
    deciders_.rules->Check(pin, Asked(question, desk_), desk_.reply);
    return batch.Add(codec::http::Ruling(desk_.reply), NoteDenial(desk_.reply));
  };
  for (const codec::http::CheckQuestion& question : desk_.json.checks()) {
    if (question.id.empty()) {
      decide(question);
      continue;
    }
    base::ByteBuffer remembered;
    switch (deciders_.answers.Once(
        IdOf(question.id, desk_), Identity(question), instant_.now, remembered,
        [&](base::ByteBuffer& answer) { answer.Append(decide(question)); })) {
      case AnswerMemory::Outcome::kAnswered:
        break;
      case AnswerMemory::Outcome::kRepeated:
        batch.AddWritten(remembered.view());
        break;
      case AnswerMemory::Outcome::kDifferent: {
        base::JsonText json;
        json.Begin('{').Name("allowed").Bool(false);
        json.Name("error").Text("invalid_request").Name("message").Text(kIdReused).End('}');
        batch.AddWritten(json.text());
        LatencyCounters::Bump(context_.counters.errors, 1);
        break;
      }
    }
  }
  batch.End();
}

// Questions to a shared store travel together; it knows ids itself, and those of other nodes too.
void HttpEndpoints::CheckTogether(const RuleLimiter::Pin& pin,
                                  codec::http::AnswerWriter::Batch& batch) {
  constexpr size_t kAtOnce = 32;
  const std::span<const codec::http::CheckQuestion> questions = desk_.json.checks();
  for (size_t begin = 0; begin < questions.size(); begin += kAtOnce) {
    const auto now = questions.subspan(begin, std::min(kAtOnce, questions.size() - begin));
    std::array<std::optional<base::Pool<HttpDesk>::Lease>, kAtOnce> desks;
    net::ForEachTogether(now.size(), [&](size_t i) {
      HttpDesk& desk = *desks[i].emplace(context_.desks);
      deciders_.rules->Check(pin, Asked(now[i], desk), desk.reply);
    });
    for (size_t i = 0; i < now.size(); ++i) {
      const RuleReply& reply = (*desks[i])->reply;
      batch.Add(codec::http::Ruling(reply), NoteDenial(reply));
    }
  }
}

RuleRequest HttpEndpoints::Asked(const codec::http::CheckQuestion& question, HttpDesk& desk) const {
  return {.attributes = WithClient(question.attributes, desk),
          .cost = question.cost,
          .mode = question.peek ? ChargeMode::kDryRun : ChargeMode::kAdmit,
          .now = instant_.now,
          .wall = instant_.wall,
          .id = IdOf(question.id, desk)};
}

std::span<const Attribute> HttpEndpoints::WithClient(std::span<const Attribute> sent,
                                                     HttpDesk& desk) const {
  const auto is_client = [](const Attribute& attribute) { return attribute.name == kTlsClient; };
  if (peer_.tls_client.empty() && std::none_of(sent.begin(), sent.end(), is_client)) {
    return sent;
  }
  // One more than may be sent; too many are refused where they are looked at.
  size_t count = 0;
  if (!peer_.tls_client.empty()) {
    desk.attributes[count++] = {kTlsClient, peer_.tls_client};
  }
  for (const Attribute& attribute : sent) {
    if (!is_client(attribute)) {
      desk.attributes[count++] = attribute;
    }
  }
  return std::span(desk.attributes).first(count);
}

std::string_view HttpEndpoints::IdOf(std::string_view id, HttpDesk& desk) const {
  if (peer_.tls_client.empty() || id.empty()) {
    return id;
  }
  desk.id.assign(peer_.tls_client).append(1, '\0').append(id);
  return desk.id;
}

void HttpEndpoints::AuthOr403(const Request& request) {
  Auth(request, AnswerMode::kAuth403);
}

void HttpEndpoints::AuthOr429(const Request& request) {
  Auth(request, AnswerMode::kAuth429);
}

void HttpEndpoints::Auth(const Request& request, AnswerMode mode) {
  desk_.text.clear();
  const size_t count = CollectOriginal(request, mode, WithQuery(request.query));
  answer_.error_body = codec::http::ChooseErrorBody(request);
  Decide({.attributes = std::span(desk_.attributes).first(count),
          .cost = 1,
          .mode = ChargeMode::kAdmit,
          .now = instant_.now,
          .wall = instant_.wall},
         mode);
}

bool HttpEndpoints::AddAttribute(std::string_view name, std::string_view value,
                                 size_t& count) noexcept {
  if (count == kMaxAttributes) {
    return false;
  }
  desk_.attributes[count++] = {name, value};
  return true;
}

size_t HttpEndpoints::WithQuery(std::string_view query) {
  size_t count = 0;
  if (!peer_.tls_client.empty()) {
    AddAttribute(kTlsClient, peer_.tls_client, count);
  }
  return CollectQuery(query, count);
}

size_t HttpEndpoints::CollectQuery(std::string_view query, size_t count) {
  codec::http::QueryReader reader(query, desk_.text);
  while (const auto parameter = reader.Next()) {
    if (parameter->name == kTlsClient) {
      continue;  // what only a certificate says
    }
    if (!AddAttribute(parameter->name, parameter->value, count)) {
      break;
    }
  }
  return count;
}

// What nginx (X-Original-*, at /v1/auth/403) or Traefik, Caddy and HAProxy (X-Forwarded-*) tell of
// the request that they ask about; the client's address; every header field; and those that have a
// name of their own. A proxy passes on what the client sent under the other family's names, so each
// is asked for its own first.
size_t HttpEndpoints::CollectOriginal(const Request& request, AnswerMode mode, size_t count) {
  const bool is_nginx = mode == AnswerMode::kAuth403;
  const auto first_of = [&request](Known one, Known other, std::string_view otherwise) {
    return request.Has(one)     ? request.Find(one)
           : request.Has(other) ? request.Find(other)
                                : otherwise;
  };
  std::string& names = desk_.names;
  AddAttribute("ip", context_.options.client.Find(peer_.address, request).Format(desk_.address),
               count);
  AddAttribute(
      "method",
      is_nginx ? first_of(Known::kXOriginalMethod, Known::kXForwardedMethod, request.method_text)
               : first_of(Known::kXForwardedMethod, Known::kXOriginalMethod, request.method_text),
      count);
  AddAttribute("host", first_of(Known::kXForwardedHost, Known::kHost, {}), count);
  std::string_view path = is_nginx ? first_of(Known::kXOriginalUri, Known::kXForwardedUri, {})
                                   : first_of(Known::kXForwardedUri, Known::kXOriginalUri, {});
  path = path.substr(0, path.find('?'));
  if (const auto normal = codec::http::NormalizePath(path, desk_.path); normal) {
    AddAttribute("path", *normal, count);
  } else if (!path.empty()) {
    AddAttribute("path", path, count);
  }
  // Names in lower case, one behind the other; reserved first, so that none of them moves.
  constexpr std::string_view kPrefix = "header:";
  size_t bytes = 0;
  for (const codec::http::Field& field : request.fields) {
    bytes += kPrefix.size() + field.name.size();
  }
  names.clear();
  names.reserve(bytes);
  for (const codec::http::Field& field : request.fields) {
    const size_t begin = names.size();
    names += kPrefix;
    for (const char character : field.name) {
      names += base::LowerCase(character);
    }
    const std::string_view name = std::string_view(names).substr(begin);
    AddAttribute(name, field.value, count);
    for (const auto& [attribute, wanted] : context_.options.attributes) {
      if (name.substr(kPrefix.size()) == wanted) {
        AddAttribute(attribute, field.value, count);
      }
    }
  }
  return count;
}

void HttpEndpoints::Healthy(const Request&) {
  codec::http::WritePlain(output_, {.content_type = "text/plain", .body = "ok\n"}, answer_);
}

}  // namespace weir::server
