// CL.THROTTLE as redis-cell has it, and throttlecrab's THROTTLE: arguments to a question, an answer
// to numbers. They look alike and differ in what a burst is, in polarity and in order.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "algorithm/throttle.h"

namespace weir::server {

enum class ThrottleDialect : uint8_t { kRedisCell, kThrottlecrab };

struct ThrottleCommand {
  ThrottleDialect dialect = ThrottleDialect::kRedisCell;
  std::string_view key;
  algorithm::ThrottleAsk ask;

  // `arguments` with the command's name. False: `error` is what to reply, as the original words it.
  [[nodiscard]] bool Parse(ThrottleDialect spoken, std::span<const std::string_view> arguments,
                           std::string& error);
};

using ThrottleNumbers = std::array<int64_t, 5>;

[[nodiscard]] ThrottleNumbers ToNumbers(ThrottleDialect dialect, const algorithm::ThrottleAsk& ask,
                                        const algorithm::ThrottleAnswer& answer) noexcept;

}  // namespace weir::server
