#include "codec/resp/writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

namespace weir::codec::resp {
namespace {

constexpr size_t kDigitsMax = 20;                       // a sign and 19 digits
constexpr size_t kNumberBytesMax = 1 + kDigitsMax + 2;  // with type byte and CR LF

char* PutNumber(char* to, char type, int64_t number) {
  *to++ = type;
  to = std::to_chars(to, to + kDigitsMax, number).ptr;
  *to++ = '\r';
  *to++ = '\n';
  return to;
}

}  // namespace

void Writer::Integer(int64_t number) {
  char* const begin = out_.Reserve(kNumberBytesMax);
  out_.Commit(static_cast<size_t>(PutNumber(begin, ':', number) - begin));
}

void Writer::Integers(std::span<const int64_t> numbers) {
  char* const begin = out_.Reserve((numbers.size() + 1) * kNumberBytesMax);
  char* to = PutNumber(begin, '*', static_cast<int64_t>(numbers.size()));
  for (const int64_t number : numbers) {
    to = PutNumber(to, ':', number);
  }
  out_.Commit(static_cast<size_t>(to - begin));
}

void Writer::Bulk(std::string_view text) {
  char* const begin = out_.Reserve(kNumberBytesMax + text.size() + 2);
  char* to = PutNumber(begin, '$', static_cast<int64_t>(text.size()));
  to = std::copy(text.begin(), text.end(), to);
  *to++ = '\r';
  *to++ = '\n';
  out_.Commit(static_cast<size_t>(to - begin));
}

void Writer::Verbatim(std::string_view text) {
  if (protocol_ == Protocol::k2) {
    Bulk(text);
    return;
  }
  constexpr std::string_view kFormat = "txt:";
  Head('=', kFormat.size() + text.size());
  out_.Append(kFormat);
  out_.Append(text);
  out_.Append("\r\n");
}

void Writer::Null() {
  out_.Append(protocol_ == Protocol::k3 ? "_\r\n" : "$-1\r\n");
}

void Writer::Bool(bool value) {
  if (protocol_ == Protocol::k3) {
    out_.Append(value ? "#t\r\n" : "#f\r\n");
  } else {
    out_.Append(value ? ":1\r\n" : ":0\r\n");
  }
}

void Writer::Double(double number) {
  char text[32];
  std::string_view digits;
  if (std::isnan(number)) {
    digits = "nan";
  } else if (std::isinf(number)) {
    digits = number > 0 ? "inf" : "-inf";
  } else {
    digits = {text, static_cast<size_t>(std::to_chars(text, std::end(text), number).ptr - text)};
  }
  if (protocol_ == Protocol::k2) {
    Bulk(digits);
  } else {
    Line(',', digits);
  }
}

void Writer::Map(size_t pairs) {
  if (protocol_ == Protocol::k3) {
    Head('%', pairs);
  } else {
    Head('*', 2 * pairs);
  }
}

void Writer::Line(char type, std::string_view text) {
  char* const begin = out_.Reserve(text.size() + 3);
  char* to = begin;
  *to++ = type;
  to = std::replace_copy_if(
      text.begin(), text.end(), to,
      [](char character) { return character == '\r' || character == '\n' || character == '\0'; },
      ' ');
  *to++ = '\r';
  *to++ = '\n';
  out_.Commit(static_cast<size_t>(to - begin));
}

void Writer::Head(char type, size_t size) {
  char* const begin = out_.Reserve(kNumberBytesMax);
  out_.Commit(static_cast<size_t>(PutNumber(begin, type, static_cast<int64_t>(size)) - begin));
}

}  // namespace weir::codec::resp
