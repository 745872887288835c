#include "apps/weir/top/admin_client.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "apps/weir/http_response.h"
#include "base/byte_buffer.h"

namespace weir::top {

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

Result<std::string> Body(const app::HttpResponse& response) {
  if (response.status == 200) {
    return std::string(response.body);
  }
  std::string message = "status " + std::to_string(response.status);
  if (response.status == 401 || response.status == 403) {
    message += ": the admin address wants its token (--token-file)";
  } else if (response.status == 404) {
    message += ": not the admin address of weir? (weir serve --admin)";
  }
  return Unavailable(message);
}

}  // namespace

Result<std::string> AdminClient::Get(const std::string& path) const {
  auto address = app::Address::Resolve(target_);
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
  std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: " + target_.authority + "\r\nConnection: close\r\n";
  if (!token_.empty()) {
    request += "Authorization: Bearer " + token_ + "\r\n";
  }
  request += "\r\n";
  if (send(socket.fd(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return failed("ask");
  }
  base::ByteBuffer input;
  app::HttpResponseReader reader;
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
      case app::ResponseState::kMore:
        break;
      case app::ResponseState::kResponse:
        return Body(reader.response());
      case app::ResponseState::kError:
        return Unavailable(target_.authority + ": " + reader.error());
    }
  }
}

}  // namespace weir::top
