// A client of HTTP/2 in memory, for tests of the session: what it is answered, call by call.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "codec/grpc/framing.h"
#include "codec/grpc/session.h"

namespace weir::codec::grpc {

inline std::string Framed(std::string_view message, bool compressed = false) {
  std::string framed(kPrefixBytes, '\0');
  WritePrefix(static_cast<uint32_t>(message.size()), framed.data());
  framed[0] = compressed ? 1 : 0;
  return framed.append(message);
}

class TestClient {
 public:
  struct Answer {
    std::map<std::string, std::string> fields;  // the last ones too
    std::string body;
    bool closed = false;
    uint32_t reset = 0;  // the code it was closed with
  };
  using Fields = std::vector<std::pair<std::string, std::string>>;

  TestClient() {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(
        callbacks,
        [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
           const uint8_t* value, size_t value_size, uint8_t, void* user_data) {
          auto& answer = static_cast<TestClient*>(user_data)->answers_[frame->hd.stream_id];
          answer.fields[{name, name + name_size}] = {value, value + value_size};
          return 0;
        });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        callbacks, [](nghttp2_session*, uint8_t, int32_t stream, const uint8_t* bytes, size_t size,
                      void* user_data) {
          static_cast<TestClient*>(user_data)->answers_[stream].body.append(
              reinterpret_cast<const char*>(bytes), size);
          return 0;
        });
    nghttp2_session_callbacks_set_on_stream_close_callback(
        callbacks, [](nghttp2_session*, int32_t stream, uint32_t code, void* user_data) {
          auto& answer = static_cast<TestClient*>(user_data)->answers_[stream];
          answer.closed = true;
          answer.reset = code;
          return 0;
        });
    nghttp2_session_callbacks_set_on_frame_recv_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
          auto* const self = static_cast<TestClient*>(user_data);
          if (frame->hd.type == NGHTTP2_GOAWAY) {
            self->goaways_.emplace_back(frame->goaway.last_stream_id, frame->goaway.error_code);
          } else if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & 1) == 0) {
            ++self->pings_;
          }
          return 0;
        });
    nghttp2_session_client_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session_, 0, nullptr, 0);
  }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;
  ~TestClient() { nghttp2_session_del(session_); }

  static Fields Asking(std::string_view path) {
    return {{":method", "POST"},    {":scheme", "http"}, {":path", std::string(path)},
            {":authority", "weir"}, {"te", "trailers"},  {"content-type", "application/grpc"}};
  }

  // The stream. The body is sent as it is; without `ends` the request stays open.
  int32_t Ask(const Fields& fields, std::string body, bool ends = true) {
    std::vector<nghttp2_nv> wire;
    for (const auto& [name, value] : fields) {
      wire.push_back({Bytes(name), Bytes(value), name.size(), value.size(), 0});
    }
    bodies_.push_back(std::make_unique<Body>(Body{std::move(body), 0, ends}));
    nghttp2_data_provider provider{};
    provider.source.ptr = bodies_.back().get();
    provider.read_callback = [](nghttp2_session*, int32_t, uint8_t* to, size_t size,
                                uint32_t* flags, nghttp2_data_source* source, void*) -> ssize_t {
      auto* const from = static_cast<Body*>(source->ptr);
      const size_t part = from->bytes.copy(reinterpret_cast<char*>(to), size, from->at);
      from->at += part;
      if (from->at == from->bytes.size()) {
        if (from->ends) {
          *flags |= NGHTTP2_DATA_FLAG_EOF;
        } else if (part == 0) {
          return NGHTTP2_ERR_DEFERRED;
        }
      }
      return static_cast<ssize_t>(part);
    };
    const int32_t stream =
        nghttp2_submit_request(session_, nullptr, wire.data(), wire.size(), &provider, nullptr);
    open_[stream] = bodies_.back().get();
    return stream;
  }
  int32_t Call(std::string_view path, std::string_view message) {
    return Ask(Asking(path), Framed(message));
  }
  void SendMore(int32_t stream, std::string_view bytes, bool ends) {
    open_[stream]->bytes.append(bytes);
    open_[stream]->ends = ends;
    nghttp2_session_resume_data(session_, stream);
  }
  void Reset(int32_t stream) { nghttp2_submit_rst_stream(session_, 0, stream, NGHTTP2_CANCEL); }

  [[nodiscard]] std::string TakeBytes() {
    std::string out;
    const uint8_t* bytes = nullptr;
    for (ssize_t size = 0; (size = nghttp2_session_mem_send(session_, &bytes)) > 0;) {
      out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    }
    return out;
  }
  void Receive(std::string_view bytes) {
    nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(bytes.data()),
                             bytes.size());
  }
  // To and fro until both are silent. False: the server has ended it.
  bool Exchange(Session& server, Timestamp now) {
    bool going_on = true;
    for (bool silent = false; !silent && going_on;) {
      const std::string asked = TakeBytes();
      going_on = server.Receive(asked, now);
      const std::string answered = Take(server);
      Receive(answered);
      silent = asked.empty() && answered.empty();
    }
    return going_on && server.Receive({}, now);
  }
  static std::string Take(Session& server) {
    base::ByteBuffer output;
    while (server.Send(output)) {
    }
    return std::string(output.view());
  }

  Answer& answer(int32_t stream) { return answers_[stream]; }
  [[nodiscard]] const auto& goaways() const { return goaways_; }
  [[nodiscard]] int pings() const { return pings_; }

 private:
  struct Body {
    std::string bytes;
    size_t at;
    bool ends;
  };

  static uint8_t* Bytes(const std::string& text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));  // NOLINT: not changed
  }

  nghttp2_session* session_ = nullptr;
  std::vector<std::unique_ptr<Body>> bodies_;
  std::map<int32_t, Body*> open_;
  std::map<int32_t, Answer> answers_;
  std::vector<std::pair<int32_t, uint32_t>> goaways_;
  int pings_ = 0;
};

}  // namespace weir::codec::grpc
