// weir's own commands of the Redis protocol: questions to the rules.
//
//   WEIR.CHECK [COST n] attribute value [attribute value …]
//   WEIR.PEEK, WEIR.USAGE, WEIR.EXPLAIN likewise; they charge nothing
//   WEIR.RESET [RULE name] attribute value …         what they are counted by starts anew
//   WEIR.HOLD [COST n] [TTL ms] attribute value …    a token, for what is in use or known later
//   WEIR.SETTLE token n, WEIR.RELEASE token, WEIR.RENEW token
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "weir/rules.h"

#include "codec/resp/writer.h"
#include "server/check_service.h"

namespace weir::server {

class RuleCommands {
 public:
  RuleCommands(Deciders& deciders, const CheckService& service, RuleReply& reply,
               codec::resp::Writer& writer)
      : deciders_(deciders),
        now_(service.Now()),
        wall_(service.WallNow()),
        reply_(reply),
        writer_(writer) {}

  // `name` in lower case. False: the reply is an error.
  bool Run(std::string_view name, std::span<const std::string_view> arguments);

 private:
  bool ParseRequest(std::span<const std::string_view> arguments);
  bool Check(ChargeMode mode);
  bool Usage();
  bool Reset();
  bool HoldOn();
  bool Settle(std::string_view token, std::string_view actual);
  bool Renew(std::string_view token);
  void WriteReply(std::string_view token);
  bool Explain();
  bool Fail(std::string_view error);
  void WriteMs(std::string_view name, Duration duration);

  Deciders& deciders_;
  const Timestamp now_;
  const WallTime wall_;
  RuleReply& reply_;
  codec::resp::Writer& writer_;
  std::array<Attribute, kMaxAttributes> attributes_;
  RuleRequest request_;
  std::string_view rule_;  // empty: all
  Duration lasts_ = ReservationBook::kLastsDefault;
};

}  // namespace weir::server
