// HTTP/1.1 requests out of bytes, strictly by RFC 9112: what two readers could understand in two
// ways is refused with 400, and the connection ends.
//
// The caller keeps the bytes. It calls Parse with everything from the request's first byte on, at
// whatever address, until the request is whole; then it drops consumed() bytes from the front and
// goes on with the rest. Lines are read once, as they come. Clients send the same head again and
// again: one that is the last one's, byte for byte, means what that meant and is not read at all.
//
//   while (parser.Parse(input) == ParseState::kRequest) {
//     Answer(parser.request());
//     input = input.subspan(parser.consumed());
//   }
//   // kMore: read on; send "100 Continue" first if TakeContinue().
//   // kError: answer status() with reason(), close.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/http/request.h"

namespace weir::codec::http {

enum class ParseState : uint8_t {
  kMore,     // the request is not whole yet
  kRequest,  // request() holds one
  kError,    // status() and reason() say why; the connection cannot go on
};

struct RequestLimits {
  uint32_t line_bytes_max = 8 << 10;      // the request line: 414; a field line: 431
  uint32_t head_bytes_max = 16 << 10;     // request line and fields: 431
  uint32_t fields_max = 100;              // 431; below 255
  uint32_t body_bytes_max = 1 << 20;      // 413
  uint32_t framing_bytes_max = 64 << 10;  // sizes and ends of all chunks of a body: 413
};

class RequestParser {
 public:
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

 private:
  enum class State : uint8_t {
    kRequestLine,
    kFields,
    kBody,  // from here on the head is whole
    kChunkSize,
    kChunkData,
    kTrailers,
    kDone,
  };
  enum class Step : uint8_t { kNext, kMore, kDone, kError };
  enum class LineKind : uint8_t { kRequest, kField, kChunk };

  // Offsets from the request's first byte: addresses may change until it is whole.
  struct Span {
    uint32_t offset = 0;
    uint32_t size = 0;
  };
  struct FieldSpan {
    Span name;
    Span value;
    Known known;
  };

  Step Advance(std::span<char> input);
  Step TakeLine(std::string_view input, LineKind kind, Span& line);
  Step AwaitLine(std::string_view input, LineKind kind);
  [[nodiscard]] size_t LineEndMax(LineKind kind) const noexcept;
  Step FailTooLong(LineKind kind);
  Step ReadRequestLine(std::string_view input);
  Step ReadTarget(std::string_view input, Span target);
  Step ReadVersion(std::string_view version);
  Step ReadFields(std::string_view input);
  Step ReadField(std::string_view input, Span line);
  Step NoteField(Known known, std::string_view value);
  Step NoteConnection(std::string_view value);
  Step NoteLength(std::string_view value);
  Step FinishHead(std::string_view input);
  Step CheckHost(std::string_view input);
  Step ReadBody(std::string_view input);
  Step ReadChunkSize(std::string_view input);
  Step ReadChunkData(std::span<char> input);
  Step ReadTrailer(std::string_view input);
  void Finish(std::string_view input);
  bool IsRepeated(std::string_view input) const noexcept;
  void View(std::string_view input);
  Step Fail(int status, std::string_view reason);
  void Restart() noexcept;

  RequestLimits limits_;
  State state_ = State::kRequestLine;
  bool continue_wanted_ = false;
  bool close_ = false;  // Connection: close
  bool keep_ = false;   // Connection: keep-alive
  bool chunked_ = false;
  bool has_length_ = false;
  bool blank_skipped_ = false;
  uint32_t position_ = 0;  // everything before is read
  uint32_t scanned_ = 0;   // no line end between position_ and here
  uint32_t trailers_ = 0;
  uint64_t length_ = 0;         // of the body, or of the chunk being read
  uint32_t framing_bytes_ = 0;  // of chunks
  Span method_;
  Span target_;
  Span path_;
  Span query_;
  Span authority_;  // of an absolute target
  Span body_;
  std::vector<FieldSpan> spans_;
  std::vector<Field> fields_;
  Request request_;
  const char* viewed_ = nullptr;  // the first byte of the input that request_ looks into
  std::string last_head_;         // of the last request; empty: it is not to be used again
  size_t consumed_ = 0;
  int status_ = 0;
  std::string_view reason_;
};

}  // namespace weir::codec::http
