#include "net/listener.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <boost/asio/ip/tcp.hpp>

namespace weir::net {

namespace {

using boost::system::error_code;

constexpr int kBacklog = 1024;

Error Failed(const Endpoint& endpoint, const char* what) {
  const int code = errno;
  return Error{ErrorCode::kUnavailable,
               "cannot " + std::string(what) + " " + endpoint.text + ": " + std::strerror(code)};
}

Peer PeerOf(const boost::asio::generic::stream_protocol::endpoint& address) {
  if (address.protocol().family() == AF_UNIX) {
    return {.address = {}, .port = 0, .local = true};
  }
  boost::asio::ip::tcp::endpoint tcp;
  std::memcpy(tcp.data(), address.data(), std::min(address.size(), tcp.capacity()));
  tcp.resize(address.size());
  boost::asio::ip::address ip = tcp.address();
  if (ip.is_v6() && ip.to_v6().is_v4_mapped()) {
    ip = boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, ip.to_v6());
  }
  return {.address = ip.to_string(), .port = tcp.port(), .local = ip.is_loopback()};
}

}  // namespace

Result<int> Listener::Bind(const Endpoint& endpoint) {
  const int family = endpoint.address.protocol().family();
  const int descriptor = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) {
    return Failed(endpoint, "make a socket for");
  }
  const int on = 1;
  const int off = 0;
  bool good = true;
  if (family == AF_UNIX) {
    ::unlink(endpoint.unix_path.c_str());  // left by a process that is gone
  } else {
    good = ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
           ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0;
    if (family == AF_INET6) {
      good = good && ::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0;
    }
  }
  good = good &&
         ::bind(descriptor, static_cast<const sockaddr*>(endpoint.address.data()),
                static_cast<socklen_t>(endpoint.address.size())) == 0 &&
         ::listen(descriptor, kBacklog) == 0;
  if (!good) {
    const Error error = Failed(endpoint, "listen on");
    ::close(descriptor);
    return error;
  }
  return descriptor;
}

Endpoint Listener::BoundTo(int descriptor) {
  boost::asio::generic::stream_protocol::endpoint address;
  auto size = static_cast<socklen_t>(address.capacity());
  if (::getsockname(descriptor, static_cast<sockaddr*>(address.data()), &size) != 0) {
    return {};
  }
  address.resize(size);
  return Endpoint::Of(address);
}

Listener::Listener(Loop& loop, int descriptor, std::unique_ptr<SessionFactory> factory,
                   const ListenerLimits& limits)
    : loop_(loop),
      acceptor_(loop.context().get_executor(), BoundTo(descriptor).address.protocol(), descriptor),
      pause_(loop.context().get_executor()),
      factory_(std::move(factory)),
      limits_(limits) {
  error_code ignored;  // inherited sockets may block; then one accept at a time does
  acceptor_.native_non_blocking(true, ignored);
}

// Closing a listening socket resets whoever is connected but not accepted. So first the kernel is
// told to drop all that would begin a connection (who tries again finds nobody), then the queue is
// emptied.
void Listener::Close() {
  sock_filter drop_all[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program{.len = 1, .filter = drop_all};
  // A unix socket, or a kernel that forbids it, does without.
  (void)::setsockopt(acceptor_.native_handle(), SOL_SOCKET, SO_ATTACH_FILTER, &program,
                     sizeof program);
  error_code error;
  acceptor_.cancel(error);
  acceptor_.non_blocking(true, error);
  for (error.clear(); !error;) {
    Socket socket(loop_.context().get_executor());
    acceptor_.accept(socket, peer_, error);
    if (!error) {
      Open(std::move(socket));
    }
  }
  acceptor_.close(error);
  pause_.cancel();
}

void Listener::Accept() {
  acceptor_.async_accept(peer_, [this](const error_code& error, Socket socket) {
    OnAccept(error, std::move(socket));
  });
}

void Listener::OnAccept(const error_code& error, Socket socket) {
  if (error == boost::asio::error::operation_aborted || !acceptor_.is_open()) {
    return;
  }
  if (error == boost::asio::error::no_descriptors ||
      error == boost::system::errc::too_many_files_open_in_system) {
    // Closed connections give descriptors back; until then the queue of the kernel waits.
    pause_.expires_after(std::chrono::milliseconds(50));
    pause_.async_wait([this](const error_code& stopped) {
      if (!stopped) {
        Accept();
      }
    });
    return;
  }
  if (!error) {
    Open(std::move(socket));
  }
  Accept();
}

void Listener::Open(Socket socket) {
  const Peer peer = PeerOf(peer_);
  std::unique_ptr<AddressCap::Place> place;
  if (loop_.connection_count() >= limits_.connections_max ||
      (limits_.addresses != nullptr && !limits_.addresses->Take(peer.address, place))) {
    loop_.counters().refused.fetch_add(1, std::memory_order_relaxed);
    return;  // the socket closes: whoever connects sees at once that there is no room
  }
  // A peer that has gone already makes these fail; its connection then ends at the first read.
  error_code ignored;
  socket.non_blocking(true, ignored);
  if (peer_.protocol().family() != AF_UNIX) {
    socket.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
    socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
  }
  loop_.counters().accepted.fetch_add(1, std::memory_order_relaxed);
  Connection::Open(loop_, std::move(socket), factory_->Open(peer), limits_.connection,
                   std::move(place));
}

}  // namespace weir::net
