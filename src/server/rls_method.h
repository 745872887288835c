// Envoy's question over gRPC: envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>

#include "codec/grpc/method.h"
#include "envoy/rls_service.h"
#include "envoy/rls_types.h"

namespace envoy::service::ratelimit::v3 {
class RateLimitRequest;
}

namespace weir::server {

// For one loop: messages and buffers are used again from call to call.
class RlsMethod final : public codec::grpc::Method {
 public:
  explicit RlsMethod(envoy::RlsService& service);
  ~RlsMethod() override;

  codec::grpc::Status OnMessage(codec::grpc::Call& call, std::string_view message) override;

 private:
  void Answer(codec::grpc::Call& call);

  envoy::RlsService& service_;
  // Cleared and not made anew: its strings and lists keep their memory.
  std::unique_ptr<::envoy::service::ratelimit::v3::RateLimitRequest> request_;
  envoy::RequestBuffer asked_;
  envoy::Response response_;
  // Where the messages of an answer live; larger answers take more from the system.
  static constexpr size_t kArenaBytes = size_t{32} << 10;
  alignas(16) std::array<char, kArenaBytes> arena_block_;
};

}  // namespace weir::server
