#include "redis/socket.h"

#include <deque>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>

namespace weir::redis {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

using Executor = asio::io_context::executor_type;
using Protocol = asio::generic::stream_protocol;
using Stream = asio::basic_stream_socket<Protocol, Executor>;
using Resolver = asio::ip::basic_resolver<asio::ip::tcp, Executor>;

constexpr size_t kReadBytes = size_t{32} << 10;
constexpr size_t kKeptBytes = size_t{256} << 10;

// Lives as long as its operations do; without a user it only waits for their end.
class Socket final : public std::enable_shared_from_this<Socket> {
 public:
  Socket(asio::io_context& context, ChannelUser& user, std::shared_ptr<const TlsClientContext> tls,
         const std::string& host)
      : stream_(context), resolver_(context), user_(&user), tls_(std::move(tls)) {
    if (tls_ != nullptr) {
      shield_.emplace(*tls_, host);
    }
  }

  void Open(const Address& address) {
    if (!address.unix_path.empty()) {
      endpoints_.emplace_back(asio::local::stream_protocol::endpoint(address.unix_path));
      ConnectNext();
      return;
    }
    error_code error;
    const asio::ip::address literal = asio::ip::make_address(address.host, error);
    if (!error) {
      endpoints_.emplace_back(asio::ip::tcp::endpoint(literal, address.port));
      ConnectNext();
      return;
    }
    resolver_.async_resolve(address.host, std::to_string(address.port),
                            [self = shared_from_this()](const error_code& failed,
                                                        const Resolver::results_type& results) {
                              for (const auto& result : results) {
                                self->endpoints_.emplace_back(result.endpoint());
                              }
                              if (failed || self->endpoints_.empty()) {
                                self->End(Trouble::kUnresolved, failed.message());
                              } else {
                                self->ConnectNext();
                              }
                            });
  }

  void Send(base::ByteBuffer& output) {
    if (shield_) {
      shield_->Encrypt(output.view(), output_);
      output.Clear();
      Write(output_);
    } else if (output_.empty()) {
      Write(output);
      output_.Append(output.view());
      output.Clear();
    } else {
      output_.Append(output.view());
      output.Clear();
    }
    output.Shrink(kKeptBytes);
    WriteRest();
  }

  void Leave() {
    user_ = nullptr;
    resolver_.cancel();
    error_code ignored;  // it is gone either way
    stream_.close(ignored);
  }

  [[nodiscard]] Trouble stuck() const noexcept {
    if (!connected_ || !shield_) {
      return Trouble::kUnreachable;
    }
    return shield_->heard() ? Trouble::kTls : Trouble::kTlsToPlain;
  }

 private:
  void ConnectNext() {
    const Protocol::endpoint endpoint = endpoints_.front();
    endpoints_.pop_front();
    error_code ignored;
    stream_.close(ignored);
    stream_.async_connect(
        endpoint, [self = shared_from_this()](const error_code& error) { self->OnConnect(error); });
  }

  void OnConnect(const error_code& error) {
    if (user_ == nullptr) {
      return;
    }
    if (error && !endpoints_.empty()) {
      ConnectNext();
      return;
    }
    if (error) {
      const bool refused = error == asio::error::connection_refused ||
                           error == boost::system::errc::no_such_file_or_directory;
      End(refused ? Trouble::kRefused : Trouble::kUnreachable, error.message());
      return;
    }
    connected_ = true;
    error_code ignored;  // a unix socket has neither
    stream_.set_option(asio::ip::tcp::no_delay(true), ignored);
    stream_.set_option(asio::socket_base::keep_alive(true), ignored);
    stream_.non_blocking(true, ignored);
    if (shield_) {
      shield_->Shake(output_);
      Write(output_);
      WriteRest();
    } else {
      user_->OnOpened();
    }
    Read();
  }

  void Read() {
    if (user_ == nullptr) {
      return;
    }
    base::ByteBuffer& into = shield_ ? cipher_ : input_;
    stream_.async_read_some(asio::buffer(into.Reserve(kReadBytes), kReadBytes),
                            [self = shared_from_this()](const error_code& error, size_t bytes) {
                              self->OnRead(error, bytes);
                            });
  }

  void OnRead(const error_code& error, size_t bytes) {
    if (user_ == nullptr) {
      return;
    }
    if (error) {
      if (shield_ && shield_->state() == TlsStream::State::kShaking) {
        End(shield_->heard() ? Trouble::kTls : Trouble::kTlsToPlain,
            "it hung up: " + error.message());
      } else {
        End(Trouble::kLost, error.message());
      }
      return;
    }
    if (shield_) {
      cipher_.Commit(bytes);
      if (!Decrypt()) {
        return;
      }
    } else {
      input_.Commit(bytes);
    }
    if (!input_.empty()) {
      user_->OnBytes(input_);
      input_.Shrink(kKeptBytes);
    }
    Read();
  }

  // False: it has ended.
  bool Decrypt() {
    const bool shaking = shield_->state() == TlsStream::State::kShaking;
    const TlsStream::State state = shield_->Take(cipher_.view(), input_, output_);
    cipher_.Clear();
    Write(output_);
    WriteRest();
    if (state == TlsStream::State::kFailed) {
      End(shield_->peer_is_plain() ? Trouble::kTlsToPlain : Trouble::kTls, shield_->error());
      return false;
    }
    if (state == TlsStream::State::kEnded) {
      End(Trouble::kLost, "the server ended TLS");
      return false;
    }
    if (shaking && state == TlsStream::State::kOpen) {
      user_->OnOpened();
    }
    return user_ != nullptr;
  }

  // What the kernel takes at once. An error shows at the next read.
  void Write(base::ByteBuffer& from) {
    while (!from.empty() && !writing_) {
      error_code error;
      const size_t sent = stream_.write_some(asio::buffer(from.data(), from.size()), error);
      if (error == asio::error::would_block) {
        return;
      }
      if (error) {
        from.Clear();
        return;
      }
      from.Consume(sent);
    }
  }

  void WriteRest() {
    if (output_.empty() || writing_) {
      return;
    }
    writing_ = true;
    stream_.async_wait(Stream::wait_write, [self = shared_from_this()](const error_code& error) {
      self->writing_ = false;
      if (!error && self->user_ != nullptr) {
        self->Write(self->output_);
        self->WriteRest();
      }
    });
  }

  void End(Trouble why, const std::string& text) {
    if (user_ != nullptr) {
      ChannelUser& user = *user_;
      Leave();
      user.OnClosed(why, text);
    }
  }

  Stream stream_;
  Resolver resolver_;
  ChannelUser* user_;
  std::deque<Protocol::endpoint> endpoints_;  // to be tried
  bool connected_ = false;
  bool writing_ = false;
  base::ByteBuffer cipher_;
  base::ByteBuffer input_;
  base::ByteBuffer output_;  // what the kernel did not take yet
  const std::shared_ptr<const TlsClientContext> tls_;
  std::optional<TlsStream> shield_;
};

class SocketChannel final : public Channel {
 public:
  explicit SocketChannel(std::shared_ptr<Socket> socket) : socket_(std::move(socket)) {}
  ~SocketChannel() override { socket_->Leave(); }
  void Send(base::ByteBuffer& output) override { socket_->Send(output); }
  [[nodiscard]] Trouble stuck() const noexcept override { return socket_->stuck(); }

 private:
  const std::shared_ptr<Socket> socket_;
};

}  // namespace

std::unique_ptr<Channel> OpenSocket(asio::io_context& context, const Address& address,
                                    std::shared_ptr<const TlsClientContext> tls,
                                    ChannelUser& user) {
  auto socket = std::make_shared<Socket>(context, user, std::move(tls), address.host);
  socket->Open(address);
  return std::make_unique<SocketChannel>(std::move(socket));
}

}  // namespace weir::redis
