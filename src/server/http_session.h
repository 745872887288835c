// HTTP/1.1: requests of a connection, one after the other; all that came with one read are answered
// with one write.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "codec/http/request_parser.h"
#include "net/session.h"
#include "server/http_context.h"

namespace weir::server {

class HttpSession final : public net::Session {
 public:
  HttpSession(HttpContext& context, const net::Peer& peer);

  Progress OnBytes(std::span<char> input, base::ByteBuffer& output) override;
  void OnTimeout(base::ByteBuffer& output) override;
  void OnDrain() override { draining_ = true; }

 private:
  // The PROXY protocol's header, where one is expected. False: `progress` is what to return.
  bool ReadProxyHeader(std::span<char>& input, Progress& progress);

  HttpContext& context_;
  codec::http::RequestParser parser_;
  HttpPeer peer_;
  bool proxy_header_expected_;
  bool draining_ = false;
};

class HttpFactory final : public net::SessionFactory {
 public:
  explicit HttpFactory(HttpContext& context) : context_(context) {}
  std::unique_ptr<net::Session> Open(const net::Peer& peer) override {
    return std::make_unique<HttpSession>(context_, peer);
  }

 private:
  HttpContext& context_;
};

}  // namespace weir::server
