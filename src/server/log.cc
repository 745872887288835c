#include "server/log.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>

#include "weir/time.h"

namespace weir::server {

namespace {

constexpr size_t kValueBytesMax = 1024;

LogLevel least_level = LogLevel::kInfo;
LogFormat chosen_format = LogFormat::kText;

std::string_view NameOf(LogLevel level) {
  constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};
  return kNames[static_cast<size_t>(level)];
}

// Between quotes these have to be escaped as well.
enum class Quotes : uint8_t { kNone, kAround };

void AppendEscaped(std::string& line, std::string_view text, Quotes quotes) {
  const bool cut = text.size() > kValueBytesMax;
  for (const char character : text.substr(0, kValueBytesMax)) {
    const auto byte = static_cast<unsigned char>(character);
    if (quotes == Quotes::kAround && (character == '"' || character == '\\')) {
      line += '\\';
      line += character;
    } else if (byte < 0x20 || byte == 0x7f) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", byte);
      line += code;
    } else {
      line += character;
    }
  }
  if (cut) {
    line += "…";
  }
}

void AppendQuoted(std::string& line, std::string_view text) {
  line += '"';
  AppendEscaped(line, text, Quotes::kAround);
  line += '"';
}

std::string TimeNow() {
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(SystemClock().WallNow());
  const std::time_t seconds = ms.time_since_epoch().count() / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[40];
  const size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + size, sizeof text - size, ".%03dZ",
                static_cast<int>(ms.time_since_epoch().count() % 1000));
  return text;
}

}  // namespace

std::string FormatLine(LogFormat format, std::string_view time, LogLevel level,
                       std::string_view event, std::initializer_list<LogField> fields) {
  std::string line;
  if (format == LogFormat::kJson) {
    line += "{\"time\":\"" + std::string(time) + "\",\"level\":\"" + std::string(NameOf(level)) +
            "\",\"event\":";
    AppendQuoted(line, event);
    for (const LogField& field : fields) {
      line += ",\"" + std::string(field.name) + "\":";
      if (field.is_number) {
        line += field.value;
      } else {
        AppendQuoted(line, field.value);
      }
    }
    line += "}\n";
    return line;
  }
  line += std::string(time) + " " + std::string(NameOf(level)) + " ";
  AppendEscaped(line, event, Quotes::kNone);
  for (const LogField& field : fields) {
    line += " " + std::string(field.name) + "=";
    const bool plain =
        !field.value.empty() && field.value.find_first_of(" \"=\\") == std::string::npos;
    if (plain) {
      AppendEscaped(line, field.value, Quotes::kNone);
    } else {
      AppendQuoted(line, field.value);
    }
  }
  line += '\n';
  return line;
}

void ConfigureLog(LogLevel least, LogFormat format) {
  least_level = least;
  chosen_format = format;
}

bool Logs(LogLevel level) noexcept {
  return level >= least_level;
}

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (!Logs(level)) {
    return;
  }
  const std::string line = FormatLine(chosen_format, TimeNow(), level, event, fields);
  // One call, so that lines of several threads do not mix. Nobody to tell if it fails.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace weir::server
