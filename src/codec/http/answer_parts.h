// What all answers are made of. Only for the files that write answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/time.h"

#include "base/pen.h"
#include "codec/http/answer.h"
#include "codec/http/answer_form.h"

namespace weir::codec::http {

inline constexpr std::string_view kJson = "application/json";
inline constexpr std::string_view kProblemJson = "application/problem+json";

[[nodiscard]] std::string_view ReasonPhrase(int status) noexcept;

// Whole seconds, rounded up; 0 for what is past.
[[nodiscard]] constexpr uint64_t CeilSeconds(Duration time) noexcept {
  constexpr uint64_t kSecond = 1'000'000'000;
  return time <= Duration::zero() ? 0
                                  : (static_cast<uint64_t>(time.count()) + (kSecond - 1)) / kSecond;
}

// Head and frame of an answer together, without fields of its own and without its body.
inline constexpr size_t kFrameBytesMax = 512;

// Status line, Date, and Connection where it matters.
template <class Paper>
void AppendHead(Paper& out, int status, const AnswerContext& context) {
  if (status == 200) [[likely]] {
    out.Append("HTTP/1.1 200 OK\r\n");
  } else {
    out.Append("HTTP/1.1 ");
    out.AppendNumber(static_cast<uint64_t>(status));
    out.Append(' ');
    out.Append(ReasonPhrase(status));
    out.Append("\r\n");
  }
  if (!context.date.empty()) {
    out.Append("Date: ");
    out.FillDate(context.date);
    out.Append("\r\n");
  }
  if (!context.keep_alive) {
    out.Append("Connection: close\r\n");
  } else if (context.old_client) [[unlikely]] {
    out.Append("Connection: keep-alive\r\n");
  }
}

// The last headers; the body is written behind them, and ended by out.EndBody.
template <class Paper>
void BeginBody(Paper& out, std::string_view content_type) {
  out.Append("Content-Type: ");
  out.Append(content_type);
  out.Append(kLengthAndEndOfHead);
  out.BeginBody();
}

}  // namespace weir::codec::http
