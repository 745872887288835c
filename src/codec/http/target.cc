#include "codec/http/target.h"

#include <algorithm>

#include "codec/http/syntax.h"

namespace weir::codec::http {
namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

// The byte of the escape at `at`; -1 if it is none.
int EscapedByte(std::string_view text, size_t at) {
  if (at + 2 >= text.size() || HexValue(text[at + 1]) < 0 || HexValue(text[at + 2]) < 0) {
    return -1;
  }
  return HexValue(text[at + 1]) << 4 | HexValue(text[at + 2]);
}

bool StaysEscaped(int byte) {
  return byte == '/' || byte == '%' || byte < 0x20 || byte == 0x7F;
}

bool IsNormal(std::string_view path) {
  return path.find('%') == std::string_view::npos && path.find("//") == std::string_view::npos &&
         path.find("/.") == std::string_view::npos;
}

// Appends one segment, decoded. False: it has a bad escape or a NUL.
bool AppendSegment(std::string_view segment, std::string& to) {
  for (size_t at = 0; at < segment.size(); ++at) {
    if (segment[at] != '%') {
      to += segment[at];
      continue;
    }
    const int byte = EscapedByte(segment, at);
    if (byte <= 0) {
      return false;
    }
    if (StaysEscaped(byte)) {
      to += '%';
      to += kHexDigits[static_cast<size_t>(byte) >> 4];
      to += kHexDigits[static_cast<size_t>(byte) & 15];
    } else {
      to += static_cast<char>(byte);
    }
    at += 2;
  }
  return true;
}

}  // namespace

std::optional<std::string_view> NormalizePath(std::string_view path, std::string& storage) {
  if (!path.starts_with('/') || path.find('\0') != std::string_view::npos) {
    return std::nullopt;
  }
  if (IsNormal(path)) {
    return path;
  }
  storage.clear();
  storage.reserve(path.size());
  // Each turn takes "/segment" and leaves storage as a path without the slash behind it.
  bool ends_open = false;  // with a slash
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at + 1), path.size());
    const size_t before = storage.size();
    storage += '/';
    if (!AppendSegment(path.substr(at + 1, end - at - 1), storage)) {
      return std::nullopt;
    }
    const std::string_view segment = std::string_view(storage).substr(before + 1);
    ends_open = segment.empty() || segment == "." || segment == "..";
    if (segment == "..") {
      if (before == 0) {
        return std::nullopt;
      }
      storage.resize(storage.rfind('/', before - 1));
    } else if (ends_open) {
      storage.resize(before);
    }
    at = end;
  }
  if (ends_open || storage.empty()) {
    storage += '/';
  }
  return storage;
}

QueryReader::QueryReader(std::string_view query, std::string& storage)
    : rest_(query), storage_(storage) {
  storage_.clear();
  storage_.reserve(query.size());  // decoding never lengthens, so views into it stay good
}

std::optional<QueryReader::Parameter> QueryReader::Next() {
  while (!rest_.empty()) {
    const size_t end = rest_.find('&');
    const std::string_view pair = rest_.substr(0, end);
    rest_.remove_prefix(std::min(rest_.size(), end == std::string_view::npos ? end : end + 1));
    if (pair.empty()) {
      continue;
    }
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view name = Decode(pair.substr(0, equals));
    return Parameter{name, Decode(pair.substr(std::min(equals + 1, pair.size())))};
  }
  return std::nullopt;
}

std::string_view QueryReader::Decode(std::string_view text) {
  if (text.find_first_of("%+") == std::string_view::npos) {
    return text;
  }
  const size_t begin = storage_.size();
  for (size_t at = 0; at < text.size(); ++at) {
    const int byte = text[at] == '%' ? EscapedByte(text, at) : -1;
    if (byte >= 0) {
      storage_ += static_cast<char>(byte);
      at += 2;
    } else {
      storage_ += text[at] == '+' ? ' ' : text[at];
    }
  }
  return std::string_view(storage_).substr(begin);
}

}  // namespace weir::codec::http
