#include "codec/resp/reply_parser.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace weir::codec::resp {
namespace {

std::optional<int64_t> ParseNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

constexpr uint32_t kFormatBytes = 4;  // "txt:" before a verbatim text

bool IsDouble(std::string_view text) {
  if (text == "inf" || text == "-inf" || text == "nan" || text == "-nan") {
    return true;
  }
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error != std::errc::invalid_argument && end == text.data() + text.size();
}

bool IsBigNumber(std::string_view text) {
  if (text.starts_with('-')) {
    text.remove_prefix(1);
  }
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char digit) { return digit >= '0' && digit <= '9'; });
}

}  // namespace

const Reply& Reply::element(size_t index) const noexcept {
  auto element = elements().begin();
  std::advance(element, index);
  return *element;
}

ReplyState ReplyParser::Parse(std::string_view input) {
  if (whole_) {
    Restart();
  }
  consumed_ = 0;
  do {
    switch (ParseOne(input)) {
      case Step::kMore:
        return ReplyState::kMore;
      case Step::kError:
        return ReplyState::kError;
      case Step::kDone:
        Close();
    }
  } while (!open_.empty());
  for (Reply& reply : replies_) {
    reply.text = input.substr(reply.offset_, reply.bytes_);
  }
  consumed_ = position_;
  whole_ = true;
  return ReplyState::kReply;
}

// One reply without its elements.
ReplyParser::Step ReplyParser::ParseOne(std::string_view input) {
  if (position_ > limits_.reply_bytes_max) {
    return Fail("more bytes than the limit");
  }
  const size_t end = input.find('\n', std::max(position_, scanned_));
  if (std::min(end, input.size()) - position_ > limits_.line_bytes_max) {
    return Fail("a line longer than the limit");
  }
  if (end == std::string_view::npos) {
    scanned_ = static_cast<uint32_t>(input.size());
    return Step::kMore;
  }
  if (end < position_ + 2 || input[end - 1] != '\r') {
    return Fail("a line that does not end with CR LF");
  }
  const char type = input[position_];
  const std::string_view line = input.substr(position_ + 1, end - 1 - (position_ + 1));
  if (line.find('\r') != std::string_view::npos) {
    return Fail("a line that does not end with CR LF");
  }
  Reply reply;
  reply.offset_ = position_ + 1;
  reply.bytes_ = static_cast<uint32_t>(line.size());
  const auto number = ParseNumber(line);
  const auto read = [&](ReplyType as) {
    reply.type = as;
    replies_.push_back(reply);
    position_ = static_cast<uint32_t>(end + 1);
    return Step::kDone;
  };
  const auto text = [&](ReplyType as) {
    reply.type = as;
    return number ? ParseText(input, reply, *number) : Fail("a length that is no number");
  };
  const auto aggregate = [&](ReplyType as) {
    reply.type = as;
    if (!number) {
      return Fail("a count that is no number");
    }
    position_ = static_cast<uint32_t>(end + 1);
    return OpenAggregate(reply, *number);
  };
  switch (type) {
    case '+':
      return read(ReplyType::kSimple);
    case '-':
      return read(ReplyType::kError);
    case ':':
      reply.integer = number.value_or(0);
      return number ? read(ReplyType::kInteger) : Fail("an integer that is no number");
    case '_':
      return line.empty() ? read(ReplyType::kNull) : Fail("a null with text");
    case '#':
      reply.integer = line == "t" ? 1 : 0;
      return line == "t" || line == "f" ? read(ReplyType::kBool)
                                        : Fail("a boolean that is neither t nor f");
    case ',':
      return IsDouble(line) ? read(ReplyType::kDouble) : Fail("a double that is no number");
    case '(':
      return IsBigNumber(line) ? read(ReplyType::kBigNumber)
                               : Fail("a big number that is no number");
    case '$':
      return text(ReplyType::kBulk);
    case '!':
      return text(ReplyType::kError);
    case '=':
      return text(ReplyType::kVerbatim);
    case '*':
      return aggregate(ReplyType::kArray);
    case '%':
      return aggregate(ReplyType::kMap);
    case '~':
      return aggregate(ReplyType::kSet);
    case '>':
      return aggregate(ReplyType::kPush);
    default:
      return Fail("an unknown type of reply");
  }
}

// `reply` still describes the line with the length; its text follows that line.
ReplyParser::Step ReplyParser::ParseText(std::string_view input, Reply reply, int64_t size) {
  const uint32_t begin = reply.offset_ + reply.bytes_ + 2;
  if (size == -1 && reply.type == ReplyType::kBulk) {
    reply.type = ReplyType::kNull;
    reply.bytes_ = 0;
    position_ = begin;
    replies_.push_back(reply);
    return Step::kDone;
  }
  const bool verbatim = reply.type == ReplyType::kVerbatim;
  if (size < (verbatim ? int64_t{kFormatBytes} : 0) || size > limits_.bulk_bytes_max) {
    return Fail("a text longer than the limit, or of negative length");
  }
  const auto bytes = static_cast<uint32_t>(size);
  if (input.size() - begin < size_t{bytes} + 2) {
    return Step::kMore;  // the line with the length is short, so that reading it again costs
                         // nothing
  }
  if (input.substr(begin + bytes, 2) != "\r\n") {
    return Fail("a text that does not end with CR LF");
  }
  reply.offset_ = begin;
  reply.bytes_ = bytes;
  if (verbatim) {
    if (input[begin + kFormatBytes - 1] != ':') {
      return Fail("a verbatim text without its format");
    }
    reply.offset_ += kFormatBytes;
    reply.bytes_ -= kFormatBytes;
  }
  position_ = begin + bytes + 2;
  replies_.push_back(reply);
  return Step::kDone;
}

ReplyParser::Step ReplyParser::OpenAggregate(Reply reply, int64_t size) {
  reply.bytes_ = 0;
  if (size == -1 && reply.type == ReplyType::kArray) {
    reply.type = ReplyType::kNull;
    replies_.push_back(reply);
    return Step::kDone;
  }
  const int64_t elements =
      reply.type == ReplyType::kMap ? 2 * std::clamp(size, int64_t{-1}, int64_t{1} << 32) : size;
  if (elements < 0 || elements + promised_ > limits_.replies_max) {
    return Fail("more elements than the limit, or a negative count");
  }
  promised_ += static_cast<uint32_t>(elements);
  if (open_.size() >= limits_.depth_max) {
    return Fail("replies nested deeper than the limit");
  }
  reply.size = static_cast<uint32_t>(elements);
  open_.push_back({.index = static_cast<uint32_t>(replies_.size()), .left = reply.size + 1});
  replies_.push_back(reply);
  return Step::kDone;
}

// A reply has been read whole: counts it in the aggregate it is part of, and so on upwards. An
// aggregate was opened with one element too many, which is its own head.
void ReplyParser::Close() {
  while (!open_.empty() && --open_.back().left == 0) {
    Reply& aggregate = replies_[open_.back().index];
    aggregate.below_ = static_cast<uint32_t>(replies_.size()) - open_.back().index - 1;
    open_.pop_back();
  }
}

ReplyParser::Step ReplyParser::Fail(std::string_view message) {
  error_.assign("the reply has ").append(message);
  return Step::kError;
}

void ReplyParser::Restart() noexcept {
  position_ = scanned_ = promised_ = 0;
  replies_.clear();
  open_.clear();
  whole_ = false;
}

}  // namespace weir::codec::resp
