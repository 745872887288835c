// A channel on a real socket: TCP or unix, with TLS or without.
#pragma once

#include <memory>

#include <boost/asio/io_context.hpp>

#include "redis/host.h"
#include "redis/tls.h"

namespace weir::redis {

// Begins to connect. `tls` is nullptr for plain connections.
[[nodiscard]] std::unique_ptr<Channel> OpenSocket(boost::asio::io_context& context,
                                                  const Address& address,
                                                  std::shared_ptr<const TlsClientContext> tls,
                                                  ChannelUser& user);

}  // namespace weir::redis
