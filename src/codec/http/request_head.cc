// What the lines of a head mean, and which of their combinations are refused.
#include <algorithm>

#include "base/same_text.h"
#include "codec/http/request_parser.h"
#include "codec/http/syntax.h"

namespace weir::codec::http {
namespace {

// The letters of a method as one number.
constexpr size_t kMethodBytesMax = 7;
constexpr uint64_t Letters(std::string_view text) {
  uint64_t letters = 0;
  for (const char letter : text) {
    letters = letters << 8 | static_cast<uint8_t>(letter);
  }
  return letters;
}

// Whatever is found is a token.
Method FindMethod(std::string_view text) {
  if (text.size() > kMethodBytesMax) {
    return Method::kOther;
  }
  switch (Letters(text)) {
    case Letters("GET"):
      return Method::kGet;
    case Letters("HEAD"):
      return Method::kHead;
    case Letters("POST"):
      return Method::kPost;
    case Letters("PUT"):
      return Method::kPut;
    case Letters("DELETE"):
      return Method::kDelete;
    case Letters("OPTIONS"):
      return Method::kOptions;
    case Letters("PATCH"):
      return Method::kPatch;
    default:
      return Method::kOther;
  }
}

}  // namespace

RequestParser::Step RequestParser::ReadRequestLine(std::string_view input) {
  // One empty line is let pass: old clients send it behind a body.
  if (!blank_skipped_ && input.starts_with("\r\n")) {
    blank_skipped_ = true;
    position_ = 2;
  }
  if (position_ == input.size() || (!blank_skipped_ && input == "\r")) {
    return Step::kMore;
  }
  if (!IsToken(input.substr(position_, 1))) {
    return Fail(400, "This is not HTTP: a request begins with the name of a method.");
  }
  Span line;
  if (const Step step = TakeLine(input, LineKind::kRequest, line); step != Step::kNext) {
    return step;
  }
  constexpr std::string_view kUsualEnd = " HTTP/1.1";
  const std::string_view text(input.data() + line.offset, line.size);
  const size_t first = text.find(' ');
  const size_t last = text.ends_with(kUsualEnd) ? text.size() - kUsualEnd.size() : text.rfind(' ');
  const std::string_view method = text.substr(0, first);
  request_.method = FindMethod(method);
  if (first == last || (request_.method == Method::kOther && !IsToken(method))) {
    return Fail(400, "The request line is not: method, blank, target, blank, HTTP/1.1.");
  }
  method_ = {line.offset, static_cast<uint32_t>(first)};
  if (const Step step = ReadVersion(text.substr(last + 1)); step != Step::kNext) {
    return step;
  }
  state_ = State::kFields;
  return ReadTarget(input, {static_cast<uint32_t>(line.offset + first + 1),
                            static_cast<uint32_t>(last - first - 1)});
}

RequestParser::Step RequestParser::ReadVersion(std::string_view version) {
  if (version == "HTTP/1.1") {
    request_.minor_version = 1;
  } else if (version == "HTTP/1.0") {
    request_.minor_version = 0;
  } else if (version.size() == 8 && version.starts_with("HTTP/") && IsDigit(version[5]) &&
             version[6] == '.' && IsDigit(version[7])) {
    return Fail(505, "Only HTTP/1.0 and HTTP/1.1 are spoken here.");
  } else {
    return Fail(400, "The request line does not end with HTTP/1.1 or HTTP/1.0.");
  }
  return Step::kNext;
}

RequestParser::Step RequestParser::ReadTarget(std::string_view input, Span target) {
  target_ = target;
  std::string_view text(input.data() + target.offset, target.size);
  if (!IsTarget(text)) {
    return Fail(400, "The request's target holds a blank, a '#' or a byte that must be escaped.");
  }
  path_ = target;
  if (text == "*" && request_.method == Method::kOptions) {
    return Step::kNext;
  }
  if (text.front() != '/') {
    constexpr std::string_view kScheme = "http://";
    if (!base::SameText(text.substr(0, kScheme.size()), kScheme)) {
      return Fail(400, "The request's target begins neither with '/' nor with http://.");
    }
    const size_t end = std::min(text.find_first_of("/?", kScheme.size()), text.size());
    authority_ = {static_cast<uint32_t>(target.offset + kScheme.size()),
                  static_cast<uint32_t>(end - kScheme.size())};
    if (authority_.size == 0 || !IsHost(input.substr(authority_.offset, authority_.size))) {
      return Fail(400, "The request's target does not name a host.");
    }
    path_ = {static_cast<uint32_t>(target.offset + end), static_cast<uint32_t>(target.size - end)};
    text.remove_prefix(end);
  }
  if (const size_t mark = text.find('?'); mark != std::string_view::npos) {
    query_ = {static_cast<uint32_t>(path_.offset + mark + 1),
              static_cast<uint32_t>(path_.size - mark - 1)};
    path_.size = static_cast<uint32_t>(mark);
  }
  return Step::kNext;
}

RequestParser::Step RequestParser::NoteField(Known known, std::string_view value) {
  uint8_t& first = request_.first_known[static_cast<size_t>(known)];
  const bool again = first != Request::kAbsent;
  if (!again) {
    first = static_cast<uint8_t>(spans_.size() - 1);
  }
  switch (known) {
    case Known::kHost:
      if (again) {
        return Fail(400, "The request has more than one Host.");
      }
      return IsHost(value) ? Step::kNext : Fail(400, "Host is not a name with an optional port.");
    case Known::kContentLength:
      return again ? Fail(400, "The request has more than one Content-Length.") : NoteLength(value);
    case Known::kTransferEncoding:
      chunked_ = true;
      if (again || !base::SameText(value, "chunked")) {
        return Fail(400, "Transfer-Encoding is not just \"chunked\", the only coding known here.");
      }
      return Step::kNext;
    case Known::kConnection:
      return NoteConnection(value);
    case Known::kExpect:
      if (!base::SameText(value, "100-continue")) {
        return Fail(417, "Expect is not \"100-continue\", the only expectation known here.");
      }
      continue_wanted_ = request_.minor_version == 1;
      return Step::kNext;
    default:
      return Step::kNext;
  }
}

RequestParser::Step RequestParser::NoteConnection(std::string_view value) {
  for (std::string_view option; NextElement(value, option);) {
    close_ |= base::SameText(option, "close");
    keep_ |= base::SameText(option, "keep-alive");
  }
  return Step::kNext;
}

RequestParser::Step RequestParser::NoteLength(std::string_view value) {
  constexpr size_t kDigitsMax = 18;  // far above any limit, and below 2^63
  if (value.empty()) {
    return Fail(400, "Content-Length is not a decimal number.");
  }
  has_length_ = true;
  length_ = 0;
  for (const char digit : value) {
    if (!IsDigit(digit)) {
      return Fail(400, "Content-Length is not a decimal number.");
    }
    length_ = length_ * 10 + static_cast<uint64_t>(digit - '0');  // wraps if it is too long
  }
  if (value.size() > kDigitsMax || length_ > limits_.body_bytes_max) {
    return Fail(413, "The request's body is longer than the limit.");
  }
  return Step::kNext;
}

RequestParser::Step RequestParser::FinishHead(std::string_view input) {
  if (const Step step = CheckHost(input); step != Step::kNext) {
    return step;
  }
  if (chunked_ && has_length_) {
    return Fail(400, "Content-Length and Transfer-Encoding are both given; send one of them.");
  }
  if (chunked_ && request_.minor_version == 0) {
    return Fail(400, "Transfer-Encoding is not part of HTTP/1.0.");
  }
  body_ = {.offset = position_, .size = 0};
  state_ = chunked_ ? State::kChunkSize : State::kBody;
  continue_wanted_ = continue_wanted_ && (chunked_ || length_ != 0);
  return Step::kNext;
}

RequestParser::Step RequestParser::CheckHost(std::string_view input) {
  const uint8_t index = request_.first_known[static_cast<size_t>(Known::kHost)];
  if (index == Request::kAbsent) {
    return request_.minor_version == 0
               ? Step::kNext
               : Fail(400, "The request has no Host, which HTTP/1.1 needs.");
  }
  const Span host = spans_[index].value;
  if (authority_.size != 0 && !base::SameText(input.substr(host.offset, host.size),
                                              input.substr(authority_.offset, authority_.size))) {
    return Fail(400, "The request's target names one host and Host another.");
  }
  return Step::kNext;
}

}  // namespace weir::codec::http
