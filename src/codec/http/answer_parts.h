// What all answers are made of. Only for the files that write answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/time.h"

#include "base/byte_buffer.h"
#include "codec/http/answer.h"

namespace weir::codec::http {

inline constexpr std::string_view kJson = "application/json";
inline constexpr std::string_view kProblemJson = "application/problem+json";

[[nodiscard]] std::string_view ReasonPhrase(int status) noexcept;

// Whole seconds, rounded up; 0 for what is past.
[[nodiscard]] constexpr uint64_t CeilSeconds(Duration time) noexcept {
  constexpr int64_t kSecond = 1'000'000'000;
  return time <= Duration::zero()
             ? 0
             : static_cast<uint64_t>(time.count() / kSecond + (time.count() % kSecond != 0));
}

// Seconds with up to three decimals, rounded up: 0, 2, 1.5, 0.001.
void AppendSeconds(base::ByteBuffer& out, Duration time);

// Status line, Date, and Connection where it matters.
void AppendHead(base::ByteBuffer& out, int status, const AnswerContext& context);

// The last header of an answer whose body is written behind it: begins the body, and returns where.
[[nodiscard]] size_t BeginBody(base::ByteBuffer& out, std::string_view content_type);
// Puts the body's length where BeginBody left room.
void EndBody(base::ByteBuffer& out, size_t body, const AnswerContext& context);

}  // namespace weir::codec::http
