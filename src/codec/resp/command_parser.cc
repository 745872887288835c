#include "codec/resp/command_parser.h"

#include <algorithm>
#include <optional>

#include "base/same_text.h"

namespace weir::codec::resp {
namespace {

// A count or length: digits, perhaps a sign, CR LF. Redis lets such a line grow to 64 KiB; no
// number needs more than this.
constexpr size_t kNumberLineMax = 32;
constexpr size_t kDigitsMax = 18;  // below 2^63

std::optional<char> HexDigit(char digit) {
  if (digit >= '0' && digit <= '9') {
    return static_cast<char>(digit - '0');
  }
  const char lower = static_cast<char>(digit | 0x20);
  if (lower >= 'a' && lower <= 'f') {
    return static_cast<char>(lower - 'a' + 10);
  }
  return std::nullopt;
}

bool IsBlank(char character) {
  return character == ' ' || (character >= '\t' && character <= '\r') || character == '\0';
}

bool IsQuote(char character) {
  return character == '"' || character == '\'';
}

// One word of an inline line, as redis-cli and Redis itself read it: "…" with C escapes, '…' with
// \' alone, or plain up to a blank. Unquoted bytes are appended to `into`.
class WordReader {
 public:
  WordReader(std::string_view line, size_t& at, std::string& into)
      : line_(line), at_(at), into_(into) {}

  // False: a quote is not closed, or text follows a closing quote.
  bool Read() {
    while (at_ < line_.size() && !IsBlank(line_[at_])) {
      const char character = line_[at_++];
      if (IsQuote(character)) {
        return ReadQuoted(character) && (at_ == line_.size() || IsBlank(line_[at_]));
      }
      into_ += character;
    }
    return true;
  }

 private:
  bool ReadQuoted(char quote) {
    while (at_ < line_.size()) {
      const char character = line_[at_++];
      if (character == quote) {
        return true;
      }
      if (character != '\\' || at_ == line_.size()) {
        into_ += character;
      } else if (quote == '"') {
        into_ += ReadEscape();
      } else if (line_[at_] == '\'') {
        into_ += line_[at_++];
      } else {
        into_ += character;
      }
    }
    return false;
  }

  char ReadEscape() {
    const char escape = line_[at_++];
    if (escape == 'x' && at_ + 1 < line_.size()) {
      const auto high = HexDigit(line_[at_]);
      const auto low = HexDigit(line_[at_ + 1]);
      if (high && low) {
        at_ += 2;
        return static_cast<char>(*high << 4 | *low);
      }
    }
    constexpr std::string_view kLetters = "nrtba";
    constexpr std::string_view kMeanings = "\n\r\t\b\a";
    const size_t index = kLetters.find(escape);
    return index == std::string_view::npos ? escape : kMeanings[index];
  }

  std::string_view line_;
  size_t& at_;
  std::string& into_;
};

}  // namespace

ParseState CommandParser::Parse(std::string_view input) {
  consumed_ = 0;
  unquoted_.clear();
  while (consumed_ < input.size()) {
    const std::string_view command = input.substr(consumed_);
    const Step step = command.front() == '*' ? ParseArray(command) : ParseInline(command);
    switch (step) {
      case Step::kMore:
        return ParseState::kMore;
      case Step::kError:
        return ParseState::kError;
      case Step::kEmpty:
      case Step::kDone:
        consumed_ += position_;
        Restart();
        if (step == Step::kDone) {
          return ParseState::kCommand;
        }
    }
  }
  return ParseState::kMore;
}

CommandParser::Step CommandParser::ParseArray(std::string_view command) {
  if (args_expected_ == 0) {
    int64_t count = 0;
    const Step step =
        ReadNumber(command, "too big mbulk count string", "invalid multibulk length", count);
    if (step != Step::kDone) {
      return step;
    }
    if (count > limits_.args_max) {
      return Fail(limits_.authenticated ? "invalid multibulk length"
                                        : "unauthenticated multibulk length");
    }
    if (count <= 0) {
      return Step::kEmpty;  // Redis says nothing to these either
    }
    args_expected_ = static_cast<uint32_t>(count);
    pieces_.clear();
  }
  while (pieces_.size() < args_expected_) {
    if (bulk_size_ < 0) {
      if (position_ == command.size()) {
        return Step::kMore;
      }
      if (command[position_] == ':') {
        const Step step = ReadInteger(command);
        if (step != Step::kDone) {
          return step;
        }
        continue;
      }
      if (command[position_] != '$') {
        return FailUnexpected(command[position_]);
      }
      int64_t size = 0;
      const Step step =
          ReadNumber(command, "too big bulk count string", "invalid bulk length", size);
      if (step != Step::kDone) {
        return step;
      }
      if (size < 0 || size > limits_.bulk_bytes_max) {
        return Fail(size > 0 && !limits_.authenticated ? "unauthenticated bulk length"
                                                       : "invalid bulk length");
      }
      // Bounds what a caller ever has to keep: a bulk is awaited only if the command may hold it.
      if (position_ + size + 2 > limits_.command_bytes_max) {
        return Fail("too big command");
      }
      bulk_size_ = size;
    }
    const auto size = static_cast<uint32_t>(bulk_size_);
    if (command.size() - position_ < size + 2) {
      return Step::kMore;
    }
    if (command[position_ + size] != '\r' || command[position_ + size + 1] != '\n') {
      return Fail("expected CRLF after a bulk of the announced length");
    }
    pieces_.push_back({.offset = position_, .size = size});
    position_ += size + 2;
    bulk_size_ = -1;
  }
  arguments_.clear();
  for (const Piece piece : pieces_) {
    arguments_.push_back(command.substr(piece.offset, piece.size));
  }
  return Step::kDone;
}

// An argument that is an integer by its type, as some clients send numbers: it counts as its text,
// which whoever wants a number reads again.
CommandParser::Step CommandParser::ReadInteger(std::string_view command) {
  const size_t begin = position_ + 1;
  const std::string_view line = command.substr(begin, kNumberLineMax);
  const size_t end = line.find('\n');
  if (end == std::string_view::npos) {
    return line.size() == kNumberLineMax ? Fail("too big integer") : Step::kMore;
  }
  const size_t sign = line.starts_with('-') || line.starts_with('+') ? 1 : 0;
  const std::string_view digits = line.substr(sign, end - sign);
  if (digits.size() < 2 || digits.find_first_not_of("0123456789") != digits.size() - 1 ||
      digits.back() != '\r') {
    return Fail("invalid integer");
  }
  if (begin + end + 1 > limits_.command_bytes_max) {
    return Fail("too big command");
  }
  pieces_.push_back(
      {.offset = static_cast<uint32_t>(begin), .size = static_cast<uint32_t>(end - 1)});
  position_ = static_cast<uint32_t>(begin + end + 1);
  return Step::kDone;
}

// Reads the number behind the type byte at position_ and its CR LF, as strictly as Redis does: no
// plus sign, no leading zero.
CommandParser::Step CommandParser::ReadNumber(std::string_view command, std::string_view too_long,
                                              std::string_view invalid, int64_t& number) {
  const size_t begin = position_ + 1;
  const size_t limit = std::min(command.size(), begin + kNumberLineMax);
  size_t at = begin;
  const bool negative = at < limit && command[at] == '-';
  at += negative ? 1 : 0;
  const size_t digits = at;
  int64_t value = 0;
  while (at < limit && command[at] >= '0' && command[at] <= '9') {
    if (at - digits == kDigitsMax || (at > digits && value == 0)) {
      return Fail(invalid);
    }
    value = value * 10 + (command[at++] - '0');
  }
  if (at < limit && (command[at] != '\r' || at == digits || (negative && value == 0))) {
    return Fail(invalid);
  }
  if (at + 1 >= limit) {
    return limit - begin == kNumberLineMax ? Fail(too_long) : Step::kMore;
  }
  if (command[at + 1] != '\n') {
    return Fail(invalid);
  }
  number = negative ? -value : value;
  position_ = static_cast<uint32_t>(at + 2);
  return Step::kDone;
}

CommandParser::Step CommandParser::ParseInline(std::string_view command) {
  const size_t end = command.find('\n', scanned_);
  if (std::min(end, command.size()) > limits_.bulk_bytes_max) {
    return Fail("too big inline request");
  }
  if (end == std::string_view::npos) {
    scanned_ = static_cast<uint32_t>(command.size());
    return Step::kMore;
  }
  position_ = static_cast<uint32_t>(end + 1);
  const bool has_return = end > 0 && command[end - 1] == '\r';
  return SplitInline(command.substr(0, has_return ? end - 1 : end));
}

CommandParser::Step CommandParser::SplitInline(std::string_view line) {
  arguments_.clear();
  unquoted_.reserve(line.size());  // unquoting never lengthens, so views into it stay good
  for (size_t at = 0;;) {
    while (at < line.size() && IsBlank(line[at])) {
      ++at;
    }
    if (at == line.size()) {
      break;
    }
    if (arguments_.size() == limits_.args_max) {
      return Fail("too many arguments in an inline request");
    }
    const size_t word = at;
    while (at < line.size() && !IsBlank(line[at]) && !IsQuote(line[at])) {
      ++at;
    }
    if (at == line.size() || IsBlank(line[at])) {
      arguments_.push_back(line.substr(word, at - word));  // as it stands
      continue;
    }
    at = word;
    const size_t begin = unquoted_.size();
    if (!WordReader(line, at, unquoted_).Read()) {
      return Fail("unbalanced quotes in request");
    }
    arguments_.emplace_back(unquoted_.data() + begin, unquoted_.size() - begin);
  }
  if (arguments_.empty()) {
    return Step::kEmpty;
  }
  // A browser can be made to send these to any port; its body must not be taken for commands.
  if (base::SameLetters(arguments_.front(), "post") ||
      base::SameLetters(arguments_.front(), "host:")) {
    return Fail("this port speaks the Redis protocol, not HTTP");
  }
  return Step::kDone;
}

CommandParser::Step CommandParser::Fail(std::string_view message) {
  error_.assign("ERR Protocol error: ").append(message);
  return Step::kError;
}

CommandParser::Step CommandParser::FailUnexpected(char found) {
  // A byte that would break the reply's line is named by its code.
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(found);
  if (code >= 0x20 && code < 0x7F) {
    Fail("expected '$', got '");
    error_ += found;
  } else {
    Fail("expected '$', got '\\x");
    error_ += kDigits[code >> 4];
    error_ += kDigits[code & 15];
  }
  error_ += '\'';
  return Step::kError;
}

void CommandParser::Restart() noexcept {
  position_ = scanned_ = args_expected_ = 0;
  bulk_size_ = -1;
}

}  // namespace weir::codec::resp
