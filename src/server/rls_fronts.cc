#include "server/rls_fronts.h"

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <utility>

#include "server/log.h"

namespace weir::server {

namespace {

std::string AddressOf(const std::string& host, uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool SameFiles(const std::vector<envoy::ConfigFile>& a, const std::vector<envoy::ConfigFile>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const envoy::ConfigFile& one, const envoy::ConfigFile& other) {
                      return one.name == other.name && one.yaml == other.yaml;
                    });
}

}  // namespace

Result<std::unique_ptr<RlsFronts>> RlsFronts::Start(const envoy::EnvoySettings& settings,
                                                    const Clock* clock, size_t memory_bytes,
                                                    MayExpose may_expose) {
  std::unique_ptr<RlsFronts> fronts(new RlsFronts(settings, std::move(may_expose)));
  for (const std::string& note : settings.notes) {
    Log(LogLevel::kWarning, note);
  }
  envoy::RlsOptions options = settings.service;
  options.clock = clock;
  options.memory_bytes = memory_bytes;
  auto service = envoy::RlsService::Create(options);
  if (!service) {
    return service.error();
  }
  fronts->service_ = *std::move(service);
  fronts->Reload();
  using Face = RlsHttpContext::Face;
  const std::string prometheus = settings.prometheus_address.starts_with(':')
                                     ? "0.0.0.0" + settings.prometheus_address
                                     : settings.prometheus_address;
  for (const auto& [front, address, face, wanted] :
       {std::tuple("json", AddressOf(settings.host, settings.port), Face::kPublic, true),
        std::tuple("debug", AddressOf(settings.debug_host, settings.debug_port), Face::kDebug,
                   true),
        std::tuple("stats", prometheus, Face::kMetrics, settings.use_prometheus)}) {
    if (wanted) {
      if (auto listening = fronts->Listen(front, address, face); !listening) {
        return listening.error();
      }
    }
  }
  if (settings.use_statsd && !settings.disable_stats && !settings.use_prometheus) {
    fronts->statsd_ = std::make_unique<StatsdSender>(
        fronts->loop_.context(), fronts->service_->stats(),
        StatsdSender::Options{
            .host = settings.statsd_host,
            .port = settings.statsd_port,
            .every = settings.stats_flush_interval,
            .report = {.dog_statsd = settings.dog_statsd, .extra_tags = settings.extra_tags}});
  }
  for (const std::unique_ptr<net::Listener>& listener : fronts->listeners_) {
    fronts->loop_.Post([&listener] { listener->Start(); });
  }
  fronts->loop_.Start("weir-rls", -1);
  return fronts;
}

RlsFronts::~RlsFronts() {
  loop_.Run([this] {
    for (const std::unique_ptr<net::Listener>& listener : listeners_) {
      listener->Close();
    }
    if (statsd_ != nullptr) {
      statsd_->Close();
    }
  });
  loop_.Stop();
}

Result<void> RlsFronts::Listen(const std::string& front, const std::string& address,
                               RlsHttpContext::Face face) {
  const auto endpoint = net::Endpoint::Parse(address);
  if (!endpoint) {
    return endpoint.error();
  }
  if (!endpoint->local_only) {
    const std::string where = "Envoy's " + front + " address " + endpoint->text;
    if (Result<void> good = may_expose_(front, where); !good) {
      return good;
    }
  }
  const Result<int> descriptor = net::Listener::Bind(*endpoint);
  if (!descriptor) {
    return descriptor.error();
  }
  bound_.push_back({front, net::Listener::BoundTo(*descriptor)});
  std::unique_ptr<RlsHttpContext> context(
      new RlsHttpContext{.service = *service_,
                         .face = face,
                         .is_healthy = [this] { return IsHealthy(); },
                         .metrics_path = settings_.prometheus_path,
                         .store_failure_is_503 = settings_.store_failure_is_503});
  listeners_.push_back(std::make_unique<net::Listener>(
      loop_, *descriptor, std::make_unique<RlsHttpFactory>(std::move(context)),
      net::ListenerLimits{}));
  return {};
}

bool RlsFronts::IsHealthy() const noexcept {
  return !draining_.load(std::memory_order_relaxed) &&
         (!settings_.healthy_with_at_least_one_config_loaded || service_->has_domains());
}

std::vector<std::string> RlsFronts::watched() const {
  // Any of these may be a link that is swapped.
  const std::filesystem::path root = settings_.runtime.root;
  const std::filesystem::path folder = settings_.runtime.path();
  return {root.string(), (root / settings_.runtime.subdirectory).string(), folder.string(),
          (folder / "*").string()};
}

void RlsFronts::Reload() {
  auto files = settings_.runtime.Read();
  if (!files) {
    Log(LogLevel::kError, "Error loading new configuration", {{"why", files.error().message}});
    return;
  }
  if (seen_.has_value() && SameFiles(*seen_, *files)) {
    return;
  }
  const Result<void> loaded = service_->Load(*files);
  if (loaded) {
    Log(LogLevel::kInfo, "Successfully loaded new configuration",
        {{"folder", settings_.runtime.path()}, {"files", files->size()}});
  } else {
    Log(LogLevel::kError, "Error loading new configuration", {{"why", loaded.error().message}});
  }
  seen_ = *std::move(files);
}

}  // namespace weir::server
