// Answers that are no decision, and the frame that all answers share.
#include <algorithm>
#include <array>
#include <chrono>
#include <string>

#include "base/json_text.h"
#include "base/same_text.h"
#include "codec/http/answer_parts.h"
#include "codec/http/request.h"
#include "codec/http/syntax.h"

namespace weir::codec::http {
namespace {

// How much a client wants `type`, in thousandths, by one element of Accept; -1: it does not speak
// of it. The more exact of two elements counts, so `exactness` is told too.
int Weight(std::string_view element, std::string_view type, int& exactness) {
  const size_t end = std::min(element.find(';'), element.size());
  const std::string_view range = TrimBlanks(element.substr(0, end));
  if (base::SameText(range, type)) {
    exactness = 2;
  } else if (base::SameText(range, "application/*")) {
    exactness = 1;
  } else if (range == "*/*") {
    exactness = 0;
  } else {
    return -1;
  }
  const size_t q = std::min(element.find("q=", end), element.find("Q=", end));
  if (q == std::string_view::npos) {
    return 1000;
  }
  const std::string_view text = element.substr(q + 2, 5);  // "0.123"
  int weight = text.starts_with('1') ? 1000 : 0;
  int unit = 100;
  for (size_t at = 2; at < text.size() && IsDigit(text[at]) && weight < 1000; ++at, unit /= 10) {
    weight += (text[at] - '0') * unit;
  }
  return weight;
}

// What all of Accept says of a type.
struct Wish {
  std::string_view type;
  int weight = -1;
  int exactness = -1;

  void Read(std::string_view accept) {
    for (std::string_view element; NextElement(accept, element);) {
      int exact = 0;
      const int wanted = Weight(element, type, exact);
      if (wanted >= 0 && exact > exactness) {
        weight = wanted;
        exactness = exact;
      }
    }
  }
  [[nodiscard]] bool by_name() const { return exactness == 2; }
};

// Who names problem+json knows it; who takes anything gets what it most likely reads.
ErrorBody Choose(const Wish& problem, const Wish& json) {
  return problem.by_name() && problem.weight > 0 && problem.weight >= json.weight
             ? ErrorBody::kProblem
             : ErrorBody::kJson;
}

}  // namespace

std::string_view ReasonPhrase(int status) noexcept {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

ErrorBody ChooseErrorBody(std::string_view accept) noexcept {
  Wish problem{kProblemJson};
  Wish json{kJson};
  problem.Read(accept);
  json.Read(accept);
  return Choose(problem, json);
}

// Several lines are one list.
ErrorBody ChooseErrorBody(const Request& request) noexcept {
  if (!request.Has(Known::kAccept)) [[likely]] {
    return ErrorBody::kJson;
  }
  Wish problem{kProblemJson};
  Wish json{kJson};
  for (const Field& field : request.fields) {
    if (field.known == Known::kAccept) {
      problem.Read(field.value);
      json.Read(field.value);
    }
  }
  return Choose(problem, json);
}

void WritePlain(base::ByteBuffer& to, const PlainAnswer& answer, const AnswerContext& context) {
  base::Pen pen(
      to, kFrameBytesMax + answer.content_type.size() + answer.fields.size() + answer.body.size());
  Sheet out(pen);
  AppendHead(out, answer.status, context);
  out.Append(answer.fields);
  if (answer.status == 204) {
    out.Append("\r\n");
    return;
  }
  BeginBody(out, answer.content_type);
  out.Append(answer.body);
  out.EndBody(context.head);
}

void WriteError(base::ByteBuffer& to, int status, std::string_view detail,
                const AnswerContext& context, std::string_view allow) {
  base::ByteBuffer body;
  body.Append("{\"type\":\"about:blank\",\"title\":");
  base::AppendJsonText(body, ReasonPhrase(status));
  body.Append(",\"status\":");
  body.AppendNumber(static_cast<uint64_t>(status));
  body.Append(",\"detail\":");
  base::AppendJsonText(body, detail);
  body.Append('}');
  const std::string fields = allow.empty() ? "" : "Allow: " + std::string(allow) + "\r\n";
  WritePlain(
      to, {.status = status, .content_type = kProblemJson, .body = body.view(), .fields = fields},
      context);
}

void WriteOpen(base::ByteBuffer& out, const AnswerContext& context) {
  const bool check = context.mode == AnswerMode::kCheck;
  WritePlain(out,
             {.status = check ? 200 : 204,
              .body = "{\"allowed\":true,\"basis\":\"open\"}",
              .fields = "X-Weir-Status: open\r\nX-Weir-Basis: open\r\n"},
             context);
}

std::string_view FormatDate(WallTime now, std::span<char, kDateBytes> to) noexcept {
  using namespace std::chrono;
  constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const auto day = floor<days>(now);
  const year_month_day date(day);
  const hh_mm_ss time(floor<seconds>(now - day));
  char* at = to.data();
  const auto put = [&at](std::string_view text) { at = std::copy(text.begin(), text.end(), at); };
  const auto put2 = [&at](unsigned number) {
    *at++ = static_cast<char>('0' + number / 10 % 10);
    *at++ = static_cast<char>('0' + number % 10);
  };
  put(kDays.substr(3 * weekday(day).c_encoding(), 3));
  put(", ");
  put2(static_cast<unsigned>(date.day()));
  put(" ");
  put(kMonths.substr(3 * (static_cast<unsigned>(date.month()) - 1), 3));
  put(" ");
  const auto year = static_cast<unsigned>(static_cast<int>(date.year()));
  put2(year / 100);
  put2(year);
  put(" ");
  put2(static_cast<unsigned>(time.hours().count()));
  put(":");
  put2(static_cast<unsigned>(time.minutes().count()));
  put(":");
  put2(static_cast<unsigned>(time.seconds().count()));
  put(" GMT");
  return {to.data(), to.size()};
}

}  // namespace weir::codec::http
