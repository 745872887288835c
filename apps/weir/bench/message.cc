#include "apps/weir/bench/message.h"

#include <charconv>
#include <cstring>
#include <utility>

#include "codec/http/syntax.h"

namespace weir::bench {

namespace http = codec::http;

namespace {

constexpr std::string_view kHole = "{key}";
constexpr size_t kBytesMax = 64 << 10;

size_t SizeWithKeys(std::string_view text, size_t key_bytes) {
  size_t size = text.size();
  for (size_t at = text.find(kHole); at != std::string_view::npos;
       at = text.find(kHole, at + kHole.size())) {
    size = size - kHole.size() + key_bytes;
  }
  return size;
}

// The text without its holes, for rules about bytes that may stand somewhere.
std::string WithoutHoles(std::string_view text) {
  std::string filled(text);
  for (size_t at = filled.find(kHole); at != std::string::npos; at = filled.find(kHole)) {
    filled.replace(at, kHole.size(), "key");
  }
  return filled;
}

Error TooLong(size_t bytes) {
  return Error::Invalid("a request of " + std::to_string(bytes) + " bytes; at most " +
                        std::to_string(kBytesMax));
}

Result<void> CheckHeader(const std::string& header) {
  const size_t colon = header.find(':');
  if (colon == std::string::npos || !http::IsToken(std::string_view(header).substr(0, colon)) ||
      http::HasControl(header)) {
    return Error::Invalid("--header: '" + header + "' is not NAME: VALUE");
  }
  return {};
}

// \xNN is the byte NN, a doubled backslash is one.
Result<std::string> Unescape(std::string_view word) {
  std::string bytes;
  while (!word.empty()) {
    if (word.front() != '\\') {
      bytes += word.front();
      word.remove_prefix(1);
    } else if (word.starts_with("\\\\")) {
      bytes += '\\';
      word.remove_prefix(2);
    } else {
      unsigned byte = 0;
      const std::string_view digits = word.starts_with("\\x") ? word.substr(2, 2) : "";
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
      if (digits.size() != 2 || error != std::errc{} || end != digits.data() + digits.size()) {
        return Error::Invalid("--command: '" + std::string(word.substr(0, 4)) +
                              "' is no byte; expected \\x and two hexadecimal digits, or \\\\");
      }
      bytes += static_cast<char>(byte);
      word.remove_prefix(4);
    }
  }
  return bytes;
}

}  // namespace

Result<Message> Message::Http(const HttpMessage& parts, size_t key_bytes) {
  if (!http::IsToken(parts.method)) {
    return Error::Invalid("--method: '" + parts.method + "' is not a method such as GET or POST");
  }
  if (!http::IsTarget(WithoutHoles(parts.path))) {
    return Error::Invalid("'" + parts.path + "' is not a path: no blanks, nothing beyond ASCII");
  }
  std::string text = parts.method + " " + parts.path + " HTTP/1.1\r\nHost: " + parts.host + "\r\n";
  for (const std::string& header : parts.headers) {
    if (auto good = CheckHeader(header); !good) {
      return good.error();
    }
    text += header + "\r\n";
  }
  if (!parts.body.empty()) {
    text += "Content-Length: " + std::to_string(SizeWithKeys(parts.body, key_bytes)) + "\r\n";
  }
  text += "\r\n" + parts.body;
  Message message(text, key_bytes);
  if (message.bytes() > kBytesMax) {
    return TooLong(message.bytes());
  }
  return message;
}

Result<Message> Message::Resp(std::string_view command, size_t key_bytes) {
  std::vector<std::string> words;
  while (!command.empty()) {
    const size_t begin = command.find_first_not_of(' ');
    if (begin == std::string_view::npos) {
      break;
    }
    command.remove_prefix(begin);
    const std::string_view word = command.substr(0, command.find(' '));
    auto bytes = Unescape(word);
    if (!bytes) {
      return bytes.error();
    }
    words.push_back(std::move(*bytes));
    command.remove_prefix(word.size());
  }
  if (words.empty()) {
    return Error::Invalid(
        "--command: no command; expected words such as CL.THROTTLE {key} 10 100 60");
  }
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    text += "$" + std::to_string(SizeWithKeys(word, key_bytes)) + "\r\n";
    text.append(word).append("\r\n");
  }
  Message message(text, key_bytes);
  if (message.bytes() > kBytesMax) {
    return TooLong(message.bytes());
  }
  return message;
}

Message::Message(std::string_view text, size_t key_bytes) {
  while (true) {
    const size_t hole = text.find(kHole);
    bytes_ += text.substr(0, hole);
    if (hole == std::string_view::npos) {
      return;
    }
    holes_.push_back(bytes_.size());
    bytes_.append(key_bytes, '?');
    text.remove_prefix(hole + kHole.size());
  }
}

void Message::Append(std::string_view key, base::ByteBuffer& to) const {
  char* const bytes = to.Reserve(bytes_.size());
  std::memcpy(bytes, bytes_.data(), bytes_.size());
  for (const size_t hole : holes_) {
    std::memcpy(bytes + hole, key.data(), key.size());
  }
  to.Commit(bytes_.size());
}

}  // namespace weir::bench
