// HTTP/1.1 requests out of bytes, strictly by RFC 9112: what two readers could understand in two
// ways is refused with 400, and the connection ends.
//
// The caller keeps the bytes. It calls Parse with everything from the request's first byte on, at
// whatever address, until the request is whole; then it drops consumed() bytes from the front and
// goes on with the rest. Lines are read once, as they come.
//
//   while (parser.Parse(input) == ParseState::kRequest) {
//     Answer(parser.request());
//     input = input.subspan(parser.consumed());
//   }
//   // kMore: read on; send "100 Continue" first if TakeContinue().
//   // kError: answer status() with reason(), close.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "codec/http/request.h"

namespace weir::codec::http {

enum class ParseState : uint8_t {
  kMore,     // the request is not whole yet
  kRequest,  // request() holds one
  kError,    // status() and reason() say why; the connection cannot go on
};

struct RequestLimits {
  uint32_t line_bytes_max = 8 << 10;   // the request line: 414; a field line: 431
  uint32_t head_bytes_max = 16 << 10;  // request line and fields: 431
  uint32_t fields_max = 100;           // 431; at most RequestParser::kFieldsMax
  uint32_t body_bytes_max = 1 << 20;   // 413
};

class RequestParser {
 public:
  static constexpr uint32_t kFieldsMax = 100;

  explicit RequestParser(const RequestLimits& limits = {}) : limits_(limits) { Restart(); }

  // A chunked body is decoded in place, so the input is written to.
  [[nodiscard]] ParseState Parse(std::span<char> input);

  // After kRequest: the request's bytes, and views into them, good until they go.
  [[nodiscard]] size_t consumed() const noexcept { return consumed_; }
  [[nodiscard]] const Request& request() const noexcept { return request_; }

  // After kMore: whether the head is whole, so that only the body is awaited.
  [[nodiscard]] bool head_complete() const noexcept { return state_ >= State::kBody; }
  // After kMore: true once per request, if the client waits for "100 Continue" before its body.
  [[nodiscard]] bool TakeContinue() noexcept;

  // After kError.
  [[nodiscard]] int status() const noexcept { return status_; }
  [[nodiscard]] std::string_view reason() const noexcept { return reason_; }
