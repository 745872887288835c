// Commands of the Redis protocol out of bytes: arrays of bulk strings or integers, and lines typed
// by hand.
//
// The caller keeps the bytes. After every call it drops consumed() of them from the front, and the
// next call gets what is left together with what arrived since, at whatever address. Nothing is
// read twice, so a command that comes byte by byte costs what it costs at once.
//
//   while (parser.Parse(input) == ParseState::kCommand) {
//     Answer(parser.arguments());
//     input.remove_prefix(parser.consumed());
//   }
//   // kMore: drop consumed(), read on.  kError: write error(), close.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::codec::resp {

enum class ParseState : uint8_t {
  kMore,     // the command is not whole yet
  kCommand,  // arguments() holds one, never empty
  kError,    // error() says why; the connection cannot go on
};

struct CommandLimits {
  uint32_t args_max = 1024;
  uint32_t bulk_bytes_max = 64 << 10;      // one argument, or one inline line
  uint32_t command_bytes_max = 512 << 10;  // a whole command with its framing
  bool authenticated = true;               // only words the errors

  // Before AUTH, where one is needed: what nobody vouches for gets little memory.
  static constexpr CommandLimits Unauthenticated() {
    return {.args_max = 10,
            .bulk_bytes_max = 16 << 10,
            .command_bytes_max = 16 << 10,
            .authenticated = false};
  }
};

class CommandParser {
 public:
  explicit CommandParser(const CommandLimits& limits = {}) : limits_(limits) {}

  // Takes effect with the next command. Call it between commands.
  void set_limits(const CommandLimits& limits) noexcept { limits_ = limits; }

  [[nodiscard]] ParseState Parse(std::string_view input);

  // Bytes at the front of the last input that are done with; also after kMore, because empty
  // commands are skipped.
  [[nodiscard]] size_t consumed() const noexcept { return consumed_; }

  // After kCommand. They point into the input and are good until that goes, but for those of an
  // inline line with quotes: these lie in the parser and go with the next Parse. The span itself
  // does so always.
  [[nodiscard]] std::span<const std::string_view> arguments() const noexcept { return arguments_; }
  [[nodiscard]] bool arguments_are_in_input() const noexcept { return unquoted_.empty(); }

  // After kError: "ERR Protocol error: …", as Redis words it, without the leading '-'.
  [[nodiscard]] std::string_view error() const noexcept { return error_; }

 private:
  // Where an argument lies in the command; addresses may change until it is whole.
  struct Piece {
    uint32_t offset;
    uint32_t size;
  };
  enum class Step : uint8_t { kDone, kMore, kEmpty, kError };

  Step ParseArray(std::string_view command);
  Step ParseInline(std::string_view command);
  Step SplitInline(std::string_view line);
  Step ReadNumber(std::string_view command, std::string_view too_long, std::string_view invalid,
                  int64_t& number);
  Step ReadInteger(std::string_view command);
  Step Fail(std::string_view message);
  Step FailUnexpected(char found);
  void Restart() noexcept;

  CommandLimits limits_;
  size_t consumed_ = 0;
  // Progress in a command that is not whole: offsets from its first byte.
  uint32_t position_ = 0;       // everything before is read
  uint32_t scanned_ = 0;        // no line end before here
  uint32_t args_expected_ = 0;  // 0: the array's head is not read yet
  int64_t bulk_size_ = -1;      // -1: the next bulk's head is not read yet
  std::vector<Piece> pieces_;
  std::vector<std::string_view> arguments_;
  std::string unquoted_;
  std::string error_;
};

}  // namespace weir::codec::resp
