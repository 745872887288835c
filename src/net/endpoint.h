// Where to listen: "127.0.0.1:8080", "[::1]:8080", ":8080" (every address), "unix:/run/weir.sock".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <boost/asio/generic/stream_protocol.hpp>

#include "weir/result.h"

namespace weir::net {

struct Endpoint {
  boost::asio::generic::stream_protocol::endpoint address;
  std::string text;         // as to be shown: an address and its real port
  std::string unix_path;    // empty unless it is a unix socket
  bool local_only = false;  // nobody but this machine can reach it

  // The error names what was found and what is expected.
  static Result<Endpoint> Parse(std::string_view text);
  // What a socket is bound to.
  static Endpoint Of(const boost::asio::generic::stream_protocol::endpoint& address);
};

}  // namespace weir::net
