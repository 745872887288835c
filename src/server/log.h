// Log lines for people (text) or machines (JSON), one event a line, on standard error.
//
//   Log(LogLevel::kInfo, "rules loaded", {{"file", path}, {"rules", count}});
//
// Values come from outside: control characters are escaped, so that no value can start a line, and
// long ones are cut. Thread-safe. What is secret does not get here: keys are logged as digests.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace weir::server {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };
enum class LogFormat : uint8_t { kText, kJson };

struct LogField {
  LogField(std::string_view field, std::string_view text) : name(field), value(text) {}
  LogField(std::string_view field, const char* text) : name(field), value(text) {}
  LogField(std::string_view field, const std::string& text) : name(field), value(text) {}
  template <class Number>
    requires std::is_arithmetic_v<Number>
  LogField(std::string_view field, Number number)
      : name(field), value(std::to_string(number)), is_number(true) {}

  std::string_view name;
  std::string value;
  bool is_number = false;
};

// At the start, before there are threads.
void ConfigureLog(LogLevel least, LogFormat format);

[[nodiscard]] bool Logs(LogLevel level) noexcept;
void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});

// The line that Log would write; for tests.
[[nodiscard]] std::string FormatLine(LogFormat format, std::string_view time, LogLevel level,
                                     std::string_view event,
                                     std::initializer_list<LogField> fields);

}  // namespace weir::server
