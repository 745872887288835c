#include "apps/weir/http_response.h"

#include <algorithm>
#include <charconv>

#include "codec/http/syntax.h"

namespace weir::app {

namespace http = codec::http;

namespace {

constexpr std::string_view kVersion = "HTTP/1.1 ";
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";

// `lower` is in lower case.
bool IsNamed(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() &&
         std::equal(text.begin(), text.end(), lower.begin(),
                    [](char a, char b) { return http::ToLower(a) == b; });
}

// Whatever their fields say.
bool HasNoBody(int status) {
  return status == 204 || status == 304;
}

}  // namespace

ResponseState HttpResponseReader::Read(std::string_view input) {
  if (!error_.empty()) {
    return ResponseState::kError;
  }
  if (whole_) {
    response_ = {};
    head_bytes_ = body_bytes_ = scanned_ = 0;
    has_length_ = whole_ = false;
  }
  if (head_bytes_ == 0) {
    const size_t end = input.find(kHeadEnd, scanned_);
    if (end == std::string_view::npos || end + kHeadEnd.size() > limits_.head_bytes_max) {
      if (input.size() >= limits_.head_bytes_max) {
        Fail("a head of more than " + std::to_string(limits_.head_bytes_max) + " bytes", input);
        return ResponseState::kError;
      }
      // Bytes that cannot be the beginning of an answer will not become one by waiting.
      const size_t compared = std::min(input.size(), kVersion.size());
      if (input.substr(0, compared) != kVersion.substr(0, compared)) {
        Fail("expected a line that begins with HTTP/1.1", input);
        return ResponseState::kError;
      }
      scanned_ = input.size() - std::min(input.size(), kHeadEnd.size() - 1);
      return ResponseState::kMore;
    }
    if (!ReadHead(input.substr(0, end + kLineEnd.size()))) {
      return ResponseState::kError;
    }
    head_bytes_ = end + kHeadEnd.size();
  }
  if (input.size() - head_bytes_ < body_bytes_) {
    return ResponseState::kMore;
  }
  response_.body = input.substr(head_bytes_, body_bytes_);
  whole_ = true;
  return ResponseState::kResponse;
}

// `head` ends with the line end of its last line.
bool HttpResponseReader::ReadHead(std::string_view head) {
  bool first = true;
  while (!head.empty()) {
    const size_t end = head.find(kLineEnd);
    const std::string_view line = head.substr(0, end);
    if (http::HasControl(line)) {
      return Fail("a control character in the head", line);
    }
    if (!(first ? ReadStatus(line) : ReadField(line))) {
      return false;
    }
    first = false;
    head.remove_prefix(end + kLineEnd.size());
  }
  if (HasNoBody(response_.status)) {
    body_bytes_ = 0;
    return true;
  }
  return has_length_ || Fail("an answer without Content-Length", "");
}

bool HttpResponseReader::ReadStatus(std::string_view line) {
  if (!line.starts_with(kVersion)) {
    return Fail("expected a line that begins with HTTP/1.1", line);
  }
  const std::string_view rest = line.substr(kVersion.size());
  const char* const end = rest.data() + std::min<size_t>(rest.size(), 3);
  const auto [stop, problem] = std::from_chars(rest.data(), end, response_.status);
  const bool delimited = rest.size() == 3 || (rest.size() > 3 && rest[3] == ' ');
  if (problem != std::errc() || stop != end || !delimited || response_.status < 100) {
    return Fail("expected a status of three digits", line);
  }
  return response_.status >= 200 || Fail("an interim answer, which nobody asked for", line);
}

bool HttpResponseReader::ReadField(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !http::IsToken(line.substr(0, colon))) {
    return Fail("expected a field, NAME: VALUE", line);
  }
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = http::TrimBlanks(line.substr(colon + 1));
  if (IsNamed(name, "content-length")) {
    size_t length = 0;
    const auto [stop, problem] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (problem != std::errc() || stop != value.data() + value.size()) {
      return Fail("a Content-Length that is no number", line);
    }
    if (length > limits_.body_bytes_max) {
      return Fail("a body of more than " + std::to_string(limits_.body_bytes_max) + " bytes", line);
    }
    if (has_length_ && length != body_bytes_) {
      return Fail("two lengths that differ", line);
    }
    body_bytes_ = length;
    has_length_ = true;
  } else if (IsNamed(name, "transfer-encoding")) {
    return Fail("expected Content-Length; transfer codings are not read here", line);
  } else if (IsNamed(name, "connection")) {
    std::string_view list = value;
    std::string_view option;
    while (http::NextElement(list, option)) {
      response_.closes |= IsNamed(option, "close");
    }
  }
  return true;
}

bool HttpResponseReader::Fail(std::string_view problem, std::string_view found) {
  constexpr size_t kShown = 60;
  error_ = problem;
  if (!found.empty()) {
    error_ += "; found '";
    for (const char character : found.substr(0, kShown)) {
      error_ += character >= ' ' && character < 0x7F ? character : '.';
    }
    error_ += '\'';
  }
  return false;
}

}  // namespace weir::app
