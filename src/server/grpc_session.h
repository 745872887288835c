// gRPC on a connection: what codec/grpc makes of its bytes, with the loop's clock and counters.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weir/time.h"

#include "codec/grpc/health.h"
#include "codec/grpc/session.h"
#include "envoy/rls_stats.h"
#include "net/session.h"
#include "server/config.h"
#include "server/front_counters.h"

namespace weir::server {

// What all gRPC connections of a loop share. Who makes it adds the methods, those that are asked
// for most first.
struct GrpcContext {
  explicit GrpcContext(const ServerConfig& config);

  // Calls that were answered since the last time, each after this long, for `stats`.
  void CountCalls(Duration took);

  codec::grpc::SessionShared shared;
  FrontCounters counters;
  envoy::RlsStats* stats = nullptr;  // none: nobody asks for the original's statistics

 private:
  std::vector<uint64_t> counted_;  // of each method
};

class GrpcSession final : public net::Session {
 public:
  explicit GrpcSession(GrpcContext& context);
  ~GrpcSession() override;

  Progress OnBytes(std::span<char> input, base::ByteBuffer& output) override;
  void OnTimeout(base::ByteBuffer& output) override;
  void OnDrain() override { draining_ = true; }
  uint32_t WakeAfter() override;
  Next OnWake(base::ByteBuffer& output) override;

 private:
  GrpcContext& context_;
  codec::grpc::Session session_;
  uint64_t errors_counted_ = 0;
  bool draining_ = false;
};

class GrpcFactory final : public net::SessionFactory {
 public:
  explicit GrpcFactory(GrpcContext& context) : context_(context) {}
  std::unique_ptr<net::Session> Open(const net::Peer&) override {
    return std::make_unique<GrpcSession>(context_);
  }

 private:
  GrpcContext& context_;
};

}  // namespace weir::server
