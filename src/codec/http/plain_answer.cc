// Answers that are no decision, and the frame that all answers share.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include "codec/http/answer_parts.h"
#include "codec/http/json_text.h"
#include "codec/http/request.h"
#include "codec/http/syntax.h"

namespace weir::codec::http {
namespace {

constexpr std::string_view kEndOfHead = "\r\n\r\n";
constexpr size_t kLengthBytes = 10;  // room for the digits of a length

// How much a client wants `type`, in thousandths, by one element of Accept; -1: it does not speak
// of it. The more exact of two elements counts, so `exactness` is told too.
int Weight(std::string_view element, std::string_view type, int& exactness) {
  const size_t end = std::min(element.find(';'), element.size());
  const std::string_view range = TrimBlanks(element.substr(0, end));
  if (EqualsIgnoringCase(range, type)) {
    exactness = 2;
  } else if (EqualsIgnoringCase(range, "application/*")) {
    exactness = 1;
  } else if (range == "*/*") {
    exactness = 0;
  } else {
    return -1;
  }
  const size_t q = element.find("q=", end);
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

struct Wish {
  int weight = -1;
  bool by_name = false;
};

Wish WishFor(std::string_view accept, std::string_view type) {
  Wish wish;
  int best = -1;
  for (std::string_view element; NextElement(accept, element);) {
    int exactness = 0;
    const int weight = Weight(element, type, exactness);
    if (weight >= 0 && exactness > best) {
      best = exactness;
      wish = {.weight = weight, .by_name = exactness == 2};
    }
  }
  return wish;
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

void AppendSeconds(base::ByteBuffer& out, Duration time) {
  constexpr int64_t kMillisecond = 1'000'000;
  const int64_t ns = std::max<int64_t>(time.count(), 0);
  const auto ms = static_cast<uint64_t>(ns / kMillisecond + (ns % kMillisecond != 0));
  out.AppendNumber(ms / 1000);
  const auto decimals = static_cast<unsigned>(ms % 1000);
  if (decimals != 0) {
    const char digits[] = {'.', static_cast<char>('0' + decimals / 100),
                           static_cast<char>('0' + decimals / 10 % 10),
                           static_cast<char>('0' + decimals % 10)};
    const size_t used = decimals % 100 == 0 ? 2 : decimals % 10 == 0 ? 3 : 4;
    out.Append(std::string_view(digits, used));
  }
}

void AppendHead(base::ByteBuffer& out, int status, const AnswerContext& context) {
  out.Append("HTTP/1.1 ");
  out.AppendNumber(static_cast<uint64_t>(status));
  out.Append(' ');
  out.Append(ReasonPhrase(status));
  out.Append("\r\n");
  if (!context.date.empty()) {
    out.Append("Date: ");
    out.Append(context.date);
    out.Append("\r\n");
  }
  if (!context.keep_alive) {
    out.Append("Connection: close\r\n");
  }
}

size_t BeginBody(base::ByteBuffer& out, std::string_view content_type) {
  out.Append("Content-Type: ");
  out.Append(content_type);
  out.Append("\r\nContent-Length: ");
  std::fill_n(out.Reserve(kLengthBytes), kLengthBytes, ' ');
  out.Commit(kLengthBytes);
  out.Append(kEndOfHead);
  return out.size();
}

void EndBody(base::ByteBuffer& out, size_t body, const AnswerContext& context) {
  char digits[kLengthBytes];
  const char* const end = std::to_chars(digits, std::end(digits), out.size() - body).ptr;
  if (context.head) {
    out.Truncate(body);
  }
  out.Replace(body - kEndOfHead.size() - kLengthBytes, kLengthBytes,
              {digits, static_cast<size_t>(end - digits)});
}

ErrorBody ChooseErrorBody(std::string_view accept) noexcept {
  // Who names problem+json knows it; who takes anything gets what it most likely reads.
  const Wish problem = WishFor(accept, kProblemJson);
  return problem.by_name && problem.weight > 0 && problem.weight >= WishFor(accept, kJson).weight
             ? ErrorBody::kProblem
             : ErrorBody::kJson;
}

void WritePlain(base::ByteBuffer& out, const PlainAnswer& answer, const AnswerContext& context) {
  AppendHead(out, answer.status, context);
  out.Append(answer.fields);
  if (answer.status == 204) {
    out.Append("\r\n");
    return;
  }
  const size_t body = BeginBody(out, answer.content_type);
  out.Append(answer.body);
  EndBody(out, body, context);
}

void WriteError(base::ByteBuffer& out, int status, std::string_view detail,
                const AnswerContext& context, std::string_view allow) {
  AppendHead(out, status, context);
  if (!allow.empty()) {
    out.Append("Allow: ");
    out.Append(allow);
    out.Append("\r\n");
  }
  const size_t body = BeginBody(out, kProblemJson);
  out.Append("{\"type\":\"about:blank\",\"title\":");
  AppendJsonText(out, ReasonPhrase(status));
  out.Append(",\"status\":");
  out.AppendNumber(static_cast<uint64_t>(status));
  out.Append(",\"detail\":");
  AppendJsonText(out, detail);
  out.Append('}');
  EndBody(out, body, context);
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
