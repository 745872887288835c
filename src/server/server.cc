#include "server/server.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/key_hash.h"
#include "codec/grpc/reflection.h"
#include "net/wait.h"
#include "server/fleet.h"
#include "server/inherited_sockets.h"
#include "server/log.h"
#include "server/rls_method.h"
#include "server/rls_source.h"
#include "server/shared_port.h"
#include "shared/fleet_store.h"

namespace weir::server {

namespace {

unsigned ThreadCount(const ServerConfig& config) {
  return config.threads != 0 ? config.threads : std::max(1U, std::thread::hardware_concurrency());
}

net::ListenerLimits LimitsOf(const ServerConfig& config, unsigned threads,
                             net::AddressCap& addresses) {
  return {.connection = {.idle_s = config.idle_s, .message_s = config.message_s},
          .connections_max = std::max(1U, config.connections_max / threads),
          .addresses = &addresses};
}

// Who speaks for many: proxies that are trusted, and what runs on this machine.
std::vector<base::IpPrefix> WithoutCap(const ServerConfig& config) {
  std::vector<base::IpPrefix> prefixes = {*base::IpPrefix::Parse("127.0.0.1"),
                                          *base::IpPrefix::Parse("::1")};
  for (const std::string& text : config.trusted_proxies) {
    if (const auto prefix = base::IpPrefix::Parse(text)) {
      prefixes.push_back(*prefix);
    }
  }
  return prefixes;
}

}  // namespace

Server::Server(const ServerConfig& config)
    : config_(config),
      addresses_(config.connections_per_address, config.ipv6_prefix, WithoutCap(config)),
      source_(config.rules, config.state_dir) {}

Result<std::unique_ptr<Server>> Server::Start(const ServerConfig& config) {
  if (const Result<void> good = config.Validate(); !good) {
    return good.error();
  }
  std::unique_ptr<Server> server(new Server(config));
  if (const Result<void> ready = server->Prepare(); !ready) {
    return ready.error();
  }
  if (const Result<void> listening = server->Listen(); !listening) {
    return listening.error();
  }
  return server;
}

Server::~Server() {
  for (const std::unique_ptr<Worker>& worker : workers_) {
    worker->loop.Run([&worker] {
      for (const std::unique_ptr<net::Listener>& listener : worker->listeners) {
        listener->Close();
      }
    });
    worker->loop.Stop();
  }
  for (const Bound& bound : bound_) {
    if (!bound.endpoint.unix_path.empty()) {
      ::unlink(bound.endpoint.unix_path.c_str());
    }
  }
}

Result<void> Server::Prepare() {
  ServiceOptions options;
  options.memory_bytes = config_.ShareMemory().rules;
  if (!config_.fleet_secret.empty()) {
    options.rules.fleet_secret = base::HashKeySeeded(config_.fleet_secret, 0);
  }
  options.rules.ipv6_prefix_bits = static_cast<uint8_t>(config_.ipv6_prefix);
  options.rules.top_keys = config_.top_keys;
  if (!config_.geo_db.empty()) {
    auto geo = GeoDatabase::Open(config_.geo_db);
    if (!geo) {
      return geo.error();
    }
    geo_ = *std::move(geo);
    options.rules.addresses = geo_.get();
  }
  if (!config_.test_clock.empty()) {
    auto clock = TestClock::Open(config_.test_clock);
    if (!clock) {
      return clock.error();
    }
    test_clock_ = *std::move(clock);
    options.clock = test_clock_.get();
    options.rules.clock = test_clock_.get();
    options.clock_may_rewind = true;
    Log(LogLevel::kWarning,
        "TEST CLOCK: every decision is made at the time that a file says; never do this in "
        "production",
        {{"file", config_.test_clock}});
  }
  options.rules.shared = config_.fleet;
  auto rules = source_.LoadFirst();
  if (!rules) {
    return rules.error();
  }
  auto service = CheckService::Create(*rules, options);
  if (!service) {
    return service.error();
  }
  service_ = *std::move(service);
  switches_ = std::make_unique<RuleSwitches>(*rules, [this](std::shared_ptr<const RuleSet> set) {
    return service_->Apply(std::move(set));
  });
  if (Result<void> ready = PrepareRls(options); !ready) {
    return ready;
  }
  resp_options_.password = config_.resp_password;
  auto front = FrontOptions::From(config_);
  if (!front) {
    return front.error();
  }
  front_options_ = *std::move(front);
  front_options_.metrics = [this] { return CollectMetrics(); };
  front_options_.rule_status = [this] { return source_.status(); };
  front_options_.rule_text = [this] { return source_.text(); };
  front_options_.reload = [this] { return Reload(); };
  front_options_.switches = switches_.get();
  for (unsigned i = 0; i < ThreadCount(config_); ++i) {
    workers_.push_back(std::make_unique<Worker>(*service_, config_, front_options_, resp_options_));
    AddMethods(workers_.back()->loop, workers_.back()->grpc);
  }
  return {};
}

// What Envoy asks is decided by descriptors, in a store of its own.
Result<void> Server::PrepareRls(const ServiceOptions& options) {
  if (config_.rls != nullptr) {
    rls_ = config_.rls;
    return {};
  }
  if (config_.grpc.empty() && !config_.grpc_on_http) {
    return {};
  }
  envoy::RlsOptions rls;
  rls.memory_bytes = config_.ShareMemory().rls;
  rls.clock = options.clock;
  rls.shared = config_.fleet;
  auto made = envoy::RlsService::Create(rls);
  if (!made) {
    return made.error();
  }
  rls_ = *std::move(made);
  return config_.descriptors.empty() ? Result<void>() : LoadDescriptors(*rls_, config_.descriptors);
}

Result<void> Server::Listen() {
  for (const auto& [front, addresses] :
       {std::pair("http", &config_.http), std::pair("resp", &config_.resp),
        std::pair("grpc", &config_.grpc), std::pair("admin", &config_.admin)}) {
    bool inherits = false;
    for (const auto& [suffix, security] :
         {std::pair("", ListenAddress::Security::kNone),
          std::pair("-tls", ListenAddress::Security::kTls),
          std::pair("-mtls", ListenAddress::Security::kMutualTls)}) {
      const std::vector<int> sockets = InheritedSockets(front + std::string(suffix));
      inherits = inherits || !sockets.empty();
      if (Result<void> listening = ListenOnInherited(front, sockets, security); !listening) {
        return listening;
      }
    }
    if (inherits) {
      continue;
    }
    for (const std::string& address : *addresses) {
      if (Result<void> listening = ListenOn(front, address); !listening) {
        return listening;
      }
    }
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = *workers_[i];
    Join(worker.loop, config_.fleet.get());
    for (const std::unique_ptr<net::Listener>& listener : worker.listeners) {
      worker.loop.Post([&listener] { listener->Start(); });
    }
    worker.loop.Start("weir-" + std::to_string(i), config_.pin_threads ? static_cast<int>(i) : -1);
  }
  return {};
}

Result<void> Server::ListenOnInherited(const std::string& front, const std::vector<int>& sockets,
                                       ListenAddress::Security security) {
  if (sockets.empty()) {
    return {};
  }
  const auto tls = TlsFor(front, security);
  if (!tls) {
    return Error{tls.error().code, "for a socket inherited as " + front + ": " +
                                       tls.error().message +
                                       "; it needs --tls-cert and --tls-key, and --tls-client-ca "
                                       "if its name ends in -mtls"};
  }
  for (const int descriptor : sockets) {
    const net::Endpoint endpoint = net::Listener::BoundTo(descriptor);
    if (!endpoint.local_only) {
      const std::string where = "the socket " + endpoint.text + ", inherited as " + front + ",";
      if (Result<void> good = config_.MayExpose(front, where); !good) {
        return good;
      }
    }
    bound_.push_back({front, endpoint, *tls != nullptr});
    for (size_t i = 1; i < workers_.size(); ++i) {
      AddListener(*workers_[i], front, ::dup(descriptor), *tls);
    }
    AddListener(*workers_[0], front, descriptor, *tls);
  }
  return {};
}

Result<void> Server::ListenOn(const std::string& front, const std::string& address) {
  const ListenAddress listen = ListenAddress::Parse(address);
  Result<net::Endpoint> endpoint = net::Endpoint::Parse(listen.endpoint);
  if (!endpoint) {
    return endpoint.error();
  }
  const auto tls = TlsFor(front, listen.security);
  if (!tls) {
    return tls.error();
  }
  int first = -1;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    if (first >= 0 && !endpoint->unix_path.empty()) {
      AddListener(*worker, front, ::dup(first), *tls);  // a path can be bound once
      continue;
    }
    const Result<int> descriptor = net::Listener::Bind(*endpoint);
    if (!descriptor) {
      return descriptor.error();
    }
    if (first < 0) {
      first = *descriptor;
      *endpoint = net::Listener::BoundTo(first);  // with the port that the system chose
      bound_.push_back({front, *endpoint, *tls != nullptr});
    }
    AddListener(*worker, front, *descriptor, *tls);
  }
  return {};
}

// None for a plain address.
Result<std::shared_ptr<net::TlsContext>> Server::TlsFor(const std::string& front,
                                                        ListenAddress::Security security) {
  if (security == ListenAddress::Security::kNone) {
    return std::shared_ptr<net::TlsContext>();
  }
  net::TlsOptions options;
  options.certificate_file = ServerConfig::FileFor(config_.tls_cert, front);
  options.key_file = ServerConfig::FileFor(config_.tls_key, front);
  if (security == ListenAddress::Security::kMutualTls) {
    options.client_ca_file = ServerConfig::FileFor(config_.tls_client_ca, front);
    options.client_names = ServerConfig::NamesFor(config_.tls_client_names, front);
  }
  if (front == "grpc" || (front == "http" && config_.grpc_on_http)) {
    options.protocols.emplace_back("h2");
  }
  if (front == "http" || front == "admin") {
    options.protocols.emplace_back("http/1.1");
  }
  auto made = net::TlsContext::Create(options);
  if (made) {
    tls_.push_back(*made);
  }
  return made;
}

void Server::AddListener(Worker& worker, const std::string& front, int descriptor,
                         const std::shared_ptr<net::TlsContext>& tls) {
  std::unique_ptr<net::SessionFactory> factory;
  net::ListenerLimits limits =
      LimitsOf(config_, static_cast<unsigned>(workers_.size()), addresses_);
  if (front == "resp") {
    factory = std::make_unique<RespFactory>(worker.resp);
  } else if (front == "grpc") {
    factory = std::make_unique<GrpcFactory>(worker.grpc);
    limits.connection.idle_s = 0;  // the session knows how to end an idle connection
  } else if (front == "http" && config_.grpc_on_http) {
    factory = std::make_unique<SharedPortFactory>(std::make_unique<HttpFactory>(worker.http),
                                                  std::make_unique<GrpcFactory>(worker.grpc));
  } else {
    factory = std::make_unique<HttpFactory>(front == "http" ? worker.http : worker.admin);
  }
  if (tls != nullptr) {
    factory = std::make_unique<net::TlsFactory>(tls, std::move(factory));
  }
  worker.listeners.push_back(
      std::make_unique<net::Listener>(worker.loop, descriptor, std::move(factory), limits));
}

// Each loop has methods of its own, so that they may keep memory.
void Server::AddMethods(net::Loop& loop, GrpcContext& context) {
  if (rls_ == nullptr) {
    return;
  }
  context.stats = &rls_->stats();
  RlsWaiting waiting;
  if (config_.fleet != nullptr) {
    waiting.fibers = &loop.fibers();
    waiting.answered = [&context](Duration took, bool good) {
      context.counters.latency.Add(static_cast<uint64_t>(took.count()), 1);
      LatencyCounters::Bump(context.counters.requests, 1);
      LatencyCounters::Bump(context.counters.errors, good ? 0 : 1);
      if (context.stats != nullptr) {
        context.stats->CountCall("ShouldRateLimit", took, 1);
      }
    };
  }
  context.shared.methods.Add(std::make_unique<RlsMethod>(*rls_, std::move(waiting)));
  const bool needs_config =
      config_.envoy.has_value() && config_.envoy->healthy_with_at_least_one_config_loaded;
  codec::grpc::AddHealth(context.shared.methods, [this, needs_config](std::string_view service) {
    if (!service.empty() && service != "ratelimit") {
      return codec::grpc::Health::kUnknownService;
    }
    const bool serving =
        !going_.load(std::memory_order_relaxed) && (!needs_config || rls_->has_domains());
    return serving ? codec::grpc::Health::kServing : codec::grpc::Health::kNotServing;
  });
  codec::grpc::AddReflection(context.shared.methods);
}

RuleSource::Outcome Server::Reload() {
  for (const std::shared_ptr<net::TlsContext>& tls : tls_) {
    if (const Result<void> loaded = tls->Reload(); !loaded) {
      Log(LogLevel::kError, "certificates not taken; those before stay",
          {{"why", loaded.error().message}});
    }
  }
  if (geo_ != nullptr) {
    if (const Result<bool> loaded = geo_->Reload(); !loaded) {
      Log(LogLevel::kError, "database of addresses not taken; the one before stays",
          {{"why", loaded.error().message}});
    } else if (*loaded) {
      Log(LogLevel::kInfo, "database of addresses taken anew");
    }
  }
  if (rls_ != nullptr && !config_.descriptors.empty()) {
    if (const Result<void> loaded = LoadDescriptors(*rls_, config_.descriptors); !loaded) {
      Log(LogLevel::kError, "descriptors not taken", {{"why", loaded.error().message}});
    }
  }
  const RuleSource::Outcome outcome = source_.Reload(
      [this](std::shared_ptr<const RuleSet> rules) { return switches_->Load(std::move(rules)); });
  RuleLimiter& rules = *service_->deciders().rules;
  for (const std::string& rule : fresh_keys_.New(rules.rules()->version(), rules.Counts())) {
    Log(LogLevel::kWarning,
        "a rule limits nearly nothing: over nine in ten of its last 10,000 requests or more were "
        "the "
        "first of their key; is it counted by what each request has anew, such as a request id?",
        {{"rule", rule}});
  }
  return outcome;
}

void Server::Drain() {
  going_.store(true, std::memory_order_relaxed);
  for (const std::unique_ptr<Worker>& worker : workers_) {
    worker->loop.Run([&worker] {
      for (const std::unique_ptr<net::Listener>& listener : worker->listeners) {
        listener->Close();
      }
      worker->loop.Drain();
    });
  }
  net::WaitUntil(
      [this] {
        return std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) {
          return worker->loop.counters().open.load(std::memory_order_relaxed) == 0;
        });
      },
      std::chrono::seconds(config_.drain_s));
}

Metrics Server::CollectMetrics() {
  Deciders& deciders = service_->deciders();
  Metrics metrics;
  metrics.store = deciders.store->Stats();
  metrics.rules = deciders.rules->Counts();
  if (config_.fleet != nullptr) {
    metrics.fleet = config_.fleet->Stats();
    metrics.nodes = config_.fleet->Nodes();
  }
  metrics.rule_status = source_.status();
  metrics.switches = switches_->all();
  metrics.start_time_s = front_options_.start_time_s;
  ProtocolMetrics http{.protocol = "http"};
  ProtocolMetrics admin{.protocol = "admin"};
  ProtocolMetrics resp{.protocol = "resp"};
  ProtocolMetrics grpc{.protocol = "grpc"};
  for (const std::unique_ptr<Worker>& worker : workers_) {
    http.Add(worker->http.counters);
    admin.Add(worker->admin.counters);
    resp.Add(worker->resp.counters);
    grpc.Add(worker->grpc.counters);
    const net::LoopCounters& counters = worker->loop.counters();
    metrics.connections_open += counters.open.load(std::memory_order_relaxed);
    metrics.connections_accepted += counters.accepted.load(std::memory_order_relaxed);
    metrics.connections_refused += counters.refused.load(std::memory_order_relaxed);
    metrics.connections_timed_out += counters.timed_out.load(std::memory_order_relaxed);
  }
  metrics.protocols = {http, admin, resp, grpc};
  return metrics;
}

}  // namespace weir::server
