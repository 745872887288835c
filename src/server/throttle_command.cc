#include "server/throttle_command.h"

#include <charconv>
#include <limits>

namespace weir::server {

namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kNsPerMs = 1'000'000;

// As Rust reads an i64: digits with a sign, and nothing around them.
bool ParseInteger(std::string_view text, int64_t& number) {
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') {
    text.remove_prefix(1);
  }
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  return problem == std::errc() && rest == end;
}

std::string Failure(ThrottleDialect dialect, std::string_view what) {
  return (dialect == ThrottleDialect::kRedisCell ? "Cell error: Store error: " : "ERR ") +
         std::string(what);
}

// Seconds are cut off, and one is added if whole milliseconds are left over.
int64_t RoundedSeconds(int64_t ns) {
  return ns / kNsPerSecond + static_cast<int64_t>(ns % kNsPerSecond >= kNsPerMs);
}

int64_t PlusOne(int64_t number) {
  return number == std::numeric_limits<int64_t>::max() ? number : number + 1;
}

}  // namespace

bool ThrottleCommand::Parse(ThrottleDialect spoken, std::span<const std::string_view> arguments,
                            std::string& error) {
  dialect = spoken;
  const bool cell = spoken == ThrottleDialect::kRedisCell;
  if (arguments.size() < 5 || arguments.size() > 6) {
    error = cell ? Failure(spoken,
                           "Usage: cl.throttle <key> <max_burst> <count per period> <period> "
                           "[<quantity>]")
                 : "ERR wrong number of arguments for 'throttle' command; expected THROTTLE key "
                   "max_burst count_per_period period [quantity]";
    return false;
  }
  key = arguments[1];
  int64_t numbers[4] = {0, 0, 0, 1};  // max_burst, count, period, quantity
  for (size_t i = 2; i < arguments.size(); ++i) {
    if (!ParseInteger(arguments[i], numbers[i - 2])) {
      error = Failure(spoken, "Couldn't parse as integer: " + std::string(arguments[i]));
      return false;
    }
  }
  const auto [max_burst, count, period, quantity] = numbers;
  if (!cell && (max_burst <= 0 || count <= 0 || period <= 0 || quantity < 0)) {
    error = Failure(spoken,
                    "max_burst, count_per_period and period must be above 0, and quantity not "
                    "below 0");
    return false;
  }
  __int128 interval = count == 0 ? 0 : static_cast<__int128>(period) * kNsPerSecond / count;
  if (!cell && interval == 0) {
    interval = 1;  // throttlecrab admits at any rate; ours goes up to a unit a nanosecond
  }
  // redis-cell has no rate faster than one unit in a nanosecond either.
  if (interval <= 0) {
    error = Failure(spoken, "Zero rates are not supported");
    return false;
  }
  constexpr auto kIntervalMax = std::numeric_limits<int64_t>::max();
  ask = {.burst = cell ? PlusOne(max_burst) : max_burst,
         .interval_ns = interval > kIntervalMax ? kIntervalMax : static_cast<int64_t>(interval),
         .quantity = quantity};
  return true;
}

ThrottleNumbers ToNumbers(ThrottleDialect dialect, const algorithm::ThrottleAsk& ask,
                          const algorithm::ThrottleAnswer& answer) noexcept {
  constexpr int64_t kNever = algorithm::ThrottleAnswer::kNever;
  if (dialect == ThrottleDialect::kRedisCell) {
    const int64_t retry = answer.retry_ns == kNever ? kNever : RoundedSeconds(answer.retry_ns);
    return {static_cast<int64_t>(!answer.allowed), ask.burst, answer.remaining, retry,
            RoundedSeconds(answer.reset_ns)};
  }
  const int64_t retry = answer.retry_ns == kNever ? 0 : answer.retry_ns / kNsPerSecond;
  return {static_cast<int64_t>(answer.allowed), ask.burst, answer.remaining,
          answer.reset_ns / kNsPerSecond, retry};
}

}  // namespace weir::server
