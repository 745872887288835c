#include "server/rls_http_session.h"

#include "envoy/rls_stats.h"
#include "server/http_requests.h"

namespace weir::server {

namespace {

using codec::http::AnswerContext;
using codec::http::Method;

constexpr std::string_view kPlain = "text/plain; charset=utf-8";
constexpr std::string_view kDebugHelp =
    "/rlconfig: print out the currently loaded configuration for debugging\n"
    "/stats: print out stats\n";

}  // namespace

net::Session::Progress RlsHttpSession::OnBytes(std::span<char> input, base::ByteBuffer& output) {
  const WallTime wall = SystemClock().WallNow();
  std::array<char, codec::http::kDateBytes> date{};
  AnswerContext answer{.date = codec::http::FormatDate(wall, date), .now = wall};
  return AnswerRequests(
      parser_, input, output, {},
      [&](const codec::http::Request& request) {
        answer.keep_alive = request.keep_alive && !draining_;
        answer.old_client = request.minor_version == 0;
        answer.head = request.method == Method::kHead;
        Answer(request, answer, output);
        return answer.keep_alive;
      },
      [&] {
        answer.keep_alive = false;
        codec::http::WriteError(output, parser_.status(), parser_.reason(), answer);
      });
}

void RlsHttpSession::Answer(const codec::http::Request& request, const AnswerContext& context,
                            base::ByteBuffer& output) {
  using Face = RlsHttpContext::Face;
  context_.body.clear();
  int status = 404;
  std::string_view type = kPlain;
  const std::string_view path = request.path;
  if (context_.face == Face::kPublic && path == "/json") {
    status = AnswerJson(request);
    type = status == 200 || status == 429 || status == 500 ? "application/json" : kPlain;
  } else if (context_.face == Face::kPublic && path == "/healthcheck") {
    status = AnswerHealth();
  } else if (context_.face == Face::kDebug && path == "/rlconfig") {
    status = 200;
    context_.body = context_.service.DumpConfig();
  } else if (context_.face == Face::kDebug && path == "/stats") {
    status = 200;
    context_.body = context_.service.stats().Text();
  } else if (context_.face == Face::kDebug && path == "/") {
    status = 200;
    context_.body = kDebugHelp;
  } else if (context_.face == Face::kMetrics && path == context_.metrics_path) {
    status = 200;
    type = "text/plain; version=0.0.4; charset=utf-8";
    context_.body = context_.service.stats().Prometheus();
  } else {
    context_.body = "404 page not found\n";
  }
  codec::http::WritePlain(output, {.status = status, .content_type = type, .body = context_.body},
                          context);
}

int RlsHttpSession::AnswerJson(const codec::http::Request& request) {
  if (!context_.reader.Read(request.body)) {
    context_.body = "Bad Request\n";
    return 400;
  }
  const Timestamp began = SystemClock().Now();
  context_.service.ShouldRateLimit(context_.reader.request(), context_.response);
  context_.service.stats().CountCall("json", SystemClock().Now() - began);
  const int status = envoy::HttpStatusOf(context_.response, context_.store_failure_is_503);
  if (context_.response.failure != envoy::Failure::kNone) {
    context_.body = status == 503 ? "Service Unavailable\n" : "Bad Request\n";
  } else {
    envoy::AppendJson(context_.body, context_.response);
  }
  return status;
}

int RlsHttpSession::AnswerHealth() {
  const bool healthy = context_.is_healthy();
  context_.body = healthy ? "OK" : "";
  return healthy ? 200 : 500;
}

}  // namespace weir::server
