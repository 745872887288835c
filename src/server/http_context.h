// What the HTTP connections of one loop share: options, counters, and memory that is used again and
// again.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "weir/rules.h"

#include "base/byte_buffer.h"
#include "base/ip_address.h"
#include "base/pool.h"
#include "codec/http/answer.h"
#include "server/check_service.h"
#include "server/denial_log.h"
#include "server/front_counters.h"
#include "server/front_options.h"
#include "server/http_desk.h"

namespace weir::server {

// Who asks, as far as the connection tells.
struct HttpPeer {
  base::IpAddress address;
  std::string tls_client;  // the identity of its certificate; empty: it showed none
};

class HttpContext {
 public:
  enum class Face : uint8_t {
    kPublic,
    kAdmin,  // a listener for operators: all endpoints
  };

  HttpContext(CheckService& checks, const FrontOptions& front, Face own_face)
      : service(checks), options(front), face(own_face) {}

  CheckService& service;
  const FrontOptions& options;
  const Face face;

  FrontCounters counters;
  DenialLog denials;
  base::Pool<HttpDesk> desks;

  // The instant that all requests of one read are decided at.
  struct Instant {
    Timestamp now;
    WallTime wall;
    std::string_view date;
  };
  [[nodiscard]] Instant Now();

  // The pieces of answers for the rules that a pin holds; made anew when those have changed. Who
  // waits between two uses keeps a share.
  [[nodiscard]] const std::shared_ptr<codec::http::AnswerWriter>& AnswersFor(
      const RuleLimiter::Pin& pin);

  // Up to a tenth of what has to be waited for, so that not all come back at once.
  [[nodiscard]] Duration Jitter(Duration retry_after) noexcept;

 private:
  std::array<char, codec::http::kDateBytes> date_{};
  std::chrono::sys_seconds date_second_{};
  Timestamp followed_at_{};
  WallTime followed_wall_{};
  std::shared_ptr<const RuleSet> answered_for_;
  std::shared_ptr<codec::http::AnswerWriter> answers_;
  uint64_t random_ = 0x9e3779b97f4a7c15;
};

}  // namespace weir::server
