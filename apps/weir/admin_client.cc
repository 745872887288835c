#include "apps/weir/admin_client.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "apps/weir/http_response.h"
#include "base/byte_buffer.h"

namespace weir::app {

namespace {

constexpr timeval kPatience{.tv_sec = 2, .tv_usec = 0};
constexpr size_t kReadBytes = 64 << 10;

Error Unavailable(std::string message) {
  return Error{ErrorCode::kUnavailable, std::move(message)};
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

Result<std::string> Body(const HttpResponse& response) {
  if (response.status == 200) {
    return std::string(response.body);
  }
  std::string message = "the server answers with status " + std::to_string(response.status);
  if (response.status == 401 || response.status == 403) {
    message += ": the admin address wants its token (--token-file)";
  } else if (response.status == 404) {
    message += ": not the admin address of weir? (weir serve --admin)";
  } else if (!response.body.empty()) {
    message += ": " + std::string(response.body);
  }
  return Unavailable(message);
}

}  // namespace

Result<std::string> ReadToken(const std::string& path) {
  std::string token;
  std::ifstream file(path);
  if (!path.empty() && (!std::getline(file, token) || token.empty())) {
    return Error::Invalid("--token-file: no token in the first line of '" + path + "'");
  }
  return token;
}

Result<AdminClient> AdminClient::Open(const std::string& server, const std::string& token_file) {
  auto target = Target::Parse(server);
  if (!target || target->protocol != Protocol::kHttp || target->path != "/") {
    return Error::Invalid("--server: found '" + server +
                          "'; expected the admin address of a server, as in "
                          "http://127.0.0.1:8081");
  }
  auto token = ReadToken(token_file);
  if (!token) {
    return token.error();
  }
  return AdminClient(*std::move(target), *std::move(token));
}

Result<std::string> AdminClient::Get(const std::string& path) const {
  return Ask("GET " + path + " HTTP/1.1\r\n", "");
}

Result<std::string> AdminClient::Post(const std::string& path, std::string_view accept,
                                      std::string_view json) const {
  return Ask("POST " + path + " HTTP/1.1\r\nAccept: " + std::string(accept) +
                 "\r\nContent-Type: application/json\r\nContent-Length: " +
                 std::to_string(json.size()) + "\r\n",
             json);
}

Result<std::string> AdminClient::Ask(std::string request, std::string_view body) const {
  auto address = Address::Resolve(target_);
  if (!address) {
    return address.error();
  }
  const Socket socket(::socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto failed = [this](const char* what) {
    return Unavailable("cannot " + std::string(what) + " " + target_.authority + ": " +
                       std::strerror(errno == EAGAIN || errno == EINPROGRESS ? ETIMEDOUT : errno));
  };
  // The time-out for sending is that of connecting, too.
  if (setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience) != 0 ||
      setsockopt(socket.fd(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience) != 0 ||
      connect(socket.fd(), address->get(), address->bytes) != 0) {
    return failed("connect to");
  }
  request += "Host: " + target_.authority + "\r\nConnection: close\r\n";
  if (!token_.empty()) {
    request += "Authorization: Bearer " + token_ + "\r\n";
  }
  request += "\r\n";
  request += body;
  if (send(socket.fd(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return failed("ask");
  }
  base::ByteBuffer input;
  HttpResponseReader reader;
  while (true) {
    const ssize_t got = recv(socket.fd(), input.Reserve(kReadBytes), kReadBytes, 0);
    if (got < 0) {
      return failed("hear from");
    }
    if (got == 0) {
      return Unavailable(target_.authority + " ended the connection before it had answered");
    }
    input.Commit(static_cast<size_t>(got));
    switch (reader.Read(input.view())) {
      case ResponseState::kMore:
        break;
      case ResponseState::kResponse:
        return Body(reader.response());
      case ResponseState::kError:
        return Unavailable(target_.authority + ": " + reader.error());
    }
  }
}

}  // namespace weir::app
