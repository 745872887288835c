#include "server/http_session.h"

#include <string_view>

#include "codec/http/answer.h"
#include "codec/http/proxy_protocol.h"
#include "server/http_endpoints.h"
#include "server/http_requests.h"

namespace weir::server {

namespace {

using codec::http::AnswerContext;

// A unix socket has no address; what comes from it is as near as the machine itself.
base::IpAddress AddressOf(const net::Peer& peer) {
  constexpr std::string_view kLoopback = "127.0.0.1";
  return base::IpAddress::Parse(peer.address.empty() ? kLoopback : peer.address)
      .value_or(base::IpAddress{});
}

}  // namespace

HttpSession::HttpSession(HttpContext& context, const net::Peer& peer)
    : context_(context),
      peer_{AddressOf(peer), peer.identity},
      proxy_header_expected_(context.options.proxy_protocol &&
                             context.face == HttpContext::Face::kPublic) {}

bool HttpSession::ReadProxyHeader(std::span<char>& input, Progress& progress) {
  const codec::http::ProxyHeader header =
      codec::http::ParseProxyHeader({input.data(), input.size()});
  if (header.state == codec::http::ProxyState::kMore) {
    progress = {0, input.empty() ? Next::kIdle : Next::kMessage};
    return false;
  }
  if (header.state == codec::http::ProxyState::kError ||
      (header.has_address && !context_.options.client.IsTrusted(peer_.address))) {
    LatencyCounters::Bump(context_.counters.protocol_errors, 1);
    progress = {input.size(), Next::kClose};
    return false;
  }
  if (header.has_address) {
    peer_.address = header.source;
  }
  proxy_header_expected_ = false;
  input = input.subspan(header.consumed);
  progress.consumed = header.consumed;
  return true;
}

net::Session::Progress HttpSession::OnBytes(std::span<char> input, base::ByteBuffer& output) {
  Progress progress;
  if (proxy_header_expected_ && !ReadProxyHeader(input, progress)) {
    return progress;
  }
  Deciders& deciders = context_.service.deciders();
  const HttpContext::Instant instant = context_.Now();
  ReadTimer timer(context_.counters, context_.service.OnMachine(instant.now));
  return AnswerRequests(
      parser_, input, output, progress,
      [&](const codec::http::Request& request) {
        const bool keep_alive = request.keep_alive && !draining_;
        HttpEndpoints(context_, deciders, instant, peer_, keep_alive, output).Answer(request);
        timer.CountAnswer();
        return keep_alive;
      },
      [&] {
        LatencyCounters::Bump(context_.counters.protocol_errors, 1);
        AnswerContext last{.date = instant.date, .now = instant.wall};
        last.keep_alive = false;
        codec::http::WriteError(output, parser_.status(), parser_.reason(), last);
      });
}

void HttpSession::OnTimeout(base::ByteBuffer& output) {
  const HttpContext::Instant instant = context_.Now();
  AnswerContext last{.date = instant.date, .now = instant.wall};
  last.keep_alive = false;
  codec::http::WriteError(output, 408, "the rest of the request did not come in time", last);
}

}  // namespace weir::server
