// The least that a server of HTTP can do: one epoll loop that finds where each request ends and
// sends the same bytes back. No rules, no limiter, no time-outs, no limits: what weir needs beyond
// this is the price of being a rate limiter. Prints its port and runs until it is ended.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

// What weir answers to /v1/check, byte for byte, so that the kernel has the same to copy.
constexpr std::string_view kAnswer =
    "HTTP/1.1 200 OK\r\n"
    "Date: Mon, 16 Nov 2026 07:31:38 GMT\r\n"
    "X-Weir-Status: allowed\r\n"
    "X-Weir-Rule: by-key\r\n"
    "X-Weir-Basis: store\r\n"
    "X-RateLimit-Limit: 1000000\r\n"
    "X-RateLimit-Remaining: 999999\r\n"
    "X-RateLimit-Reset: 1794814320\r\n"
    "RateLimit-Policy: \"by-key\";q=1000000;w=60\r\n"
    "RateLimit: \"by-key\";r=999999;t=22\r\n"
    "Content-Type: application/json\r\n"
    "Content-Length: 120\r\n\r\n"
    "{\"allowed\":true,\"rule\":\"by-key\",\"limit\":1000000,\"remaining\":999999,\"retry_after\":"
    "0,"
    "\"reset_after\":21.552,\"basis\":\"store\"}";
static_assert(kAnswer.size() - kAnswer.find("{") == 120);

struct Connection {
  explicit Connection(int socket) : fd(socket) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(fd); }

  int fd;
  size_t bytes = 0;
  std::array<char, 64 << 10> input;
};

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

// Bytes of the first request in `input`; 0 if it is not whole.
size_t RequestBytes(std::string_view input) {
  constexpr std::string_view kLength = "Content-Length: ";
  const size_t end = input.find("\r\n\r\n");
  if (end == std::string_view::npos) {
    return 0;
  }
  size_t body = 0;
  if (const size_t at = input.substr(0, end).find(kLength); at != std::string_view::npos) {
    std::from_chars(input.data() + at + kLength.size(), input.data() + end, body);
  }
  const size_t bytes = end + 4 + body;
  return bytes <= input.size() ? bytes : 0;
}

// Answers all requests of one read with one write. False: the connection is over.
bool Serve(Connection& connection, std::string& output) {
  const size_t room = connection.input.size() - connection.bytes;
  const ssize_t got = recv(connection.fd, connection.input.data() + connection.bytes, room, 0);
  if (got <= 0) {
    return got < 0 && errno == EAGAIN;
  }
  connection.bytes += static_cast<size_t>(got);
  std::string_view input(connection.input.data(), connection.bytes);
  output.clear();
  while (const size_t bytes = RequestBytes(input)) {
    input.remove_prefix(bytes);
    output += kAnswer;
  }
  std::memmove(connection.input.data(), input.data(), input.size());
  connection.bytes = input.size();
  // A client that does not read its answers is none of ours: the generator does.
  return send(connection.fd, output.data(), output.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(output.size());
}

int Listen() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener, 1024) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    Die("raw_epoll: no port");
  }
  std::printf("%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return listener;
}

}  // namespace

int main() {
  const int listener = Listen();
  const int epoll = epoll_create1(0);
  epoll_event listening{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &listening) != 0) {
    Die("raw_epoll: no epoll");
  }
  std::array<epoll_event, 256> events;
  std::string output;
  while (true) {
    const int count = epoll_wait(epoll, events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      auto* const connection = static_cast<Connection*>(events[static_cast<size_t>(i)].data.ptr);
      if (connection != nullptr) {
        if (!Serve(*connection, output)) {
          delete connection;
        }
        continue;
      }
      const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
      if (fd < 0) {
        continue;
      }
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      epoll_event reading{.events = EPOLLIN, .data = {.ptr = new Connection(fd)}};
      epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &reading);
    }
  }
}
