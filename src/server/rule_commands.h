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
#include "server/denial_log.h"

namespace weir::server {

class RuleCommands {
 public:
  // `tls_client`: who asks, by its certificate; empty: it showed none.
  RuleCommands(Deciders& deciders, const CheckService& service, std::string_view tls_client,
               RuleReply& reply, DenialLog& denials, codec::resp::Writer& writer)
      : deciders_(deciders),
        tls_client_(tls_client),
        now_(service.Now()),
        wall_(service.WallNow()),
        reply_(reply),
        denials_(denials),
        writer_(writer) {}

  // `name` in lower case. False: the reply is an error.
  bool Run(std::string_view name, std::span<const std::string_view> arguments);

 private:
  // `about_others`: the question names its client itself.
  bool ParseRequest(std::span<const std::string_view> arguments, bool about_others);
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
  const std::string_view tls_client_;
  const Timestamp now_;
  const WallTime wall_;
  RuleReply& reply_;
  DenialLog& denials_;
  codec::resp::Writer& writer_;
  std::array<Attribute, kMaxAttributes + 1> attributes_;  // what is sent, and who it is that sends
  RuleRequest request_;
  std::string_view rule_;  // empty: all
  Duration lasts_ = ReservationBook::kLastsDefault;
};

}  // namespace weir::server
