#include "testing/redis_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "weir/time.h"

#include "codec/resp/reply_parser.h"

namespace weir::testing {

namespace {

using codec::resp::Reply;
using codec::resp::ReplyType;

constexpr int kAnswerMs = 10'000;
constexpr Duration kPatience = std::chrono::seconds(60);

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "redis for a test: %s\n", what.c_str());
  std::abort();
}

// Waits without a clock of its own.
void Pause(int ms) {
  ::poll(nullptr, 0, ms);
}

template <class Condition>
bool Eventually(Condition condition) {
  for (const Timestamp end = SystemClock().Now() + kPatience; SystemClock().Now() < end;) {
    if (condition()) {
      return true;
    }
    Pause(20);
  }
  return false;
}

std::string TextOf(const Reply& reply) {
  if (reply.type == ReplyType::kNull) {
    return "(null)";
  }
  if (!reply.is_aggregate()) {
    return (reply.type == ReplyType::kError ? "-" : "") + std::string(reply.text);
  }
  std::string text;
  for (const Reply& element : reply.elements()) {
    text += (text.empty() ? "" : " ") + TextOf(element);
  }
  return text;
}

}  // namespace

uint16_t FreePort() {
  // Above the range that the kernel gives to connections, so that none of those takes it meanwhile;
  // and with room for the port of a Cluster's bus, 10000 higher.
  static uint32_t next = 12000 + static_cast<uint32_t>(::getpid()) % 8000;
  for (;;) {
    next = next >= 20000 ? 12000 : next + 1;
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<uint16_t>(next));
    const bool free = ::bind(socket, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
    ::close(socket);
    if (free) {
      return static_cast<uint16_t>(next);
    }
  }
}

RedisAdmin::RedisAdmin(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  there.sin_port = htons(port);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&there), sizeof there) != 0) {
    ::close(socket_);
    socket_ = -1;
  }
}

RedisAdmin::~RedisAdmin() {
  if (socket_ >= 0) {
    ::close(socket_);
  }
}

std::string RedisAdmin::Ask(const std::vector<std::string>& command) {
  std::string bytes = "*" + std::to_string(command.size()) + "\r\n";
  for (const std::string& word : command) {
    bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  if (socket_ < 0 || ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) {
    return "";
  }
  codec::resp::ReplyParser parser;
  while (parser.Parse(input_) != codec::resp::ReplyState::kReply) {
    char room[16384];
    pollfd polled{.fd = socket_, .events = POLLIN, .revents = 0};
    const ssize_t size =
        ::poll(&polled, 1, kAnswerMs) == 1 ? ::recv(socket_, room, sizeof room, 0) : 0;
    if (size <= 0) {
      return "";
    }
    input_.append(room, static_cast<size_t>(size));
  }
  std::string text = TextOf(parser.reply());
  input_.erase(0, parser.consumed());
  return text;
}

RedisProcess::RedisProcess(const Options& options) : options_(options), port_(options.port) {
  Start();
}

RedisProcess::~RedisProcess() {
  if (pid_ > 0) {
    Kill();
  }
}

void RedisProcess::Start() {
  for (int tries = 0; tries < 5; ++tries) {
    if (TryStart()) {
      return;
    }
    if (options_.port == 0) {
      port_ = 0;
    }
  }
  std::ifstream log(folder_.path() + "/log");
  std::fprintf(stderr, "%s\n", std::string(std::istreambuf_iterator<char>(log), {}).c_str());
  Die("redis-server does not start; it is in Debian's package redis-server");
}

bool RedisProcess::TryStart() {
  port_ = port_ != 0 ? port_ : FreePort();
  const std::string file = folder_.path() + "/redis.conf";
  std::ofstream config(file);
  config << "port " << port_ << "\nbind 127.0.0.1\ndir " << folder_.path() << "\nlogfile "
         << folder_.path() << "/log\n";
  if (!options_.sentinel) {
    config << "unixsocket " << unix_path() << "\nsave \"\"\nappendonly no\n";
  }
  for (const std::string& line : options_.config) {
    config << line << "\n";  // the last of a name holds
  }
  config.close();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nor does it outlive a test that crashed
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(nowhere, 1);
    ::dup2(nowhere, 2);
    ::execlp("redis-server", "redis-server", file.c_str(),
             options_.sentinel ? "--sentinel" : nullptr, nullptr);
    ::_exit(127);
  }
  const bool up = Eventually([this] {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return true;
    }
    const std::string answer = RedisAdmin(port_).Ask({"PING"});
    return answer == "PONG" || answer.starts_with("-NOAUTH") ||
           (!options_.wait_for_ping && ::access(unix_path().c_str(), F_OK) == 0);
  });
  return up && pid_ > 0;
}

std::string RedisProcess::Ask(const std::vector<std::string>& command) const {
  return RedisAdmin(port_).Ask(command);
}

void RedisProcess::Kill() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
  ::unlink(unix_path().c_str());
}

void RedisProcess::Pause() {
  ::kill(pid_, SIGSTOP);
}

void RedisProcess::Continue() {
  ::kill(pid_, SIGCONT);
}

void RedisProcess::Restart() {
  const uint16_t before = port_;
  if (!TryStart() || port_ != before) {
    Die("redis-server does not start again at its port");
  }
}

RedisCluster::RedisCluster(size_t masters, size_t replicas_each,
                           const std::vector<std::string>& config) {
  std::vector<std::string> lines = {"cluster-enabled yes", "cluster-node-timeout 2000",
                                    "repl-diskless-sync-delay 0"};
  lines.insert(lines.end(), config.begin(), config.end());
  for (size_t i = 0; i < masters * (1 + replicas_each); ++i) {
    nodes_.push_back(std::make_unique<RedisProcess>(RedisProcess::Options{.config = lines}));
    nodes_[i]->Ask({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
  }
  for (size_t i = 0; i < masters; ++i) {
    const size_t first = 16384 * i / masters;
    const size_t last = 16384 * (i + 1) / masters - 1;
    nodes_[i]->Ask({"CLUSTER", "ADDSLOTSRANGE", std::to_string(first), std::to_string(last)});
  }
  for (size_t i = 1; i < nodes_.size(); ++i) {
    nodes_[i]->Ask({"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes_[0]->port())});
  }
  for (size_t i = masters; i < nodes_.size(); ++i) {
    const std::string master = id(i % masters);
    if (!Eventually([&] { return nodes_[i]->Ask({"CLUSTER", "REPLICATE", master}) == "OK"; })) {
      Die("a replica does not find its master");
    }
  }
  if (!Eventually([this] { return IsReady(); })) {
    Die("the cluster does not come together");
  }
}

bool RedisCluster::IsReady() {
  for (const auto& node : nodes_) {
    const std::string info = node->Ask({"CLUSTER", "INFO"});
    const std::string known = "cluster_known_nodes:" + std::to_string(nodes_.size()) + "\r";
    if (info.find("cluster_state:ok") == std::string::npos ||
        info.find(known) == std::string::npos ||
        // A replica that was never in step with its master does not follow it either.
        node->Ask({"INFO", "replication"}).find("master_link_status:down") != std::string::npos) {
      return false;
    }
  }
  return true;
}

std::vector<uint16_t> RedisCluster::ports() const {
  std::vector<uint16_t> ports;
  for (const auto& node : nodes_) {
    ports.push_back(node->port());
  }
  return ports;
}

void RedisCluster::BeginMove(uint16_t slot, size_t from, size_t to) {
  const std::string number = std::to_string(slot);
  nodes_[to]->Ask({"CLUSTER", "SETSLOT", number, "IMPORTING", id(from)});
  nodes_[from]->Ask({"CLUSTER", "SETSLOT", number, "MIGRATING", id(to)});
}

void RedisCluster::EndMove(uint16_t slot, size_t from, size_t to) {
  const std::string number = std::to_string(slot);
  const std::string port = std::to_string(nodes_[to]->port());
  RedisAdmin source(nodes_[from]->port());
  for (;;) {
    const std::string key = source.Ask({"CLUSTER", "GETKEYSINSLOT", number, "1"});
    if (key.empty()) {
      break;
    }
    source.Ask({"MIGRATE", "127.0.0.1", port, key, "0", "5000"});
  }
  const std::string owner = id(to);
  nodes_[to]->Ask({"CLUSTER", "SETSLOT", number, "NODE", owner});
  source.Ask({"CLUSTER", "SETSLOT", number, "NODE", owner});
  // A move that begins before all have heard of this one may take an epoch that another node has
  // too, and then the two name each other as the owner.
  if (!Eventually([this] { return Agrees(); })) {
    Die("the nodes do not agree on who has which slot");
  }
}

bool RedisCluster::Agrees() {
  std::set<std::string> views;
  for (const auto& node : nodes_) {
    // id address flags master ping pong epoch link slot...
    std::istringstream lines(node->Ask({"CLUSTER", "NODES"}));
    std::set<std::string> view;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string seen;
      std::string word;
      for (size_t i = 0; words >> word; ++i) {
        if (i == 0 || i == 6 || (i > 7 && word.front() != '[')) {
          seen += word + ' ';
        }
      }
      view.insert(seen);
    }
    std::string all;
    for (const std::string& seen : view) {
      all += seen + '\n';
    }
    views.insert(all);
  }
  return views.size() == 1;
}

}  // namespace weir::testing
