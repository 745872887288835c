// Reading from a socket as soon as something is there, without asking twice.
//
// Asio's own read tries before it waits, since its reactor is edge-triggered and nobody else can
// tell it that a socket is empty. On a server's connection, which has one question at a time, every
// other read finds nothing: a third of all system calls. The kernel can tell (TCP_INQ: what is left
// after a read, an end of stream included, a reset not), so this operation does and Asio's reactor
// then waits at once. Sockets that cannot tell (unix) are read as Asio does it.
//
// This is written against Asio's reactor itself (docs/decisions/0035), one object for the life of a
// connection, so that a read allocates nothing. With a Boost whose reactor is called differently
// it is an ordinary read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/detail/reactor.hpp>
#include <boost/asio/detail/reactor_op.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/version.hpp>

#include "net/loop.h"

#if BOOST_VERSION / 100 >= 1074 && BOOST_VERSION / 100 <= 1082 && \
    !defined(BOOST_ASIO_HAS_IO_URING_AS_DEFAULT)
#define WEIR_OWN_READS 1
#else
#define WEIR_OWN_READS 0
#endif

namespace weir::net {

using Socket = boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol, Executor>;

// Who is told of bytes that have come, or that none will.
class Reader {
 public:
  virtual void OnRead(const boost::system::error_code& error, size_t bytes) = 0;

 protected:
  ~Reader() = default;
};

// At most one read at a time. Must not go while one is under way, which closing the socket ends.
class ReadOperation final
#if WEIR_OWN_READS
    : private boost::asio::detail::reactor_op
#endif
{
 public:
  ReadOperation(Reader& reader, boost::asio::io_context& context);
  ReadOperation(const ReadOperation&) = delete;
  ReadOperation& operator=(const ReadOperation&) = delete;

  // Once, before the first read.
  void Prepare(Socket& socket);
  // What a socket that was told to be empty needs. A reset does not count as something left, so one
  // that came with bytes is found only by those who write, or who read again.
  enum class First : uint8_t {
    kWait,  // something was written since the last read
    kTry,
  };
  // The reader is called later, on the socket's loop. REQUIRES: no read is under way; the socket
  // does not block.
  void Start(Socket& socket, std::span<char> room, First first);

 private:
  Reader& reader_;
#if WEIR_OWN_READS
  static status Perform(reactor_op* base);
  static void Complete(void* owner, boost::asio::detail::operation* base,
                       const boost::system::error_code& error, size_t bytes);

  boost::asio::detail::reactor& reactor_;
  bool tells_ = false;        // the kernel, how much is left after a read
  bool was_emptied_ = false;  // by the last read that brought bytes, as it told
  int socket_ = -1;
  std::span<char> room_;
#endif
};

}  // namespace weir::net
