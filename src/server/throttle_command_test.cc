#include "server/throttle_command.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::server {
namespace {

using algorithm::ThrottleAnswer;
using Words = std::vector<std::string_view>;

std::string ErrorOf(ThrottleDialect dialect, const Words& words) {
  ThrottleCommand command;
  std::string error;
  EXPECT_FALSE(command.Parse(dialect, words, error));
  return error;
}

TEST(ThrottleCommand, CountsRedisCellsBurstFromZero) {
  ThrottleCommand command;
  std::string error;
  ASSERT_TRUE(command.Parse(ThrottleDialect::kRedisCell,
                            Words{"cl.throttle", "k", "15", "30", "60"}, error));
  EXPECT_EQ(command.key, "k");
  EXPECT_EQ(command.ask.burst, 16);
  EXPECT_EQ(command.ask.interval_ns, 2'000'000'000);
  EXPECT_EQ(command.ask.quantity, 1);
}

TEST(ThrottleCommand, CountsThrottlecrabsBurstAsItIs) {
  ThrottleCommand command;
  std::string error;
  ASSERT_TRUE(command.Parse(ThrottleDialect::kThrottlecrab,
                            Words{"throttle", "k", "15", "30", "60", "0"}, error));
  EXPECT_EQ(command.ask.burst, 15);
  EXPECT_EQ(command.ask.quantity, 0);
}

TEST(ThrottleCommand, FailsWithTheWordsOfRedisCell) {
  const std::string usage =
      "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> "
      "[<quantity>]";
  const auto cell = ThrottleDialect::kRedisCell;
  EXPECT_EQ(ErrorOf(cell, {"cl.throttle"}), usage);
  EXPECT_EQ(ErrorOf(cell, {"cl.throttle", "k", "1", "1", "1", "1", "1"}), usage);
  EXPECT_EQ(ErrorOf(cell, {"cl.throttle", "k", "x", "y", "1"}),
            "Cell error: Store error: Couldn't parse as integer: x");
  EXPECT_EQ(ErrorOf(cell, {"cl.throttle", "k", "", "1", "1"}),
            "Cell error: Store error: Couldn't parse as integer: ");
  for (const std::string_view bad :
       {" 1", "1 ", "1.5", "++1", "+-1", "9223372036854775808", "0x1"}) {
    EXPECT_EQ(ErrorOf(cell, {"cl.throttle", "k", "1", "1", "1", bad}),
              "Cell error: Store error: Couldn't parse as integer: " + std::string(bad));
  }
}

TEST(ThrottleCommand, HasNoRateOfZero) {
  const auto cell = ThrottleDialect::kRedisCell;
  for (const Words& words :
       {Words{"cl.throttle", "k", "1", "0", "1"}, Words{"cl.throttle", "k", "1", "1", "0"},
        Words{"cl.throttle", "k", "1", "-1", "1"}, Words{"cl.throttle", "k", "1", "1", "-1"},
        Words{"cl.throttle", "k", "1", "9223372036854775807", "1"}}) {
    EXPECT_EQ(ErrorOf(cell, words), "Cell error: Store error: Zero rates are not supported");
  }
}

TEST(ThrottleCommand, TakesThrottlecrabsRatesAboveOneInANanosecond) {
  ThrottleCommand command;
  std::string error;
  for (const std::string_view count : {"60000000001", "9223372036854775", "9223372036854775807"}) {
    ASSERT_TRUE(command.Parse(ThrottleDialect::kThrottlecrab,
                              Words{"throttle", "k", "10", count, "60"}, error))
        << error;
    EXPECT_EQ(command.ask.interval_ns, 1);
    uint64_t debt_ns = 0;
    ThrottleAnswer answer;
    EXPECT_TRUE(algorithm::Throttle::Apply(command.ask, debt_ns, answer));
    EXPECT_EQ(ToNumbers(ThrottleDialect::kThrottlecrab, command.ask, answer),
              (ThrottleNumbers{1, 10, 9, 0, 0}));
  }
}

TEST(ThrottleCommand, TakesTheLargestNumbers) {
  ThrottleCommand command;
  std::string error;
  const std::string_view most = "9223372036854775807";
  const std::string_view least = "-9223372036854775808";
  EXPECT_TRUE(command.Parse(ThrottleDialect::kRedisCell,
                            Words{"cl.throttle", "k", most, most, most, most}, error));
  EXPECT_TRUE(command.Parse(ThrottleDialect::kRedisCell,
                            Words{"cl.throttle", "k", least, "1", most, least}, error));
}

// Seconds are cut, and one is added if whole milliseconds are left; the rest is dropped.
TEST(ThrottleCommand, RoundsAsRedisCellDoes) {
  const algorithm::ThrottleAsk ask{.burst = 5, .interval_ns = 1'000'000'000, .quantity = 1};
  const auto reset = [&](int64_t ns) {
    return ToNumbers(ThrottleDialect::kRedisCell, ask,
                     {.allowed = true, .remaining = 1, .retry_ns = -1, .reset_ns = ns})[4];
  };
  EXPECT_EQ(reset(0), 0);
  EXPECT_EQ(reset(999'999), 0);
  EXPECT_EQ(reset(1'000'000), 1);
  EXPECT_EQ(reset(1'000'000'000), 1);
  EXPECT_EQ(reset(1'000'999'999), 1);
  EXPECT_EQ(reset(1'001'000'000), 2);
}

TEST(ThrottleCommand, DialectsDifferInPolarityAndOrder) {
  const algorithm::ThrottleAsk ask{.burst = 5, .interval_ns = 1'000'000'000, .quantity = 1};
  const ThrottleAnswer denied{
      .allowed = false, .remaining = 0, .retry_ns = 1'500'000'000, .reset_ns = 5'500'000'000};
  EXPECT_EQ(ToNumbers(ThrottleDialect::kRedisCell, ask, denied), (ThrottleNumbers{1, 5, 0, 2, 6}));
  EXPECT_EQ(ToNumbers(ThrottleDialect::kThrottlecrab, ask, denied),
            (ThrottleNumbers{0, 5, 0, 5, 1}));
}

}  // namespace
}  // namespace weir::server
