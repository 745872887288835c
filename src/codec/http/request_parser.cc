#include "codec/http/request_parser.h"

#include <algorithm>
#include <cstring>

#include "codec/http/known_field.h"
#include "codec/http/syntax.h"

namespace weir::codec::http {
namespace {

constexpr uint32_t kChunkLineMax = 256;    // a size and its extensions, which nobody uses
constexpr size_t kChunkSizeDigitsMax = 8;  // leading zeros included
constexpr size_t kHeadKeptMax = 1024;      // of each connection

std::string_view Text(std::span<char> input) {
  return {input.data(), input.size()};
}

}  // namespace

ParseState RequestParser::Parse(std::span<char> input) {
  if (state_ == State::kDone) {
    if (IsRepeated(Text(input))) {
      View(Text(input));
      return ParseState::kRequest;
    }
    Restart();
  }
  consumed_ = 0;
  for (;;) {
    switch (Advance(input)) {
      case Step::kNext:
        break;
      case Step::kMore:
        return ParseState::kMore;
      case Step::kError:
        return ParseState::kError;
      case Step::kDone:
        Finish(Text(input));
        return ParseState::kRequest;
    }
  }
}

RequestParser::Step RequestParser::Advance(std::span<char> input) {
  switch (state_) {
    case State::kRequestLine:
      return ReadRequestLine(Text(input));
    case State::kFields:
      return ReadFields(Text(input));
    case State::kBody:
      return ReadBody(Text(input));
    case State::kChunkSize:
      return ReadChunkSize(Text(input));
    case State::kChunkData:
      return ReadChunkData(input);
    case State::kTrailers:
      return ReadTrailer(Text(input));
    case State::kDone:
      break;
  }
  return Step::kDone;
}

bool RequestParser::TakeContinue() noexcept {
  const bool wanted = continue_wanted_ && head_complete();
  if (wanted) {
    continue_wanted_ = false;
  }
  return wanted;
}

// Where the line at position_ may end at most. Its length is judged before its content, so that the
// answer does not depend on how the bytes arrive.
size_t RequestParser::LineEndMax(LineKind kind) const noexcept {
  if (kind == LineKind::kChunk) {
    return position_ + kChunkLineMax + size_t{1};
  }
  const size_t most = position_ + limits_.line_bytes_max + size_t{1};
  return head_complete() ? most : std::min(most, limits_.head_bytes_max - size_t{1});
}

// Names the limit that the line passed first, which is not the one that it is seen to pass where
// more of it has arrived.
RequestParser::Step RequestParser::FailTooLong(LineKind kind) {
  if (kind == LineKind::kChunk) {
    return Fail(400, "The line with a chunk's size is longer than the limit.");
  }
  if (LineEndMax(kind) < position_ + limits_.line_bytes_max + size_t{1}) {
    return Fail(431, "The request's head is longer than the limit.");
  }
  return kind == LineKind::kRequest ? Fail(414, "The request line is longer than the limit.")
                                    : Fail(431, "A header line is longer than the limit.");
}

RequestParser::Step RequestParser::AwaitLine(std::string_view input, LineKind kind) {
  if (input.size() > LineEndMax(kind)) {
    return FailTooLong(kind);
  }
  scanned_ = static_cast<uint32_t>(input.size());
  return Step::kMore;
}

// The line at position_ without its CR LF, once it is whole.
RequestParser::Step RequestParser::TakeLine(std::string_view input, LineKind kind, Span& line) {
  const size_t from = std::max(position_, scanned_);
  const void* const found = std::memchr(input.data() + from, '\n', input.size() - from);
  if (found == nullptr) {
    return AwaitLine(input, kind);
  }
  const auto end = static_cast<size_t>(static_cast<const char*>(found) - input.data());
  if (end > LineEndMax(kind)) [[unlikely]] {
    return FailTooLong(kind);
  }
  if (end == position_ || input[end - 1] != '\r') [[unlikely]] {
    return Fail(400, "A line ends with LF alone; lines end with CR LF.");
  }
  line = {.offset = position_, .size = static_cast<uint32_t>(end - 1 - position_)};
  position_ = static_cast<uint32_t>(end + 1);
  return Step::kNext;
}

RequestParser::Step RequestParser::ReadFields(std::string_view input) {
  for (;;) {
    Span line;
    if (const Step step = TakeLine(input, LineKind::kField, line); step != Step::kNext) {
      return step;
    }
    if (line.size == 0) {
      return FinishHead(input);
    }
    if (const Step step = ReadField(input, line); step != Step::kNext) {
      return step;
    }
  }
}

RequestParser::Step RequestParser::ReadField(std::string_view input, Span line) {
  const std::string_view text(input.data() + line.offset, line.size);
  if (IsBlank(text.front())) {
    return Fail(400, "A header line begins with a blank; folded lines are not allowed.");
  }
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name(text.data(), colon);
  const Known known = FindKnown(name);
  if (colon == text.size() || (known == Known::kNone && !IsToken(name))) {
    return Fail(400, "A header line does not begin with a name and a colon.");
  }
  const std::string_view value = TrimBlanks({name.end() + 1, text.end()});
  if (HasControl(value)) {
    return Fail(400, "A header value holds a control byte.");
  }
  if (spans_.size() >= limits_.fields_max) {
    return Fail(431, "The request has more header lines than the limit.");
  }
  spans_.push_back({.name = {line.offset, static_cast<uint32_t>(colon)},
                    .value = {static_cast<uint32_t>(value.data() - input.data()),
                              static_cast<uint32_t>(value.size())},
                    .known = known});
  return known == Known::kNone ? Step::kNext : NoteField(known, value);
}

RequestParser::Step RequestParser::ReadBody(std::string_view input) {
  if (input.size() - position_ < length_) {
    return Step::kMore;
  }
  body_ = {.offset = position_, .size = static_cast<uint32_t>(length_)};
  position_ += static_cast<uint32_t>(length_);
  return Step::kDone;
}

RequestParser::Step RequestParser::ReadChunkSize(std::string_view input) {
  Span line;
  if (const Step step = TakeLine(input, LineKind::kChunk, line); step != Step::kNext) {
    return step;
  }
  const std::string_view text = input.substr(line.offset, line.size);
  size_t digits = 0;
  length_ = 0;
  while (digits < text.size() && HexValue(text[digits]) >= 0) {
    if (digits == kChunkSizeDigitsMax) {
      return Fail(400, "A chunk's size has more than 8 digits.");
    }
    length_ = length_ << 4 | static_cast<uint64_t>(HexValue(text[digits++]));
  }
  const std::string_view extensions = text.substr(digits);
  if (digits == 0 || HasControl(extensions) ||
      (!extensions.empty() && !TrimBlanks(extensions).starts_with(';'))) {
    return Fail(400, "A chunk's size is not a hexadecimal number.");
  }
  if (body_.size + length_ > limits_.body_bytes_max) {
    return Fail(413, "The request's body is longer than the limit.");
  }
  framing_bytes_ += line.size + 4;
  if (framing_bytes_ > limits_.framing_bytes_max) {
    return Fail(413, "The request's body is cut into too many chunks.");
  }
  state_ = length_ == 0 ? State::kTrailers : State::kChunkData;
  return Step::kNext;
}

// Moves a chunk to the end of the body so far, over the framing between them.
RequestParser::Step RequestParser::ReadChunkData(std::span<char> input) {
  if (input.size() - position_ < length_ + 2) {
    return Step::kMore;
  }
  char* const chunk = input.data() + position_;
  if (chunk[length_] != '\r' || chunk[length_ + 1] != '\n') {
    return Fail(400, "A chunk does not end with CR LF where its size says.");
  }
  std::memmove(input.data() + body_.offset + body_.size, chunk, length_);
  body_.size += static_cast<uint32_t>(length_);
  position_ += static_cast<uint32_t>(length_ + 2);
  state_ = State::kChunkSize;
  return Step::kNext;
}

// Trailers are read and dropped: nothing here uses them, and merging them is a way to smuggle.
RequestParser::Step RequestParser::ReadTrailer(std::string_view input) {
  Span line;
  if (const Step step = TakeLine(input, LineKind::kField, line); step != Step::kNext) {
    return step;
  }
  if (line.size == 0) {
    return Step::kDone;
  }
  const std::string_view text = input.substr(line.offset, line.size);
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || !IsToken(text.substr(0, colon)) || HasControl(text)) {
    return Fail(400, "A trailer is not a header line.");
  }
  framing_bytes_ += line.size + 2;
  if (++trailers_ > limits_.fields_max || framing_bytes_ > limits_.framing_bytes_max) {
    return Fail(431, "The request has more trailers than the limit.");
  }
  return Step::kNext;
}

// Whether the input begins with the last head and a whole body of its length.
bool RequestParser::IsRepeated(std::string_view input) const noexcept {
  return !last_head_.empty() && input.size() >= position_ &&
         std::memcmp(input.data(), last_head_.data(), last_head_.size()) == 0;
}

void RequestParser::Finish(std::string_view input) {
  request_.keep_alive = !close_ && (request_.minor_version == 1 || keep_);
  continue_wanted_ = false;
  consumed_ = position_;
  state_ = State::kDone;
  viewed_ = nullptr;
  View(input);
  if (chunked_ || body_.offset > kHeadKeptMax) {
    last_head_.clear();
  } else {
    last_head_.assign(input.data(), body_.offset);
  }
}

// Points the request at its bytes.
void RequestParser::View(std::string_view input) {
  if (viewed_ == input.data()) {
    return;  // they are where the last one's were
  }
  viewed_ = input.data();
  const auto view = [input](Span span) {
    return std::string_view(input.data() + span.offset, span.size);
  };
  fields_.resize(spans_.size());
  for (size_t i = 0; i < spans_.size(); ++i) {
    fields_[i] = {view(spans_[i].name), view(spans_[i].value), spans_[i].known};
  }
  request_.fields = fields_;
  request_.method_text = view(method_);
  request_.target = view(target_);
  request_.path = path_.size != 0 ? view(path_) : "/";
  request_.query = view(query_);
  request_.body = view(body_);
  request_.host = authority_.size != 0 ? view(authority_) : request_.Find(Known::kHost);
}

RequestParser::Step RequestParser::Fail(int status, std::string_view reason) {
  status_ = status;
  reason_ = reason;
  return Step::kError;
}

void RequestParser::Restart() noexcept {
  state_ = State::kRequestLine;
  continue_wanted_ = close_ = keep_ = chunked_ = has_length_ = blank_skipped_ = false;
  position_ = scanned_ = trailers_ = framing_bytes_ = 0;
  length_ = 0;
  authority_ = query_ = path_ = body_ = {};
  spans_.clear();
  request_.first_known.fill(Request::kAbsent);
}

}  // namespace weir::codec::http
