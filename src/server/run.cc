#include "server/run.h"

#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "weir/version.h"

#include "server/file_watch.h"
#include "server/fleet.h"
#include "server/inherited_sockets.h"
#include "server/log.h"
#include "server/rls_fronts.h"
#include "server/server.h"
#include "server/test_clock.h"
#include "shared/fleet_store.h"

namespace weir::server {

namespace {

// The usual limit of 1024 files is less than the connections that are allowed.
void AllowManyFiles() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

void Greet(const Server& server, const RuleStatus& rules) {
  std::string text = "weir " + std::string(kVersion) + ", " + std::to_string(rules.rule_count) +
                     (rules.rule_count == 1 ? " rule\n" : " rules\n");
  std::string http;
  std::string resp;
  for (const Server::Bound& bound : server.bound()) {
    const bool web =
        (bound.front == "http" || bound.front == "admin") && bound.endpoint.unix_path.empty();
    text += "  " + bound.front + std::string(7 - bound.front.size(), ' ') +
            (!web        ? (bound.tls ? "tls:" : "")
             : bound.tls ? "https://"
                         : "http://") +
            bound.endpoint.text + "\n";
    if (bound.endpoint.unix_path.empty()) {
      if (bound.front == "http" && http.empty()) {
        http = bound.endpoint.text;
      } else if (bound.front == "resp" && resp.empty()) {
        resp = bound.endpoint.text;
      }
    }
  }
  text += "Try:\n";
  if (!http.empty()) {
    text += "  curl -i " + http + "/v1/check -d '{\"attributes\": {\"ip\": \"192.0.2.1\"}}'\n";
  }
  if (const size_t colon = resp.rfind(':'); colon != std::string::npos) {
    text += "  redis-cli -p " + resp.substr(colon + 1) + " CL.THROTTLE user123 15 30 60 1\n";
  }
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

bool RunUntilSignal(const ServerConfig& given) {
  ServerConfig config = given;
  ConfigureLog(config.log_level, config.log_format);
  AllowManyFiles();
  std::signal(SIGPIPE, SIG_IGN);
  const auto fail = [](const Error& error) {
    std::fprintf(stderr, "weir serve: %s\n", error.message.c_str());
    return false;
  };
  if (const Result<void> good = config.Validate(); !good) {
    return fail(good.error());
  }
  auto fleet = OpenFleet(config);
  if (!fleet) {
    return fail(fleet.error());
  }
  config.fleet = *std::move(fleet);
  std::unique_ptr<TestClock> rls_clock;
  std::unique_ptr<RlsFronts> rls;
  if (config.envoy.has_value()) {
    if (!config.test_clock.empty()) {
      auto clock = TestClock::Open(config.test_clock);
      if (!clock) {
        return fail(clock.error());
      }
      rls_clock = *std::move(clock);
    }
    config.envoy->service.shared = config.fleet;
    auto fronts = RlsFronts::Start(*config.envoy, rls_clock.get(), config.ShareMemory().rls,
                                   [&config](std::string_view front, const std::string& where) {
                                     return config.MayExpose(front, where);
                                   });
    if (!fronts) {
      return fail(fronts.error());
    }
    rls = *std::move(fronts);
    config.rls = rls->service();
  }
  Result<std::unique_ptr<Server>> started = Server::Start(config);
  if (!started) {
    return fail(started.error());
  }
  Server& server = **started;
  boost::asio::io_context control(1);
  std::vector<std::string> watched = config.rules;
  for (const std::string& path : config.descriptors) {
    std::error_code ignored;  // then it is no folder
    watched.push_back(std::filesystem::is_directory(path, ignored) ? path + "/" : path);
  }
  for (const auto* const files : {&config.tls_cert, &config.tls_key, &config.tls_client_ca}) {
    for (const std::string& file : *files) {
      watched.push_back(file.substr(file.find('=') + 1));  // all of it if there is none
    }
  }
  watched.insert(watched.end(), config.geo_db.begin(), config.geo_db.end());
  FileWatch watch(control, watched, [&server] { server.Reload(); });
  std::optional<FileWatch> rls_watch;
  if (rls != nullptr) {
    rls_watch.emplace(control, rls->watched(), [&rls] { rls->Reload(); });
  }
  boost::asio::signal_set signals(control, SIGTERM, SIGINT, SIGHUP);
  std::function<void()> wait = [&] {
    signals.async_wait([&](const boost::system::error_code& error, int signal) {
      if (error) {
        return;
      }
      if (signal == SIGHUP) {
        NotifySystemd("RELOADING=1");
        server.Reload();
        if (rls != nullptr) {
          rls->Reload();
        }
        NotifySystemd("READY=1");
        wait();
        return;
      }
      watch.Close();
      if (rls_watch.has_value()) {
        rls_watch->Close();
      }
      control.stop();
    });
  };
  wait();
  boost::asio::steady_timer timer(control);
  std::function<void()> tick = [&] {
    timer.expires_after(std::chrono::milliseconds(200));
    timer.async_wait([&](const boost::system::error_code& error) {
      if (!error) {
        server.EndSwitches();
        tick();
      }
    });
  };
  tick();
  Greet(server, server.rule_source().status());
  NotifySystemd("READY=1");
  control.run();
  NotifySystemd("STOPPING=1");
  Log(LogLevel::kInfo, "going: no more connections, those there end after their next answer");
  if (rls != nullptr) {
    rls->Drain();
  }
  server.Drain();
  return true;
}

}  // namespace weir::server
