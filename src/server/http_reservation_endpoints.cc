// Costs that are known only afterwards: reserve, settle, release.
#include <string>

#include "base/json_text.h"
#include "server/http_endpoints.h"

namespace weir::server {

namespace {

// What became of a token, as a status: nothing to settle is not the client's first mistake, so it
// gets a body that says which.
int StatusOf(SettleOutcome outcome) {
  switch (outcome) {
    case SettleOutcome::kSettled:
      return 200;
    case SettleOutcome::kAlreadySettled:
      return 409;
    case SettleOutcome::kGone:
      return 404;
    case SettleOutcome::kRefused:
      break;
  }
  return 400;
}

std::string_view WordFor(SettleOutcome outcome) {
  switch (outcome) {
    case SettleOutcome::kSettled:
      return "settled";
    case SettleOutcome::kAlreadySettled:
      return "already settled";
    case SettleOutcome::kGone:
      return "gone";
    case SettleOutcome::kRefused:
      break;
  }
  return "refused";
}

constexpr std::string_view kStoreAway =
    "the store is out of reach, so nothing is known to have been settled; try again";

void Describe(const ReservationBook::Settled& settled, base::JsonText& json) {
  json.Begin('{');
  json.Name("outcome").Text(WordFor(settled.outcome));
  if (settled.outcome == SettleOutcome::kSettled ||
      settled.outcome == SettleOutcome::kAlreadySettled) {
    json.Name("actual").Number(settled.actual);
    json.Name("given_back").Number(settled.given_back);
  }
  json.End('}');
}

}  // namespace

void HttpEndpoints::Reserve(const Request& request) {
  answer_.error_body = codec::http::ChooseErrorBody(request);
  if (!desk_.json.ReadReserve(request.body)) {
    Fail(400, desk_.json.error());
    return;
  }
  const codec::http::ReserveQuestion& question = desk_.json.reserve();
  const RuleLimiter::Pin pin = deciders_.rules->pin();
  const auto reserve = [&](base::ByteBuffer&) {
    const std::string token = deciders_.reservations.Reserve(
        *deciders_.rules, pin,
        {.attributes = WithClient(question.attributes, desk_),
         .estimate = question.estimate,
         .lasts = question.lasts.value_or(ReservationBook::kLastsDefault),
         .now = instant_.now,
         .wall = instant_.wall,
         .id = IdOf(question.id, desk_)},
        desk_.reply);
    codec::http::Ruling ruling(desk_.reply);
    ruling.reservation = token;
    answer_.jitter = NoteDenial(desk_.reply);
    context_.AnswersFor(pin)->WriteCheck(output_, ruling, answer_);
  };
  if (question.id.empty() || deciders_.shared != nullptr) {
    reserve(output_);
  } else if (deciders_.answers.Once(IdOf(question.id, desk_), request.body, instant_.now, output_,
                                    reserve) == AnswerMemory::Outcome::kDifferent) {
    Fail(422, "this id was used for another question; each question needs an id of its own");
  }
}

void HttpEndpoints::Settle(const Request& request) {
  if (!desk_.json.ReadSettle(request.body)) {
    Fail(400, desk_.json.error());
    return;
  }
  const codec::http::SettleQuestion& question = desk_.json.settle();
  const ReservationBook::Settled settled =
      deciders_.reservations.Settle(question.reservation, question.actual, instant_.now);
  if (settled.trouble != StoreTrouble::kNone) {
    Fail(503, kStoreAway);
    return;
  }
  base::JsonText json;
  Describe(settled, json);
  Json(json.text(), StatusOf(settled.outcome));
}

void HttpEndpoints::Release(const Request& request) {
  if (!desk_.json.ReadRelease(request.body)) {
    Fail(400, desk_.json.error());
    return;
  }
  base::JsonText json;
  json.Begin('{').Name("released").Begin('[');
  for (const std::string_view token : desk_.json.released()) {
    const ReservationBook::Settled released = deciders_.reservations.Release(token, instant_.now);
    if (released.trouble != StoreTrouble::kNone) {
      Fail(503, kStoreAway);  // repeating it all does no harm
      return;
    }
    Describe(released, json);
  }
  json.End(']').End('}');
  Json(json.text());
}

}  // namespace weir::server
