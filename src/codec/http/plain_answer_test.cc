#include <array>
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "base/json_text.h"
#include "codec/http/answer.h"
#include "codec/http/answer_parts.h"
#include "codec/http/answer_testing.h"
#include "codec/http/request_parser.h"

namespace weir::codec::http {
namespace {

using namespace std::chrono_literals;

TEST(PlainAnswer, WritesErrorsAsProblems) {
  for (const int status :
       {400, 401, 403, 404, 405, 408, 409, 413, 414, 415, 417, 431, 500, 501, 503, 505}) {
    base::ByteBuffer out;
    WriteError(out, status, "what \"it\" was", {.keep_alive = false});
    const ReadAnswer answer = Read(out.view());
    EXPECT_TRUE(answer.status.starts_with(std::to_string(status) + " "));
    EXPECT_EQ(answer.status.find("Unknown"), std::string::npos) << status;
    EXPECT_EQ(answer.Field("Connection"), "close");
    EXPECT_EQ(answer.Field("Content-Type"), "application/problem+json");
    const Json body(answer.body);
    EXPECT_EQ(body.Number("status"), status);
    EXPECT_EQ(body.Text("detail"), "what \"it\" was");
    EXPECT_EQ(std::to_string(status) + " " + body.Text("title"), answer.status);
  }
}

TEST(PlainAnswer, NamesTheMethodsThatAreAllowed) {
  base::ByteBuffer out;
  WriteError(out, 405, "Only GET.", {.date = "today"}, "GET, HEAD");
  const ReadAnswer answer = Read(out.view());
  EXPECT_EQ(answer.Field("Allow"), "GET, HEAD");
  EXPECT_EQ(answer.Field("Date"), "today");
  EXPECT_EQ(answer.fields.count("Connection"), 0U);
}

TEST(PlainAnswer, WritesAnyBody) {
  base::ByteBuffer out;
  WritePlain(out, {.content_type = "text/plain", .body = "ok\n", .fields = "X-A: b\r\n"}, {});
  EXPECT_EQ(out.view(),
            "HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\n"
            "ok\n");
  out.Clear();
  WritePlain(out, {.body = std::string(123'456, 'x')}, {.head = true});
  EXPECT_EQ(out.view(),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 123456\r\n\r\n");
}

TEST(PlainAnswer, LetsPassWhatCouldNotBeDecided) {
  for (const AnswerMode mode : {AnswerMode::kCheck, AnswerMode::kAuth403, AnswerMode::kAuth429}) {
    base::ByteBuffer out;
    WriteOpen(out, {.mode = mode});
    const ReadAnswer answer = Read(out.view());
    EXPECT_EQ(answer.status, mode == AnswerMode::kCheck ? "200 OK" : "204 No Content");
    EXPECT_EQ(answer.Field("X-Weir-Status"), "open");
    EXPECT_EQ(answer.fields.count("X-RateLimit-Limit"), 0U);
  }
}

TEST(PlainAnswer, ChoosesTheErrorBodyByAccept) {
  for (const char* accept :
       {"application/problem+json", "application/json, application/problem+json",
        "text/html;q=0.9, application/problem+json;q=0.8",
        "APPLICATION/PROBLEM+JSON, application/json;q=0.5", "application/problem+json;q=1.0",
        "application/problem+json, application/json;Q=0.5"}) {
    EXPECT_EQ(ChooseErrorBody(accept), ErrorBody::kProblem) << accept;
  }
  for (const char* accept :
       {"", "*/*", "application/*", "application/json", "text/html,*/*;q=0.8",
        "application/problem+json;q=0", "application/problem+json;q=0.000",
        "application/problem+json;Q=0", "application/json, application/problem+json;q=0.9",
        "application/problem", ",;q=,"}) {
    EXPECT_EQ(ChooseErrorBody(accept), ErrorBody::kJson) << accept;
  }
}

TEST(PlainAnswer, SeveralLinesOfAcceptAreOneList) {
  const auto choose = [](const std::string& lines) {
    RequestParser parser;
    std::string bytes = "GET / HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n";
    EXPECT_EQ(parser.Parse(bytes), ParseState::kRequest);
    return ChooseErrorBody(parser.request());
  };
  EXPECT_EQ(choose(""), ErrorBody::kJson);
  EXPECT_EQ(choose("Accept: text/html\r\nAccept: application/problem+json\r\n"),
            ErrorBody::kProblem);
  EXPECT_EQ(choose("Accept: application/problem+json;q=0.5\r\nAccept: application/json\r\n"),
            ErrorBody::kJson);
}

TEST(PlainAnswer, TellsAnOldClientThatTheConnectionStays) {
  for (const bool old_client : {false, true}) {
    base::ByteBuffer out;
    WritePlain(out, {.body = "{}"}, {.old_client = old_client});
    EXPECT_EQ(out.view().find("Connection: keep-alive\r\n") != std::string_view::npos, old_client);
  }
}

TEST(PlainAnswer, WritesSecondsRoundedUp) {
  const auto seconds = [](Duration time) {
    base::ByteBuffer out;
    {
      base::Pen pen(out, 64);
      AppendSeconds(pen, time);
    }
    return std::string(out.view());
  };
  EXPECT_EQ(seconds(0ns), "0");
  EXPECT_EQ(seconds(-5s), "0");
  EXPECT_EQ(seconds(1ns), "0.001");
  EXPECT_EQ(seconds(1ms), "0.001");
  EXPECT_EQ(seconds(1'500ms), "1.5");
  EXPECT_EQ(seconds(1'050ms), "1.05");
  EXPECT_EQ(seconds(999'999'999ns), "1");
  EXPECT_EQ(seconds(12'345ms), "12.345");
}

TEST(PlainAnswer, FormatsDates) {
  const auto date = [](int64_t unix_seconds) {
    std::array<char, kDateBytes> text;
    return std::string(FormatDate(WallTime(std::chrono::seconds(unix_seconds)), text));
  };
  EXPECT_EQ(date(784'111'777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(date(1'709'251'199), "Thu, 29 Feb 2024 23:59:59 GMT");
}

TEST(JsonText, IsValidJsonWhateverTheText) {
  const auto written = [](std::string_view text) {
    base::ByteBuffer out;
    out.Append("{\"text\":");
    base::AppendJsonText(out, text);
    out.Append('}');
    return Json(out.view()).Text("text");
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(written("a\"b\\c\n\0\x1f/"sv), "a\"b\\c\n\0\x1f/"sv);
  EXPECT_EQ(written("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"),
            "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80");
  for (const std::string_view bad :
       {"\xFF"sv, "\xC0\x80"sv, "\xC3"sv, "\xE0\x80\x80"sv, "\xED\xA0\x80"sv, "\xE2\x82"sv,
        "\xF0\x80\x80\x80"sv, "\xF4\x90\x80\x80"sv, "\xF5\x80\x80\x80"sv, "\x80"sv}) {
    EXPECT_TRUE(written(bad).starts_with("\xEF\xBF\xBD")) << bad.size();
  }
}

}  // namespace
}  // namespace weir::codec::http
