#include "server/inherited_sockets.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace weir::server {

namespace {

constexpr int kFirstDescriptor = 3;

// A front, or a front within TLS.
bool IsKnown(std::string_view name) {
  for (const std::string_view suffix : {"-mtls", "-tls"}) {
    if (name.ends_with(suffix)) {
      name.remove_suffix(suffix.size());
      break;
    }
  }
  return name == "http" || name == "resp" || name == "grpc" || name == "admin";
}

std::string_view Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : std::string_view();
}

}  // namespace

std::vector<int> InheritedSockets(std::string_view name) {
  std::vector<int> found;
  // The variables may have been meant for a process before us.
  if (Variable("LISTEN_PID") != std::to_string(::getpid())) {
    return found;
  }
  const int count = std::atoi(std::string(Variable("LISTEN_FDS")).c_str());
  std::string_view names = Variable("LISTEN_FDNAMES");
  for (int i = 0; i < count; ++i) {
    const size_t colon = names.find(':');
    std::string_view own = names.substr(0, colon);
    names.remove_prefix(colon == std::string_view::npos ? names.size() : colon + 1);
    if (!IsKnown(own)) {
      own = "http";
    }
    if (own == name) {
      const int descriptor = kFirstDescriptor + i;
      ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
      found.push_back(descriptor);
    }
  }
  return found;
}

void NotifySystemd(std::string_view state) {
  const std::string_view path = Variable("NOTIFY_SOCKET");
  sockaddr_un to{};
  if (path.empty() || path.size() >= sizeof to.sun_path) {
    return;
  }
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, path.data(), path.size());
  if (path.starts_with('@')) {
    to.sun_path[0] = '\0';  // an abstract name
  }
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) {
    return;
  }
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  // If nobody listens there is nobody to tell.
  (void)::sendto(descriptor, state.data(), state.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&to), size);
  ::close(descriptor);
}

}  // namespace weir::server
