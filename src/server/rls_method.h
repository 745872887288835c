// Envoy's question over gRPC: envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "weir/time.h"

#include "base/pool.h"
#include "codec/grpc/method.h"
#include "envoy/rls_service.h"
#include "envoy/rls_types.h"
#include "net/fiber.h"

namespace weir::server {

// How calls wait for a store that others share: each in a fiber.
struct RlsWaiting {
  net::Fibers* fibers = nullptr;
  // Told of each call that was answered, after how long, and whether well.
  std::function<void(Duration took, bool good)> answered;
};

// For one loop: buffers are used again from call to call.
class RlsMethod final : public codec::grpc::Method {
 public:
  explicit RlsMethod(envoy::RlsService& service);
  // For a service that counts in a shared store.
  RlsMethod(envoy::RlsService& service, RlsWaiting waiting);

  codec::grpc::Status OnMessage(codec::grpc::Call& call, std::string_view message) override;

 private:
  // What one call works with.
  struct Desk {
    std::string message;
    envoy::RequestBuffer asked;
    envoy::Response response;
    std::string answer;
  };

  // The answer is in the desk, if all is well.
  codec::grpc::Status Decide(Desk& desk, std::string_view message);
  void DecideLater(codec::grpc::Call::Later later, std::string_view message);

  envoy::RlsService& service_;
  const RlsWaiting waiting_;
  base::Pool<Desk> desks_;
};

}  // namespace weir::server
