// Any bytes as commands and as replies of the Redis protocol: no crash, the same whole and in
// pieces; a command written as an array of bulk strings reads back the same.
#include <cstdint>
#include <optional>
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
  weir::fuzz::Feed(input, next_size, [&](std::string_view kept) -> std::optional<size_t> {
    std::string_view rest = kept;
    for (;;) {
      const ParseState state = parser.Parse(rest);
      if (state == ParseState::kError) {
        outcome.error = parser.error();
        Require(outcome.error.starts_with("ERR Protocol error: "));
        return std::nullopt;
      }
      if (state == ParseState::kCommand) {
        Require(!parser.arguments().empty() && parser.arguments().size() <= kLimits.args_max);
        outcome.messages.emplace_back(parser.arguments().begin(), parser.arguments().end());
      }
      rest.remove_prefix(parser.consumed());
      if (state == ParseState::kMore) {
        Require(rest.size() < kLimits.command_bytes_max + 64);  // so that memory is bounded
        return kept.size() - rest.size();
      }
    }
  });
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
  weir::fuzz::Feed(input, next_size, [&](std::string_view kept) -> std::optional<size_t> {
    std::string_view rest = kept;
    for (;;) {
      const ReplyState state = parser.Parse(rest);
      if (state == ReplyState::kError) {
        outcome.error = parser.error();
        return std::nullopt;
      }
      if (state == ReplyState::kMore) {
        return kept.size() - rest.size();
      }
      Require(parser.consumed() > 0);
      Flatten(parser.reply(), outcome.messages.emplace_back());
      Require(outcome.messages.back().size() <= kReplyLimits.replies_max + 1);
      rest.remove_prefix(parser.consumed());
    }
  });
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
  const Outcome commands = weir::fuzz::SameInPieces(
      input, [input](auto next_size) { return ParseCommands(input, next_size); });
  for (const auto& command : commands.messages) {
    WriteAndRead(command);
  }
  (void)weir::fuzz::SameInPieces(
      input, [input](auto next_size) { return ParseReplies(input, next_size); });
  return 0;
}
