// Answers of an HTTP/1.1 server out of bytes, as strictly as a measuring tool should: what it does
// not understand is an error with words, never a guess.
//
// The caller keeps the bytes and drops consumed() of them after each answer; the head is read once,
// however the bytes come in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::app {

enum class ResponseState : uint8_t { kMore, kResponse, kError };

struct HttpResponse {
  int status = 0;
  bool closes = false;  // the server will answer nothing more on this connection
  std::string_view body;
};

struct ResponseLimits {
  size_t head_bytes_max = 16 << 10;
  size_t body_bytes_max = 16 << 20;
};

class HttpResponseReader {
 public:
  explicit HttpResponseReader(const ResponseLimits& limits = {}) : limits_(limits) {}

  // `input` begins where the last answer ended and has all bytes since, those of former calls too.
  [[nodiscard]] ResponseState Read(std::string_view input);

  // After kResponse; the body points into the input.
  [[nodiscard]] const HttpResponse& response() const noexcept { return response_; }
  [[nodiscard]] size_t consumed() const noexcept { return head_bytes_ + body_bytes_; }

  // After kError: what was found and what is expected. Nothing more can be read.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  bool ReadHead(std::string_view head);
  bool ReadStatus(std::string_view line);
  bool ReadField(std::string_view line);
  bool Fail(std::string_view problem, std::string_view found);

  ResponseLimits limits_;
  HttpResponse response_;
  size_t head_bytes_ = 0;  // 0 while the head is not whole
  size_t body_bytes_ = 0;
  size_t scanned_ = 0;  // the head does not end before
  bool has_length_ = false;
  bool whole_ = false;
  std::string error_;
};

}  // namespace weir::app
