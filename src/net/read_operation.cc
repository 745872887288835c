#include "net/read_operation.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace weir::net {

namespace asio = boost::asio;

#if WEIR_OWN_READS

namespace {

// What the reactor knows of a socket, which Asio shows to derived classes only.
struct Inner : Socket {
  static auto& Of(Socket& socket) { return (socket.*(&Inner::impl_)).get_implementation(); }
};

}  // namespace

ReadOperation::ReadOperation(Reader& reader, boost::asio::io_context& context)
    : reactor_op({}, &ReadOperation::Perform, &ReadOperation::Complete),
      reader_(reader),
      reactor_(asio::use_service<asio::detail::reactor>(context)) {}

void ReadOperation::Prepare(Socket& socket) {
  const int on = 1;
  // Not a TCP socket, or an old kernel: then nobody tells, and reads are tried.
  tells_ = ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_INQ, &on, sizeof on) == 0;
}

void ReadOperation::Start(Socket& socket, std::span<char> room, First first) {
  auto& inner = Inner::Of(socket);
  socket_ = inner.socket_;
  room_ = room;
  ec_ = {};
  bytes_transferred_ = 0;
  // Past the reactor, which was told that there is nothing to try. It need not know: what came
  // after that has an edge of its own, which it has seen or will see.
  if (first == First::kTry && was_emptied_ && Perform(this) != not_done) {
    reactor_.post_immediate_completion(this, /*is_continuation=*/true);
    return;
  }
  reactor_.start_op(asio::detail::reactor::read_op, inner.socket_, inner.reactor_data_, this,
                    /*is_continuation=*/true,
                    /*allow_speculative=*/true);
}

asio::detail::reactor_op::status ReadOperation::Perform(reactor_op* base) {
  auto& self = *static_cast<ReadOperation*>(base);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  iovec room{.iov_base = self.room_.data(), .iov_len = self.room_.size()};
  msghdr message{};
  message.msg_iov = &room;
  message.msg_iovlen = 1;
  if (self.tells_) {
    // Nobody else has room for control messages: a peer on a unix socket could fill it with
    // descriptors, which would be ours to close.
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
  ssize_t got = 0;
  do {
    got = ::recvmsg(self.socket_, &message, 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return not_done;
    }
    self.ec_.assign(errno, boost::system::system_category());
    return done;
  }
  if (got == 0) {
    self.ec_ = asio::error::eof;
    return done_and_exhausted;
  }
  self.bytes_transferred_ = static_cast<size_t>(got);
  self.was_emptied_ = false;
  const cmsghdr* const told = CMSG_FIRSTHDR(&message);
  if (told == nullptr || told->cmsg_level != IPPROTO_TCP || told->cmsg_type != TCP_CM_INQ) {
    return done;
  }
  int left = 0;
  std::memcpy(&left, CMSG_DATA(told), sizeof left);
  self.was_emptied_ = left == 0;
  return self.was_emptied_ ? done_and_exhausted : done;
}

void ReadOperation::Complete(void* owner, asio::detail::operation* base,
                             const boost::system::error_code&, size_t) {
  auto& self = *static_cast<ReadOperation*>(base);
  if (owner != nullptr) {
    // With its own copies: the reader may read again, or go, and take this along.
    const boost::system::error_code error = self.ec_;
    self.reader_.OnRead(error, self.bytes_transferred_);
  }
}

#else

ReadOperation::ReadOperation(Reader& reader, boost::asio::io_context&) : reader_(reader) {}

void ReadOperation::Prepare(Socket&) {}

void ReadOperation::Start(Socket& socket, std::span<char> room, First) {
  socket.async_read_some(asio::buffer(room.data(), room.size()),
                         [this](const boost::system::error_code& error, size_t bytes) {
                           reader_.OnRead(error, bytes);
                         });
}

#endif

}  // namespace weir::net
