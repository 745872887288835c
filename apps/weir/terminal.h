// What the terminal can show, and text painted for it. Shared by all commands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::app {

enum class Charset : uint8_t { kAscii, kUtf8 };
enum class Colors : uint8_t { kNone, kAnsi };

struct Terminal {
  size_t width = 80;
  Colors colors = Colors::kNone;
  Charset charset = Charset::kAscii;

  [[nodiscard]] bool utf8() const noexcept { return charset == Charset::kUtf8; }
};

// What decides; read from the process by DetectTerminal, given by hand in tests.
struct Surroundings {
  bool is_tty = false;
  size_t tty_columns = 0;  // 0: unknown
  std::optional<std::string> lc_all = std::nullopt;
  std::optional<std::string> lc_ctype = std::nullopt;
  std::optional<std::string> lang = std::nullopt;
  std::optional<std::string> term = std::nullopt;
  std::optional<std::string> no_color = std::nullopt;
  std::optional<std::string> columns = std::nullopt;
};

// Colours on a terminal that is not dumb, unless NO_COLOR is set and not empty. UTF-8 if the locale
// says so; a terminal in a program without any locale (a bare container) is taken for UTF-8 too.
[[nodiscard]] Terminal Judge(const Surroundings& surroundings);

// For standard output.
[[nodiscard]] Terminal DetectTerminal();

enum class Ink : uint8_t { kPlain, kBold, kDim, kGood, kBad, kWarn, kAccent, kMuted, kGoodOnMuted };

// `text` in this ink, or as it is on a terminal without colours.
[[nodiscard]] std::string Paint(const Terminal& terminal, Ink ink, std::string_view text);

}  // namespace weir::app
