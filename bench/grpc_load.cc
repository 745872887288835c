// Asks ShouldRateLimit as fast as it is answered and checks every status, which h2load does not.
// usage: grpc_load PORT CONNECTIONS STREAMS SECONDS KEYS DESCRIPTORS tls|plain; prints JSON.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>

namespace {

struct Shape {
  uint16_t port = 0;
  unsigned connections = 1;
  unsigned streams = 1;
  double seconds = 1;
  uint64_t keys = 1;
  unsigned descriptors = 1;
  bool tls = false;
};

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "grpc_load: %s\n", what);
  std::exit(1);
}

uint64_t answers = 0;
uint64_t errors = 0;

class Connection {
 public:
  Connection(const Shape& shape, SSL_CTX* tls, uint64_t seed) : shape_(shape), random_(seed) {
    descriptor_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(shape.port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(descriptor_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
      Fail("cannot connect");
    }
    const int on = 1;
    ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (tls != nullptr) {
      static constexpr unsigned char kH2[] = {2, 'h', '2'};
      ssl_ = SSL_new(tls);
      SSL_set_fd(ssl_, descriptor_);
      SSL_set_alpn_protos(ssl_, kH2, sizeof kH2);
      if (SSL_connect(ssl_) != 1) {
        Fail("no TLS");
      }
    }
    ::fcntl(descriptor_, F_SETFL, O_NONBLOCK);
    MakeSession();
    bodies_.resize(shape.streams);
    for (Body& body : bodies_) {
      Ask(body);
    }
  }

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] bool wants_write() const { return !output_.empty(); }

  void Work() {
    char bytes[64 << 10];
    for (;;) {
      const ssize_t size = ssl_ != nullptr ? SSL_read(ssl_, bytes, sizeof bytes)
                                           : ::recv(descriptor_, bytes, sizeof bytes, 0);
      if (size == 0) {
        Fail("the server has ended a connection");
      }
      if (size < 0) {
        break;
      }
      if (nghttp2_session_mem_recv(session_, reinterpret_cast<uint8_t*>(bytes),
                                   static_cast<size_t>(size)) < 0) {
        Fail("not HTTP/2");
      }
      if (ssl_ == nullptr && static_cast<size_t>(size) < sizeof bytes) {
        break;
      }
    }
    Flush();
  }

  void Flush() {
    const uint8_t* bytes = nullptr;
    for (ssize_t size = 0; (size = nghttp2_session_mem_send(session_, &bytes)) > 0;) {
      output_.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    }
    while (!output_.empty()) {
      const ssize_t sent = ssl_ != nullptr
                               ? SSL_write(ssl_, output_.data(), static_cast<int>(output_.size()))
                               : ::send(descriptor_, output_.data(), output_.size(), MSG_NOSIGNAL);
      if (sent <= 0) {
        return;
      }
      output_.erase(0, static_cast<size_t>(sent));
    }
  }

 private:
  struct Body {
    std::string bytes;
    size_t at = 0;
    bool good = false;
  };

  void MakeSession() {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(
        callbacks, [](nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t, void*) {
          if (std::string_view(reinterpret_cast<const char*>(name), name_size) == "grpc-status") {
            static_cast<Body*>(nghttp2_session_get_stream_user_data(session, frame->hd.stream_id))
                ->good = value_size == 1 && *value == '0';
          }
          return 0;
        });
    nghttp2_session_callbacks_set_on_stream_close_callback(
        callbacks, [](nghttp2_session* session, int32_t stream, uint32_t, void* user_data) {
          auto& body = *static_cast<Body*>(nghttp2_session_get_stream_user_data(session, stream));
          ++answers;
          errors += body.good ? 0 : 1;
          static_cast<Connection*>(user_data)->Ask(body);
          return 0;
        });
    nghttp2_session_client_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20};
    nghttp2_submit_settings(session_, 0, &window, 1);
    nghttp2_session_set_local_window_size(session_, 0, 0, 1 << 24);
  }

  static void Append(std::string& to, char field, std::string_view text) {
    to += field;
    to += static_cast<char>(text.size());
    to += text;
  }

  void Ask(Body& body) {
    std::string message;
    Append(message, 0x0a, "bench");
    for (unsigned i = 0; i < shape_.descriptors; ++i) {
      random_ = random_ * 6364136223846793005U + 1442695040888963407U;
      const std::string key = std::to_string((random_ >> 33) % shape_.keys);
      std::string entry;
      Append(entry, 0x0a, "key");
      Append(entry, 0x12, key);
      std::string descriptor;
      Append(descriptor, 0x0a, entry);
      Append(message, 0x12, descriptor);
    }
    body.bytes.assign(4, '\0');
    body.bytes += static_cast<char>(message.size());
    body.bytes += message;
    body.at = 0;
    body.good = false;
    static const std::vector<nghttp2_nv> kFields = [] {
      const auto field = [](const char* name, const char* value) {
        return nghttp2_nv{reinterpret_cast<uint8_t*>(const_cast<char*>(name)),   // NOLINT
                          reinterpret_cast<uint8_t*>(const_cast<char*>(value)),  // NOLINT
                          std::strlen(name), std::strlen(value),
                          NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
      };
      return std::vector{
          field(":method", "POST"),
          field(":scheme", "http"),
          field(":path", "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"),
          field(":authority", "localhost"),
          field("te", "trailers"),
          field("content-type", "application/grpc")};
    }();
    nghttp2_data_provider provider{};
    provider.source.ptr = &body;
    provider.read_callback = [](nghttp2_session*, int32_t, uint8_t* to, size_t size,
                                uint32_t* flags, nghttp2_data_source* source, void*) -> ssize_t {
      auto& from = *static_cast<Body*>(source->ptr);
      const size_t part = from.bytes.copy(reinterpret_cast<char*>(to), size, from.at);
      from.at += part;
      *flags = from.at == from.bytes.size() ? NGHTTP2_DATA_FLAG_EOF : NGHTTP2_DATA_FLAG_NONE;
      return static_cast<ssize_t>(part);
    };
    if (nghttp2_submit_request(session_, nullptr, kFields.data(), kFields.size(), &provider,
                               &body) < 0) {
      Fail("no more streams");
    }
  }

  const Shape& shape_;
  int descriptor_ = -1;
  SSL* ssl_ = nullptr;
  nghttp2_session* session_ = nullptr;
  std::vector<Body> bodies_;
  std::string output_;
  uint64_t random_;
};

}  // namespace

int main(int count, char** words) {
  if (count != 8) {
    Fail("usage: grpc_load PORT CONNECTIONS STREAMS SECONDS KEYS DESCRIPTORS tls|plain");
  }
  const Shape shape{.port = static_cast<uint16_t>(std::atoi(words[1])),
                    .connections = static_cast<unsigned>(std::atoi(words[2])),
                    .streams = static_cast<unsigned>(std::atoi(words[3])),
                    .seconds = std::atof(words[4]),
                    .keys = std::strtoull(words[5], nullptr, 10),
                    .descriptors = static_cast<unsigned>(std::atoi(words[6])),
                    .tls = std::string_view(words[7]) == "tls"};
  SSL_CTX* const tls = shape.tls ? SSL_CTX_new(TLS_client_method()) : nullptr;
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<pollfd> waiting;
  for (unsigned i = 0; i < shape.connections; ++i) {
    connections.push_back(std::make_unique<Connection>(shape, tls, i + 1));
    connections.back()->Flush();
    waiting.push_back({connections.back()->descriptor(), POLLIN, 0});
  }
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto began = now();
  const auto most = std::chrono::duration<double>(shape.seconds);
  while (now() - began < most) {
    for (size_t i = 0; i < waiting.size(); ++i) {
      waiting[i].events =
          static_cast<short>(POLLIN | (connections[i]->wants_write() ? POLLOUT : 0));
    }
    ::poll(waiting.data(), waiting.size(), 100);
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) {
        connections[i]->Work();
      }
    }
  }
  const double took = std::chrono::duration<double>(now() - began).count();
  std::printf("{\"answers\": %llu, \"errors\": %llu, \"answers_per_second\": %.1f}\n",
              static_cast<unsigned long long>(answers), static_cast<unsigned long long>(errors),
              static_cast<double>(answers) / took);
  std::fflush(stdout);
  std::_Exit(0);
}
