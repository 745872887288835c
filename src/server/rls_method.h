// Envoy's question over gRPC: envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit.
#pragma once

#include <string>
#include <string_view>

#include "codec/grpc/method.h"
#include "envoy/rls_service.h"
#include "envoy/rls_types.h"

namespace weir::server {

// For one loop: buffers are used again from call to call.
class RlsMethod final : public codec::grpc::Method {
 public:
  explicit RlsMethod(envoy::RlsService& service);

  codec::grpc::Status OnMessage(codec::grpc::Call& call, std::string_view message) override;

 private:
  envoy::RlsService& service_;
  envoy::RequestBuffer asked_;
  envoy::Response response_;
  std::string answer_;
};

}  // namespace weir::server
