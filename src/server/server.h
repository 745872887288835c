// The whole server: loops with their fronts, the rules and what watches them, from start to drain.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "weir/result.h"

#include "envoy/rls_service.h"
#include "net/address_cap.h"
#include "net/endpoint.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/tls.h"
#include "server/check_service.h"
#include "server/config.h"
#include "server/fresh_key_warnings.h"
#include "server/geo_database.h"
#include "server/grpc_session.h"
#include "server/http_session.h"
#include "server/metrics.h"
#include "server/resp_session.h"
#include "server/rule_source.h"
#include "server/rule_switches.h"
#include "server/test_clock.h"

namespace weir::server {

class Server {
 public:
  // Where one front listens.
  struct Bound {
    std::string front;  // http, resp, grpc, admin
    net::Endpoint endpoint;
    bool tls = false;
  };

  // Reads the rules, binds every address, and begins to answer. The error says what to do.
  static Result<std::unique_ptr<Server>> Start(const ServerConfig& config);

  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] const std::vector<Bound>& bound() const noexcept { return bound_; }
  [[nodiscard]] CheckService& service() noexcept { return *service_; }
  [[nodiscard]] RuleSource& rule_source() noexcept { return source_; }

  // Looks at the rule files again, and at what the rules have met so far.
  RuleSource::Outcome Reload();
  // Ends what operators have switched for a time that is over. Now and then.
  void EndSwitches() { switches_->EndDue(service_->Now()); }
  // Takes no more connections and ends each after its next answer; returns when all have gone, or
  // after the configured time.
  void Drain();

 private:
  // One loop, and what its connections share.
  struct Worker {
    Worker(CheckService& service, const ServerConfig& config, const FrontOptions& options,
           const RespOptions& resp_options)
        : http{service, options, HttpContext::Face::kPublic},
          admin{service, options, HttpContext::Face::kAdmin},
          resp{.service = service,
               .options = resp_options,
               .counters = {},
               .replies = {},
               .denials = {}},
          grpc(config) {}

    net::Loop loop;
    HttpContext http;
    HttpContext admin;
    RespContext resp;
    GrpcContext grpc;
    std::vector<std::unique_ptr<net::Listener>> listeners;
  };

  explicit Server(const ServerConfig& config);

  Result<void> Prepare();
  Result<void> PrepareRls(const ServiceOptions& options);
  Result<void> Listen();
  Result<void> ListenOn(const std::string& front, const std::string& address);
  Result<void> ListenOnInherited(const std::string& front, const std::vector<int>& sockets,
                                 ListenAddress::Security security);
  void AddListener(Worker& worker, const std::string& front, int descriptor,
                   const std::shared_ptr<net::TlsContext>& tls);
  Result<std::shared_ptr<net::TlsContext>> TlsFor(const std::string& front,
                                                  ListenAddress::Security security);
  void AddMethods(net::Loop& loop, GrpcContext& context);
  [[nodiscard]] Metrics CollectMetrics();

  const ServerConfig config_;
  net::AddressCap addresses_;
  std::unique_ptr<TestClock> test_clock_;
  RuleSource source_;
  std::unique_ptr<GeoDatabase> geo_;  // outlives the limiters that ask it
  FreshKeyWarnings fresh_keys_;
  std::unique_ptr<CheckService> service_;
  std::unique_ptr<RuleSwitches> switches_;
  std::shared_ptr<envoy::RlsService> rls_;  // none: nobody asks over gRPC
  RespOptions resp_options_;
  FrontOptions front_options_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Bound> bound_;
  std::vector<std::shared_ptr<net::TlsContext>> tls_;
  std::atomic<bool> going_{false};
};

}  // namespace weir::server
