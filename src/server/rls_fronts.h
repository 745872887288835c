// What envoyproxy/ratelimit has besides gRPC, on a loop of its own: /json and /healthcheck, the
// debug port, its Prometheus names, statsd; and the configuration behind all of it, with the files
// that it comes from.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/result.h"
#include "weir/time.h"

#include "envoy/environment.h"
#include "envoy/rls_service.h"
#include "net/endpoint.h"
#include "net/listener.h"
#include "net/loop.h"
#include "server/rls_http_session.h"
#include "server/statsd_sender.h"

namespace weir::server {

class RlsFronts {
 public:
  struct Bound {
    std::string front;  // json, debug, stats
    net::Endpoint endpoint;
  };

  // Reads the files and listens. Bad files are logged, and calls are answered with an error until
  // there are good ones, as the original does. `may_expose` is asked before a front listens where
  // other machines reach it.
  using MayExpose = std::function<Result<void>(std::string_view front, const std::string& where)>;
  static Result<std::unique_ptr<RlsFronts>> Start(const envoy::EnvoySettings& settings,
                                                  const Clock* clock, size_t memory_bytes,
                                                  MayExpose may_expose);

  ~RlsFronts();
  RlsFronts(const RlsFronts&) = delete;
  RlsFronts& operator=(const RlsFronts&) = delete;

  [[nodiscard]] const std::shared_ptr<envoy::RlsService>& service() const noexcept {
    return service_;
  }
  [[nodiscard]] const std::vector<Bound>& bound() const noexcept { return bound_; }
  [[nodiscard]] bool IsHealthy() const noexcept;
  // What to watch for changes: a name in each folder that leads to the files.
  [[nodiscard]] std::vector<std::string> watched() const;

  // Looks at the files again. From one thread at a time.
  void Reload();
  // Unhealthy from here on.
  void Drain() noexcept { draining_.store(true, std::memory_order_relaxed); }

 private:
  RlsFronts(const envoy::EnvoySettings& settings, MayExpose may_expose)
      : settings_(settings), may_expose_(std::move(may_expose)) {}

  Result<void> Listen(const std::string& front, const std::string& address,
                      RlsHttpContext::Face face);

  const envoy::EnvoySettings settings_;
  const MayExpose may_expose_;
  std::shared_ptr<envoy::RlsService> service_;
  std::atomic<bool> draining_{false};
  std::optional<std::vector<envoy::ConfigFile>> seen_;  // as they were last
  std::vector<Bound> bound_;
  net::Loop loop_;
  std::vector<std::unique_ptr<net::Listener>> listeners_;
  std::unique_ptr<StatsdSender> statsd_;
};

}  // namespace weir::server
