// Takes connections on one loop. Each loop has a listener of its own on the same address, and the
// kernel spreads connections over them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <boost/asio/basic_socket_acceptor.hpp>

#include "weir/result.h"

#include "net/address_cap.h"
#include "net/connection.h"
#include "net/endpoint.h"
#include "net/loop.h"
#include "net/session.h"

namespace weir::net {

struct ListenerLimits {
  ConnectionLimits connection;
  size_t connections_max = 10'000;  // on this loop, over all listeners
  AddressCap* addresses = nullptr;  // of all loops; nullptr: none. Outlives the loop
};

class Listener {
 public:
  using Acceptor =
      boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol, Executor>;

  // Opens a socket for one loop; several may be bound to the same TCP endpoint. The error says why
  // it cannot be had.
  static Result<int> Bind(const Endpoint& endpoint);
  // What a socket is bound to, with the port that the system chose for port 0.
  static Endpoint BoundTo(int descriptor);

  // Takes over the descriptor, which is bound and listening. On the loop, or before it runs.
  Listener(Loop& loop, int descriptor, std::unique_ptr<SessionFactory> factory,
           const ListenerLimits& limits);

  // On the loop.
  void Start() { Accept(); }
  // Takes those who have connected already, and no more.
  void Close();

 private:
  void Accept();
  void OnAccept(const boost::system::error_code& error, Socket socket);
  void Open(Socket socket);

  Loop& loop_;
  Acceptor acceptor_;
  Acceptor::endpoint_type peer_;
  boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                    boost::asio::wait_traits<std::chrono::steady_clock>, Executor>
      pause_;
  const std::unique_ptr<SessionFactory> factory_;
  const ListenerLimits limits_;
};

}  // namespace weir::net
