// HTTP/1.1 and gRPC on one port: the first bytes of a connection tell which, or what TLS agreed on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "net/session.h"

namespace weir::server {

class SharedPortSession final : public net::Session {
 public:
  SharedPortSession(net::SessionFactory& http, net::SessionFactory& grpc, const net::Peer& peer)
      : http_(http), grpc_(grpc), peer_(peer) {}

  Progress OnBytes(std::span<char> input, base::ByteBuffer& output) override {
    if (session_ == nullptr) {
      // What every HTTP/2 client says first, and nobody else: no method of HTTP/1.1 begins so.
      constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
      const std::string_view begun(input.data(), std::min(input.size(), kPreface.size()));
      const bool may_be_http2 = kPreface.starts_with(begun);
      if (may_be_http2 && begun.size() < kPreface.size()) {
        return {0, begun.empty() ? Next::kIdle : Next::kMessage};
      }
      session_ = (may_be_http2 ? grpc_ : http_).Open(peer_);
      session_->SetHost(host());
      if (draining_) {
        session_->OnDrain();
      }
    }
    return session_->OnBytes(input, output);
  }
  void OnTimeout(base::ByteBuffer& output) override {
    if (session_ != nullptr) {
      session_->OnTimeout(output);
    }
  }
  void OnDrain() override {
    draining_ = true;
    if (session_ != nullptr) {
      session_->OnDrain();
    }
  }
  uint32_t WakeAfter() override { return session_ != nullptr ? session_->WakeAfter() : 0; }
  Next OnWake(base::ByteBuffer& output) override {
    return session_ != nullptr ? session_->OnWake(output) : Next::kIdle;
  }

 private:
  net::SessionFactory& http_;
  net::SessionFactory& grpc_;
  const net::Peer peer_;
  std::unique_ptr<net::Session> session_;
  bool draining_ = false;
};

class SharedPortFactory final : public net::SessionFactory {
 public:
  SharedPortFactory(std::unique_ptr<net::SessionFactory> http,
                    std::unique_ptr<net::SessionFactory> grpc)
      : http_(std::move(http)), grpc_(std::move(grpc)) {}
  std::unique_ptr<net::Session> Open(const net::Peer& peer) override {
    return std::make_unique<SharedPortSession>(*http_, *grpc_, peer);
  }

 private:
  const std::unique_ptr<net::SessionFactory> http_;
  const std::unique_ptr<net::SessionFactory> grpc_;
};

}  // namespace weir::server
