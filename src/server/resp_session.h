// The Redis protocol: what stock clients say to connect, CL.THROTTLE, and weir's own commands.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/pool.h"
#include "codec/resp/command_parser.h"
#include "codec/resp/writer.h"
#include "net/session.h"
#include "server/check_service.h"
#include "server/denial_log.h"
#include "server/front_counters.h"
#include "server/rule_commands.h"
#include "server/throttle_command.h"

namespace weir::server {

struct RespOptions {
  std::string password;  // empty: nobody is asked for one
};

// What all connections of a loop share.
struct RespContext {
  CheckService& service;
  const RespOptions& options;
  FrontCounters counters;
  base::Pool<RuleReply> replies;
  DenialLog denials;
};

class RespSession final : public net::Session {
 public:
  RespSession(RespContext& context, const net::Peer& peer);

  Progress OnBytes(std::span<char> input, base::ByteBuffer& output) override;
  void OnDrain() override { draining_ = true; }

 private:
  using Arguments = std::span<const std::string_view>;
  using Writer = codec::resp::Writer;

  // Throttle commands are collected, so that the memory of later keys is fetched while earlier ones
  // are decided; anything else decides those first, so that answers keep their order.
  struct Waiting {
    ThrottleLimiter::Hashed key;
    ThrottleDialect dialect = ThrottleDialect::kRedisCell;
    algorithm::ThrottleAsk ask;
    // With a shared store: the key's text, and the rate.
    std::string_view text;
    const SharedQuota* rate = nullptr;
  };
  static constexpr size_t kWaitingMax = SharedThrottle::kQuestionsMax;

  // Checks that a shared store decides are collected too, and asked together.
  struct Question {
    std::vector<std::string_view> arguments;
    base::ByteBuffer answer;
  };
  static constexpr size_t kQuestionsMax = 32;

  void Execute(Arguments arguments, Deciders& deciders, base::ByteBuffer& output);
  void DecideWaiting(Deciders& deciders, base::ByteBuffer& output);
  void DecideShared(SharedThrottle& throttle, base::ByteBuffer& output);
  void AskTogether(Deciders& deciders, base::ByteBuffer& output);
  bool Throttle(ThrottleDialect dialect, Arguments arguments, Deciders& deciders,
                base::ByteBuffer& output);
  // As over HTTP: who asks from this machine, or has shown the password.
  [[nodiscard]] bool MayAdminister() const noexcept {
    return local_ || !context_.options.password.empty();
  }
  // The others, by name in lower case. False: none of ours.
  bool Converse(std::string_view name, Arguments arguments, Deciders& deciders, Writer& writer);

  void Hello(Arguments arguments, Writer& writer);
  void Auth(Arguments arguments, Writer& writer);
  bool Authenticate(std::string_view user, std::string_view password, Writer& writer);
  void Client(Arguments arguments, Writer& writer);
  void Config(Arguments arguments, Writer& writer);
  void Command(Arguments arguments, Writer& writer);
  void Info(Deciders& deciders, Writer& writer);
  void Delete(Arguments arguments, Deciders& deciders, Writer& writer);
  void WrongArity(std::string_view name, Writer& writer);
  void Fail(std::string_view error, Writer& writer);

  RespContext& context_;
  codec::resp::CommandParser parser_;
  codec::resp::Protocol protocol_ = codec::resp::Protocol::k2;
  std::string name_;              // what the client calls itself
  const std::string tls_client_;  // what its certificate calls it; empty: it showed none
  const uint64_t id_;
  const bool local_;  // it asks from this machine
  std::array<Waiting, kWaitingMax> waiting_;
  size_t waiting_count_ = 0;
  std::vector<Question>
      questions_;  // the first question_count_ of them wait; no throttle does then
  size_t question_count_ = 0;
  bool authenticated_;
  bool closing_ = false;
  bool draining_ = false;
};

class RespFactory final : public net::SessionFactory {
 public:
  explicit RespFactory(RespContext& context) : context_(context) {}
  std::unique_ptr<net::Session> Open(const net::Peer& peer) override {
    return std::make_unique<RespSession>(context_, peer);
  }

 private:
  RespContext& context_;
};

}  // namespace weir::server
