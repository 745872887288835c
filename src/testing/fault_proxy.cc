#include "testing/fault_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "testing/fault_proxy_link.h"

namespace weir::testing {

namespace {

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "fault proxy: %s: %s\n", what.c_str(), std::strerror(errno));
  std::abort();
}

void NoDelay(int socket) {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

// Listens at 127.0.0.1; the port that it got goes into `port`.
int ListenAt(uint16_t& port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(port);
  socklen_t size = sizeof at;
  if (::bind(socket, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(socket, 256) != 0 ||
      ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    Die("cannot listen at port " + std::to_string(port));
  }
  port = ntohs(at.sin_port);
  return socket;
}

// Begins to connect; -1 if nobody is there.
int ConnectTo(const std::string& upstream) {
  constexpr std::string_view kUnix = "unix:";
  sockaddr_storage there{};
  socklen_t size = 0;
  if (upstream.starts_with(kUnix)) {
    auto& address = reinterpret_cast<sockaddr_un&>(there);
    address.sun_family = AF_UNIX;
    upstream.copy(address.sun_path, sizeof address.sun_path - 1, kUnix.size());
    size = sizeof address;
  } else {
    auto& address = reinterpret_cast<sockaddr_in&>(there);
    const size_t colon = upstream.rfind(':');
    address.sin_family = AF_INET;
    address.sin_port =
        htons(static_cast<uint16_t>(std::strtoul(upstream.c_str() + colon + 1, nullptr, 10)));
    if (::inet_pton(AF_INET, upstream.substr(0, colon).c_str(), &address.sin_addr) != 1) {
      Die("'" + upstream + "' is neither ADDRESS:PORT nor unix:/PATH");
    }
    size = sizeof address;
  }
  const int socket = ::socket(there.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&there), size) != 0 && errno != EINPROGRESS) {
    ::close(socket);
    return -1;
  }
  NoDelay(socket);
  return socket;
}

}  // namespace

class FaultProxy::State {
 public:
  explicit State(const Options& options) : options_(options), port_(options.port) {
    listener_ = ListenAt(port_);
    wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    world_.random = Random(options.seed);
    thread_ = std::thread([this] { Run(); });
  }

  ~State() {
    {
      const base::MutexLock lock(mutex_);
      stop_ = true;
    }
    Wake();
    thread_.join();
    if (listener_ >= 0) {
      ::close(listener_);
    }
    ::close(wake_);
  }

  [[nodiscard]] uint16_t port() const noexcept { return port_; }

  void Set(const Faults& faults) {
    {
      const base::MutexLock lock(mutex_);
      world_.faults = faults;
    }
    Wake();
  }

  Faults faults() {
    const base::MutexLock lock(mutex_);
    return world_.faults;
  }

  FaultCounts counts() {
    const base::MutexLock lock(mutex_);
    return world_.counts;
  }

  // The thread may be waiting on these sockets, so it closes them itself; this waits until it has.
  void Do(bool cut, bool listen) {
    {
      const base::MutexLock lock(mutex_);
      cut_wanted_ = cut_wanted_ || cut;
      listen_wanted_ = listen;
    }
    Wake();
    while (Wanting()) {
      std::this_thread::yield();
    }
  }

  bool Listens() {
    const base::MutexLock lock(mutex_);
    return listen_wanted_;
  }

 private:
  void Wake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t size = ::write(wake_, &one, sizeof one);
  }

  bool Wanting() {
    const base::MutexLock lock(mutex_);
    return cut_wanted_ || listen_wanted_ != (listener_ >= 0);
  }

  void Run() {
    std::vector<pollfd> polled;
    for (;;) {
      int timeout_ms = -1;
      {
        const base::MutexLock lock(mutex_);
        if (stop_) {
          links_.clear();
          return;
        }
        Obey();
        timeout_ms = Prepare(polled);
      }
      ::poll(polled.data(), polled.size(), timeout_ms);
      uint64_t ignored = 0;
      [[maybe_unused]] const ssize_t size = ::read(wake_, &ignored, sizeof ignored);
      const base::MutexLock lock(mutex_);
      Serve(polled);
    }
  }

  void Obey() WEIR_REQUIRES(mutex_) {
    if (cut_wanted_) {
      for (const auto& link : links_) {
        link->Reset();
      }
      world_.counts.cut += links_.size();
      links_.clear();
      cut_wanted_ = false;
    }
    if (!listen_wanted_ && listener_ >= 0) {
      ::close(listener_);
      listener_ = -1;
    } else if (listen_wanted_ && listener_ < 0) {
      listener_ = ListenAt(port_);
    }
    world_.counts.open = links_.size();
  }

  int Prepare(std::vector<pollfd>& polled) WEIR_REQUIRES(mutex_) {
    polled.clear();
    polled.push_back({.fd = wake_, .events = POLLIN, .revents = 0});
    polled.push_back({.fd = listener_, .events = POLLIN, .revents = 0});
    Timestamp due = Timestamp::max();
    for (const auto& link : links_) {
      polled.push_back({.fd = link->client(), .events = link->client_events(), .revents = 0});
      polled.push_back({.fd = link->server(), .events = link->server_events(), .revents = 0});
      // A server that has ended would report it for ever.
      polled.back().fd = polled.back().events == 0 ? -1 : polled.back().fd;
      due = std::min(due, link->NextDue());
    }
    if (due == Timestamp::max()) {
      return -1;
    }
    const Duration left = std::max(due - SystemClock().Now(), Duration(0));
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
  }

  void Serve(const std::vector<pollfd>& polled) WEIR_REQUIRES(mutex_) {
    const Timestamp now = SystemClock().Now();
    for (size_t i = 0; i < links_.size(); ++i) {
      FaultLink& link = *links_[i];
      const short client = polled[2 + 2 * i].revents;
      const short server = polled[3 + 2 * i].revents;
      if (!link.OnServer(server, now) || !link.OnClient(client)) {
        links_[i].reset();
      }
    }
    // One that was served early may have been overtaken by one that was served late.
    for (auto& link : links_) {
      if (link != nullptr && !link->Deliver(now)) {
        link.reset();
      }
    }
    std::erase(links_, nullptr);
    if ((polled[1].revents & POLLIN) != 0) {
      Accept();
    }
    world_.counts.open = links_.size();
  }

  void Accept() WEIR_REQUIRES(mutex_) {
    for (;;) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (client < 0) {
        return;
      }
      const int server = ConnectTo(options_.upstream);
      if (server < 0) {
        ::close(client);
        continue;
      }
      NoDelay(client);
      ++world_.counts.accepted;
      links_.push_back(std::make_unique<FaultLink>(world_, client, server));
    }
  }

  const Options options_;
  uint16_t port_;
  int wake_ = -1;
  base::Mutex mutex_;
  int listener_ WEIR_GUARDED_BY(mutex_) = -1;
  FaultWorld world_ WEIR_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<FaultLink>> links_ WEIR_GUARDED_BY(mutex_);
  bool cut_wanted_ WEIR_GUARDED_BY(mutex_) = false;
  bool listen_wanted_ WEIR_GUARDED_BY(mutex_) = true;
  bool stop_ WEIR_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

FaultProxy::FaultProxy(const Options& options) : state_(std::make_unique<State>(options)) {}

FaultProxy::~FaultProxy() = default;

uint16_t FaultProxy::port() const noexcept {
  return state_->port();
}

void FaultProxy::Set(const Faults& faults) {
  state_->Set(faults);
}

Faults FaultProxy::faults() const {
  return state_->faults();
}

void FaultProxy::Cut() {
  state_->Do(true, state_->Listens());
}

void FaultProxy::Down() {
  state_->Do(true, false);
}

void FaultProxy::Up() {
  state_->Do(false, true);
}

FaultCounts FaultProxy::counts() const {
  return state_->counts();
}

std::string FaultProxy::Command(std::string_view line) {
  std::istringstream words{std::string(line)};
  std::string word;
  words >> word;
  Faults faults = state_->faults();
  const auto read = [&words](auto&... values) {
    return (words >> ... >> values) && (words >> std::ws).eof();
  };
  const auto set = [&](bool understood, const char* usage) {
    if (!understood) {
      return std::string("error expected: ") + usage;
    }
    state_->Set(faults);
    return std::string("ok");
  };
  const auto on_off = [&](bool& into, const char* usage) {
    std::string value;
    const bool understood = read(value) && (value == "on" || value == "off");
    into = value == "on";
    return set(understood, usage);
  };
  if (word == "delay") {
    const bool understood = read(faults.delay_share, faults.delay_min_ms, faults.delay_max_ms);
    return set(understood, "delay SHARE MIN_MS MAX_MS");
  }
  if (word == "drop") {
    return set(read(faults.drop_share), "drop SHARE");
  }
  if (word == "reorder") {
    return set(read(faults.reorder_share, faults.reorder_max_ms), "reorder SHARE MAX_MS");
  }
  if (word == "half-open") {
    return on_off(faults.half_open, "half-open on|off");
  }
  if (word == "mute") {
    return on_off(faults.mute_replies, "mute on|off");
  }
  if (word == "clear") {
    faults = {};
    return set(true, "");
  }
  if (word == "cut" || word == "down" || word == "up") {
    word == "cut" ? Cut() : word == "down" ? Down() : Up();
    return "ok";
  }
  if (word == "stats") {
    const FaultCounts counts = state_->counts();
    std::ostringstream text;
    text << "ok accepted=" << counts.accepted << " open=" << counts.open
         << " replies=" << counts.replies << " delivered=" << counts.delivered
         << " delayed=" << counts.delayed << " dropped=" << counts.dropped
         << " reordered=" << counts.reordered << " cut=" << counts.cut
         << " swallowed_bytes=" << counts.swallowed_bytes;
    return text.str();
  }
  return "error unknown command '" + word +
         "'; expected delay, drop, reorder, half-open, mute, cut, down, up, clear or stats";
}

}  // namespace weir::testing
