// Any bytes as commands and as replies of the Redis protocol: no crash, the same whole and in
// pieces; a command written as an array of bulk strings reads back the same.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec/resp/command_parser.h"
#include "codec/resp/reply_parser.h"
#include "codec/resp/writer.h"
#include "fuzz/pieces.h"

namespace {

using namespace weir::codec::resp;  // NOLINT(google-build-using-namespace): all of it is used
using weir::fuzz::Require;

constexpr CommandLimits kLimits{.args_max = 16, .bulk_bytes_max = 64, .command_bytes_max = 256};
constexpr ReplyLimits kReplyLimits{
    .depth_max = 3, .bulk_bytes_max = 64, .line_bytes_max = 64, .replies_max = 64};

struct Outcome {
  std::vector<std::vector<std::string>> messages;
  std::string error;
  bool operator==(const Outcome&) const = default;
};

template <class NextSize>
Outcome ParseCommands(std::string_view input, NextSize next_size) {
  CommandParser parser(kLimits);
  Outcome outcome;
  std::string kept;
  for (size_t fed = 0; fed < input.size();) {
    const size_t size = std::min<size_t>(next_size(), input.size() - fed);
    kept = std::string(kept).append(input.substr(fed, size));
    fed += size;
    for (;;) {
      const ParseState state = parser.Parse(kept);
      if (state == ParseState::kError) {
        outcome.error = parser.error();
        Require(outcome.error.starts_with("ERR Protocol error: "));
        return outcome;
      }
      if (state == ParseState::kCommand) {
        Require(!parser.arguments().empty() && parser.arguments().size() <= kLimits.args_max);
        outcome.messages.emplace_back(parser.arguments().begin(), parser.arguments().end());
      }
      kept.erase(0, parser.consumed());
      if (state == ParseState::kMore) {
        Require(kept.size() < kLimits.command_bytes_max + 64);  // so that memory is bounded
        break;
      }
    }
  }
  return outcome;
}

void Flatten(const Reply& reply, std::vector<std::string>& into) {
  into.push_back(std::to_string(static_cast<int>(reply.type)) + ":" + std::string(reply.text));
  if (reply.is_aggregate()) {
    uint32_t count = 0;
    for (const Reply& element : reply.elements()) {
      Flatten(element, into);
      ++count;
    }
    Require(count == reply.size);
  }
}

template <class NextSize>
Outcome ParseReplies(std::string_view input, NextSize next_size) {
  ReplyParser parser(kReplyLimits);
  Outcome outcome;
  std::string kept;
  for (size_t fed = 0; fed < input.size();) {
    const size_t size = std::min<size_t>(next_size(), input.size() - fed);
    kept = std::string(kept).append(input.substr(fed, size));
    fed += size;
    for (;;) {
      const ReplyState state = parser.Parse(kept);
      if (state == ReplyState::kError) {
        outcome.error = parser.error();
        return outcome;
      }
      if (state == ReplyState::kMore) {
        break;
      }
      Require(parser.consumed() > 0);
      Flatten(parser.reply(), outcome.messages.emplace_back());
      Require(outcome.messages.back().size() <= kReplyLimits.replies_max + 1);
      kept.erase(0, parser.consumed());
    }
  }
  return outcome;
}

void WriteAndRead(const std::vector<std::string>& command) {
  weir::base::ByteBuffer out;
  Writer writer(out, Protocol::k3);
  writer.Array(command.size());
  for (const std::string& argument : command) {
    writer.Bulk(argument);
  }
  CommandParser parser;
  Require(parser.Parse(out.view()) == ParseState::kCommand && parser.consumed() == out.size());
  Require(std::vector<std::string>(parser.arguments().begin(), parser.arguments().end()) ==
          command);
  // An error that repeats what a client sent is one line all the same.
  out.Clear();
  writer.Error("ERR unknown command " + command.front());
  ReplyParser reply;
  Require(reply.Parse(out.view()) == ReplyState::kReply && reply.consumed() == out.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = weir::fuzz::Text(data, size);
  const auto all = [size] { return size; };
  const auto one = [] { return size_t{1}; };
  weir::fuzz::Pieces pieces(input);
  const auto some = [&] { return pieces.Next(); };

  const Outcome commands = ParseCommands(input, all);
  Require(ParseCommands(input, some) == commands);
  Require(ParseCommands(input, one) == commands);
  for (const auto& command : commands.messages) {
    WriteAndRead(command);
  }
  const Outcome replies = ParseReplies(input, all);
  Require(ParseReplies(input, some) == replies);
  Require(ParseReplies(input, one) == replies);
  return 0;
}
