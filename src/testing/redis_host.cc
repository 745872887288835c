#include "testing/redis_host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace weir::testing {

namespace {

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "redis: %s\n", what.c_str());
  std::abort();
}

std::string Encode(std::span<const std::string> words) {
  std::string out = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    out += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return out;
}

std::string TagOf(const std::string& key) {
  const size_t open = key.find('{');
  const size_t close = key.find('}', open);
  return open == std::string::npos || close == std::string::npos
             ? key
             : key.substr(open + 1, close - open - 1);
}

}  // namespace

class RedisHost::Connection {
 public:
  explicit Connection(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      Die("no connection to port " + std::to_string(port));
    }
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (written <= 0) {
        Die("it does not take what is written");
      }
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }

  ScriptReply Read() {
    ScriptReply reply;
    ReadInto(reply);
    return reply;
  }

 private:
  void ReadInto(ScriptReply& reply) {
    const std::string line = Line();
    const std::string rest = line.substr(1);
    switch (line[0]) {
      case ':':
        reply.integers.push_back(std::stoll(rest));
        break;
      case '-':
        reply.error = rest;
        break;
      case '+':
        reply.text += rest;
        break;
      case '$': {
        const long size = std::stol(rest);
        reply.text += size < 0 ? "(null)" : Bytes(static_cast<size_t>(size));
        break;
      }
      case '*':
        for (long i = std::stol(rest); i > 0; --i) {
          ReadInto(reply);
          if (i > 1 && !reply.text.empty()) {
            reply.text += ' ';
          }
        }
        break;
      default:
        Die("unknown reply " + line);
    }
  }

  void Fill() {
    char bytes[65536];
    const ssize_t size = ::recv(socket_, bytes, sizeof bytes, 0);
    if (size <= 0) {
      Die("it has closed the connection");
    }
    input_.erase(0, at_);
    at_ = 0;
    input_.append(bytes, static_cast<size_t>(size));
  }

  std::string Line() {
    size_t end = 0;
    while ((end = input_.find("\r\n", at_)) == std::string::npos) {
      Fill();
    }
    std::string line = input_.substr(at_, end - at_);
    at_ = end + 2;
    return line;
  }

  std::string Bytes(size_t size) {
    while (input_.size() - at_ < size + 2) {
      Fill();
    }
    std::string bytes = input_.substr(at_, size);
    at_ += size + 2;
    return bytes;
  }

  const int socket_;
  std::string input_;
  size_t at_ = 0;
};

namespace {

// Stands before a script, which then reads the test's clock, and whose absolute ends become far
// ones.
std::string GivenTime(uint64_t spare_ms) {
  return R"(local real = redis
local redis = {error_reply = real.error_reply, call = function(...)
  local words = {...}
  if words[1] == 'TIME' then
    local text = real.call('GET', 'clock')
    return {string.sub(text, 1, -7), string.sub(text, -6)}
  elseif words[4] == 'PXAT' then
    return real.call('SET', words[2], words[3], 'PX', ')" +
         std::to_string(spare_ms) + R"(')
  end
  return real.call(...)
end}
)";
}

}  // namespace

RedisHost::RedisHost(const std::vector<uint16_t>& ports, uint64_t spare_ms, Time time)
    : first_(ports[0]) {
  for (const uint16_t port : ports) {
    auto& connection = connections_[port] = std::make_unique<Connection>(port);
    hashes_.clear();
    for (const script::Text& script : script::All()) {
      std::string text(script.text);
      const std::string spare = "local SPARE = 1000 ";
      const size_t at = text.find(spare);
      if (spare_ms != 0 && at != std::string::npos) {
        text.replace(at, spare.size(), "local SPARE = " + std::to_string(spare_ms) + " ");
      }
      if (time == Time::kGiven) {
        text = GivenTime(spare_ms) + text;
      }
      connection->Write(Encode(std::vector<std::string>{"SCRIPT", "LOAD", text}));
      hashes_.push_back(connection->Read().text);
      if (spare_ms == 0 && hashes_.back() != script.sha1) {
        Die(std::string(script.name) + ": Redis knows it as '" + hashes_.back() + "'");
      }
    }
  }
}

RedisHost::~RedisHost() = default;

void RedisHost::SetTime(int64_t now_us) {
  const std::vector<std::vector<std::string>> set = {{"SET", "clock", std::to_string(now_us)}};
  (void)Ask(set);
}

RedisHost::Connection& RedisHost::ConnectionOf(const std::string& key) {
  const auto home = homes_.find(TagOf(key));
  return *connections_[home == homes_.end() ? first_ : home->second];
}

std::vector<ScriptReply> RedisHost::Run(std::span<const ScriptQuestion> questions) {
  std::vector<ScriptReply> replies(questions.size());
  std::vector<size_t> open;
  for (size_t i = 0; i < questions.size(); ++i) {
    open.push_back(i);
  }
  while (!open.empty()) {
    std::map<Connection*, std::string> writes;
    for (const size_t i : open) {
      const ScriptQuestion& question = questions[i];
      std::vector<std::string> words = {"EVALSHA", hashes_[static_cast<size_t>(question.script)],
                                        std::to_string(question.keys.size())};
      words.insert(words.end(), question.keys.begin(), question.keys.end());
      words.insert(words.end(), question.arguments.begin(), question.arguments.end());
      writes[&ConnectionOf(question.keys[0])] += Encode(words);
    }
    for (auto& [connection, bytes] : writes) {
      connection->Write(bytes);
    }
    std::vector<std::pair<std::string, uint16_t>> moves;
    std::vector<size_t> again;
    for (const size_t i : open) {
      const std::string& key = questions[i].keys[0];
      replies[i] = ConnectionOf(key).Read();
      if (replies[i].error.starts_with("MOVED ")) {
        const size_t colon = replies[i].error.rfind(':');
        moves.emplace_back(TagOf(key),
                           static_cast<uint16_t>(std::stoi(replies[i].error.substr(colon + 1))));
        again.push_back(i);
      }
    }
    for (auto& [tag, port] : moves) {
      homes_[tag] = port;
    }
    open = std::move(again);
  }
  return replies;
}

std::vector<ScriptReply> RedisHost::Ask(std::span<const std::vector<std::string>> commands) {
  Connection& connection = *connections_[first_];
  std::string bytes;
  for (const std::vector<std::string>& command : commands) {
    bytes += Encode(command);
  }
  connection.Write(bytes);
  std::vector<ScriptReply> replies;
  for (size_t i = 0; i < commands.size(); ++i) {
    replies.push_back(connection.Read());
  }
  return replies;
}

}  // namespace weir::testing
