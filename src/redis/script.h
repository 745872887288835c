// A Lua script as Redis knows it: by the SHA-1 of its text.
#pragma once

#include <array>
#include <string_view>

namespace weir::redis {

// Made once and kept for as long as the program runs; calls point at it.
class Script {
 public:
  // REQUIRES: both live as long as the script.
  Script(std::string_view name, std::string_view text);

  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  [[nodiscard]] std::string_view text() const noexcept { return text_; }
  [[nodiscard]] std::string_view sha1() const noexcept { return {sha1_.data(), sha1_.size()}; }

 private:
  std::string_view name_;
  std::string_view text_;
  std::array<char, 40> sha1_;  // in hexadecimal, as EVALSHA takes it
};

}  // namespace weir::redis
