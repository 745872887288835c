#include "apps/weir/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>

namespace weir::app {
namespace {

constexpr size_t kDefaultWidth = 80;

// Indexed by Ink. The basic colours follow the user's own theme; the muted red is one of the 256
// that every terminal of today has, since the basic red beside green is too loud for areas.
constexpr std::array<std::string_view, 9> kCodes = {"",   "1",  "2",        "32",         "31",
                                                    "33", "36", "38;5;131", "32;48;5;131"};

std::optional<std::string> Environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr)
    return std::nullopt;
  return std::string(value);
}

bool IsSet(const std::optional<std::string>& value) {
  return value && !value->empty();
}

bool NamesUtf8(std::string locale) {
  std::transform(locale.begin(), locale.end(), locale.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

Charset JudgeCharset(const Surroundings& s, bool capable) {
  for (const auto* locale : {&s.lc_all, &s.lc_ctype, &s.lang}) {
    if (IsSet(*locale))
      return NamesUtf8(**locale) ? Charset::kUtf8 : Charset::kAscii;
  }
  return s.is_tty && capable ? Charset::kUtf8 : Charset::kAscii;
}

size_t JudgeWidth(const Surroundings& s) {
  if (s.tty_columns > 0)
    return s.tty_columns;
  if (!IsSet(s.columns))
    return kDefaultWidth;
  size_t width = 0;
  const char* end = s.columns->data() + s.columns->size();
  const auto [stop, problem] = std::from_chars(s.columns->data(), end, width);
  return problem == std::errc() && stop == end && width > 0 ? width : kDefaultWidth;
}

}  // namespace

Terminal Judge(const Surroundings& surroundings) {
  // "linux" is the kernel's console, whose font has few block characters.
  const bool named = IsSet(surroundings.term);
  const bool dumb = !named || *surroundings.term == "dumb";
  Terminal terminal;
  terminal.width = JudgeWidth(surroundings);
  terminal.charset = JudgeCharset(surroundings, !dumb && *surroundings.term != "linux");
  const bool colors = surroundings.is_tty && !dumb && !IsSet(surroundings.no_color);
  terminal.colors = colors ? Colors::kAnsi : Colors::kNone;
  return terminal;
}

Terminal DetectTerminal() {
  Surroundings s;
  s.is_tty = isatty(STDOUT_FILENO) == 1;
  winsize size{};
  if (s.is_tty && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
    s.tty_columns = size.ws_col;
  s.lc_all = Environment("LC_ALL");
  s.lc_ctype = Environment("LC_CTYPE");
  s.lang = Environment("LANG");
  s.term = Environment("TERM");
  s.no_color = Environment("NO_COLOR");
  s.columns = Environment("COLUMNS");
  return Judge(s);
}

std::string Paint(const Terminal& terminal, Ink ink, std::string_view text) {
  const std::string_view code = kCodes[static_cast<size_t>(ink)];
  if (terminal.colors == Colors::kNone || code.empty() || text.empty())
    return std::string(text);
  std::string out = "\x1b[";
  out.append(code).append("m").append(text).append("\x1b[0m");
  return out;
}

}  // namespace weir::app
