#include "codec/resp/command_parser.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir::codec::resp {
namespace {

using Command = std::vector<std::string>;

struct Outcome {
  std::vector<Command> commands;
  std::string error;  // empty: the input was used up, or its end is not whole
  size_t left = 0;    // bytes of a command that is not whole

  bool operator==(const Outcome&) const = default;
};

// As a connection does it: reads `first` bytes, parses, reads the rest at another address.
class Session {
 public:
  explicit Session(const CommandLimits& limits = {}) : parser_(limits) {}

  void Feed(std::string_view bytes) {
    if (!outcome_.error.empty()) {
      return;
    }
    std::string moved = kept_;
    moved += bytes;
    std::string_view input = moved;
    for (;;) {
      const ParseState state = parser_.Parse(input);
      if (state == ParseState::kCommand) {
        outcome_.commands.emplace_back(parser_.arguments().begin(), parser_.arguments().end());
      }
      if (state == ParseState::kError) {
        outcome_.error = parser_.error();
        break;
      }
      input.remove_prefix(parser_.consumed());
      if (state == ParseState::kMore) {
        break;
      }
    }
    kept_ = input;
    outcome_.left = outcome_.error.empty() ? kept_.size() : 0;
  }

  [[nodiscard]] const Outcome& outcome() const { return outcome_; }

 private:
  CommandParser parser_;
  std::string kept_;
  Outcome outcome_;
};

// Whole, split in two at every byte, and byte by byte: always the same.
Outcome Parse(std::string_view input, const CommandLimits& limits = {}) {
  Session whole(limits);
  whole.Feed(input);
  Session bytewise(limits);
  for (size_t i = 0; i < input.size(); ++i) {
    Session halves(limits);
    halves.Feed(input.substr(0, i));
    halves.Feed(input.substr(i));
    EXPECT_EQ(halves.outcome(), whole.outcome()) << "split at " << i << " of " << input;
    bytewise.Feed(input.substr(i, 1));
  }
  EXPECT_EQ(bytewise.outcome(), whole.outcome()) << "byte by byte: " << input;
  return whole.outcome();
}

std::string Bulk(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

std::string ErrorOf(std::string_view input, const CommandLimits& limits = {}) {
  return Parse(input, limits).error;
}

TEST(CommandParser, ReadsArraysOfBulkStrings) {
  const Outcome outcome = Parse("*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n*1\r\n$4\r\nPING\r\n");
  EXPECT_EQ(outcome.commands, (std::vector<Command>{{"ECHO", "hello"}, {"PING"}}));
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.left, 0U);
}

TEST(CommandParser, TakesAnyByteInABulk) {
  using namespace std::string_view_literals;
  const Outcome outcome = Parse("*2\r\n$3\r\n\r\n*\r\n$0\r\n\r\n"sv);
  EXPECT_EQ(outcome.commands, (std::vector<Command>{{"\r\n*", ""}}));
}

TEST(CommandParser, KeepsWhatIsNotWholeForLater) {
  const Outcome outcome = Parse("*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nEC");
  EXPECT_EQ(outcome.commands, std::vector<Command>{{"PING"}});
  EXPECT_EQ(outcome.left, std::string_view("*2\r\n$4\r\nEC").size());
}

TEST(CommandParser, SkipsEmptyCommandsAsRedisDoes) {
  const Outcome outcome = Parse("*0\r\n*-1\r\n\r\n  \r\nPING\r\n\n");
  EXPECT_EQ(outcome.commands, std::vector<Command>{{"PING"}});
  EXPECT_EQ(outcome.left, 0U);
}

TEST(CommandParser, ReadsInlineLines) {
  EXPECT_EQ(Parse("PING\r\n").commands, std::vector<Command>{{"PING"}});
  EXPECT_EQ(Parse(" CL.THROTTLE  k 15 30\t60\n").commands,
            (std::vector<Command>{{"CL.THROTTLE", "k", "15", "30", "60"}}));
}

TEST(CommandParser, UnquotesInlineWordsAsRedisDoes) {
  EXPECT_EQ(Parse("ECHO \"a b\\n\\x41\\\"\\q\" 'it\\'s \\n' \"\"\r\n").commands,
            (std::vector<Command>{{"ECHO", "a b\nA\"q", "it's \\n", ""}}));
  EXPECT_EQ(Parse("ECHO \"\\xZZ\"\r\n").commands, (std::vector<Command>{{"ECHO", "xZZ"}}));
  for (const char* line : {"ECHO \"open\r\n", "ECHO 'open\r\n", "ECHO \"a\"b\r\n"}) {
    EXPECT_EQ(ErrorOf(line), "ERR Protocol error: unbalanced quotes in request") << line;
  }
}

// throttlecrab's clients send numbers so, and its server takes them.
TEST(CommandParser, TakesIntegersForArguments) {
  EXPECT_EQ(Parse("*4\r\n$8\r\nTHROTTLE\r\n:10\r\n:-5\r\n$1\r\nx\r\nPING\r\n").commands,
            (std::vector<Command>{{"THROTTLE", "10", "-5", "x"}, {"PING"}}));
  EXPECT_EQ(Parse("*1\r\n:9223372036854775807\r\n").commands,
            (std::vector<Command>{{"9223372036854775807"}}));
}

TEST(CommandParser, SaysWhichArgumentsGoWithTheNextCommand) {
  CommandParser parser;
  for (const auto& [line, stays] :
       {std::pair("PING a b\r\n", true), std::pair("PING \"a\" b\r\n", false),
        std::pair("*1\r\n$4\r\nPING\r\n", true)}) {
    const std::string_view input = line;
    ASSERT_EQ(parser.Parse(input), ParseState::kCommand);
    EXPECT_EQ(parser.arguments_are_in_input(), stays) << line;
    if (stays) {
      for (const std::string_view argument : parser.arguments()) {
        EXPECT_GE(argument.data(), input.data());
        EXPECT_LE(argument.data() + argument.size(), input.data() + input.size());
      }
    }
  }
}

TEST(CommandParser, RefusesBadFramesInTheWordsOfRedis) {
  const struct {
    std::string_view input;
    std::string_view error;
  } cases[] = {
      {"*2147483647\r\n", "invalid multibulk length"},
      {"*1025\r\n", "invalid multibulk length"},
      {"*x\r\n", "invalid multibulk length"},
      {"*\r\n", "invalid multibulk length"},
      {"*+1\r\n", "invalid multibulk length"},
      {"*01\r\n", "invalid multibulk length"},
      {"*1\rx", "invalid multibulk length"},
      {"*1\n", "invalid multibulk length"},
      {"*99999999999999999999\r\n", "invalid multibulk length"},
      {"*1\r\n:\r\n", "invalid integer"},
      {"*1\r\n:-\r\n", "invalid integer"},
      {"*1\r\n:1x\r\n", "invalid integer"},
      {"*1\r\n:1\n\r\n", "invalid integer"},
      {"*1\r\n:12345678901234567890123456789012345\r\n", "too big integer"},
      {"*1\r\n*1\r\n", "expected '$', got '*'"},
      {"*1\r\n\r\n", "expected '$', got '\\x0d'"},
      {"*1\r\n$-5\r\n", "invalid bulk length"},
      {"*1\r\n$-1\r\n", "invalid bulk length"},
      {"*1\r\n$-0\r\n", "invalid bulk length"},
      {"*1\r\n$\r\n", "invalid bulk length"},
      {"*1\r\n$65537\r\n", "invalid bulk length"},
      {"*1\r\n$4\r\nPINGxx", "expected CRLF after a bulk of the announced length"},
      {"POST / HTTP/1.1\r\n", "this port speaks the Redis protocol, not HTTP"},
      {"Host: example.com\r\n", "this port speaks the Redis protocol, not HTTP"},
  };
  for (const auto& [input, error] : cases) {
    EXPECT_EQ(ErrorOf(input), "ERR Protocol error: " + std::string(error)) << input;
  }
}

TEST(CommandParser, GivesCommandsBeforeTheBadOneFirst) {
  const Outcome outcome = Parse("PING\r\n*1\r\n$-5\r\n");
  EXPECT_EQ(outcome.commands, std::vector<Command>{{"PING"}});
  EXPECT_EQ(outcome.error, "ERR Protocol error: invalid bulk length");
}

TEST(CommandParser, HoldsTheLimitsToTheByte) {
  const CommandLimits limits{.args_max = 3, .bulk_bytes_max = 8, .command_bytes_max = 40};
  EXPECT_EQ(Parse("*1\r\n$8\r\n12345678\r\n", limits).commands.size(), 1U);
  EXPECT_EQ(ErrorOf("*1\r\n$9\r\n123456789\r\n", limits),
            "ERR Protocol error: invalid bulk length");
  EXPECT_EQ(ErrorOf("*4\r\n", limits), "ERR Protocol error: invalid multibulk length");
  const std::string fits = "*3\r\n" + Bulk("12345678") + Bulk("12345678") + Bulk("12");
  ASSERT_EQ(fits.size(), 40U);
  EXPECT_EQ(Parse(fits, limits).commands.size(), 1U);
  EXPECT_EQ(ErrorOf("*3\r\n" + Bulk("12345678") + Bulk("12345678") + Bulk("123"), limits),
            "ERR Protocol error: too big command");
  EXPECT_EQ(Parse("12345678\n", limits).commands.size(), 1U);
  EXPECT_EQ(ErrorOf("123456789\n", limits), "ERR Protocol error: too big inline request");
  EXPECT_EQ(ErrorOf("123456789", limits), "ERR Protocol error: too big inline request");
  EXPECT_EQ(ErrorOf("a b c d\n", limits),
            "ERR Protocol error: too many arguments in an inline request");
}

TEST(CommandParser, GivesLittleMemoryToWhoHasNotAuthenticated) {
  const CommandLimits limits = CommandLimits::Unauthenticated();
  EXPECT_EQ(ErrorOf("*11\r\n", limits), "ERR Protocol error: unauthenticated multibulk length");
  EXPECT_EQ(ErrorOf("*1\r\n$16385\r\n", limits), "ERR Protocol error: unauthenticated bulk length");
  Session session(limits);
  session.Feed("*3\r\n" + Bulk(std::string(8000, 'x')) + Bulk(std::string(8000, 'x')) +
               "$8000\r\n");
  EXPECT_EQ(session.outcome().error, "ERR Protocol error: too big command");
}

TEST(CommandParser, TakesTheLargestArgumentByteByByteInLinearTime) {
  const std::string text(64 << 10, 'x');
  const std::string input = "*1\r\n" + Bulk(text);
  CommandParser parser;
  for (size_t size = 0; size < input.size(); ++size) {
    ASSERT_EQ(parser.Parse({input.data(), size}), ParseState::kMore);
    ASSERT_EQ(parser.consumed(), 0U);
  }
  ASSERT_EQ(parser.Parse(input), ParseState::kCommand);
  ASSERT_EQ(parser.arguments().size(), 1U);
  EXPECT_EQ(parser.arguments()[0], text);
  EXPECT_EQ(parser.arguments()[0].data(), input.data() + input.size() - text.size() - 2);
}

TEST(CommandParser, RaisesItsLimitsBetweenCommands) {
  CommandParser parser(CommandLimits::Unauthenticated());
  const std::string input = "*1\r\n" + Bulk(std::string(20'000, 'x'));
  ASSERT_EQ(parser.Parse("PING\r\n"), ParseState::kCommand);
  parser.set_limits({});
  EXPECT_EQ(parser.Parse(input), ParseState::kCommand);
}

}  // namespace
}  // namespace weir::codec::resp
