// The HTTP side of envoyproxy/ratelimit: /json and /healthcheck for everybody, /rlconfig and /stats
// on the debug port, its Prometheus names on a port of their own.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "codec/http/answer.h"
#include "codec/http/request_parser.h"
#include "envoy/rls_json.h"
#include "envoy/rls_service.h"
#include "net/session.h"

namespace weir::server {

// What the connections of one loop and face share.
struct RlsHttpContext {
  enum class Face : uint8_t { kPublic, kDebug, kMetrics };

  envoy::RlsService& service;
  const Face face;
  const std::function<bool()> is_healthy;
  const std::string metrics_path;
  const bool store_failure_is_503;

  envoy::RlsJsonReader reader{};
  envoy::Response response{};
  std::string body{};  // of the answer
};

class RlsHttpSession final : public net::Session {
 public:
  explicit RlsHttpSession(RlsHttpContext& context) : context_(context) {}

  Progress OnBytes(std::span<char> input, base::ByteBuffer& output) override;
  void OnDrain() override { draining_ = true; }

 private:
  void Answer(const codec::http::Request& request, const codec::http::AnswerContext& context,
              base::ByteBuffer& output);
  // The status of the answer; its body is in the context.
  int AnswerJson(const codec::http::Request& request);
  int AnswerHealth();

  RlsHttpContext& context_;
  codec::http::RequestParser parser_;
  bool draining_ = false;
};

class RlsHttpFactory final : public net::SessionFactory {
 public:
  explicit RlsHttpFactory(std::unique_ptr<RlsHttpContext> context) : context_(std::move(context)) {}
  std::unique_ptr<net::Session> Open(const net::Peer& /*peer*/) override {
    return std::make_unique<RlsHttpSession>(*context_);
  }

 private:
  const std::unique_ptr<RlsHttpContext> context_;
};

}  // namespace weir::server
