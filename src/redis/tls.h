// TLS from the client's side, on memory: bytes of the network in, bytes for the network out.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "weir/result.h"

#include "base/byte_buffer.h"
#include "redis/options.h"

struct ssl_ctx_st;
struct ssl_st;
struct bio_st;

namespace weir::redis {

// Made once from the options' files.
class TlsClientContext {
 public:
  // The error names the file and what is wrong with it.
  static Result<std::shared_ptr<TlsClientContext>> Create(const TlsClientOptions& options);

  [[nodiscard]] ssl_ctx_st* get() const noexcept { return context_.get(); }
  [[nodiscard]] const TlsClientOptions& options() const noexcept { return options_; }

 private:
  TlsClientContext(const TlsClientOptions& options, std::shared_ptr<ssl_ctx_st> context)
      : options_(options), context_(std::move(context)) {}

  const TlsClientOptions options_;
  const std::shared_ptr<ssl_ctx_st> context_;
};

class TlsStream {
 public:
  enum class State : uint8_t { kShaking, kOpen, kFailed, kEnded };

  // `host` is what the certificate must be for, unless the options name another.
  TlsStream(const TlsClientContext& context, const std::string& host);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] bool heard() const noexcept { return heard_; }
  // After kFailed: why, and whether the peer does not speak TLS at all.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  [[nodiscard]] bool peer_is_plain() const noexcept { return peer_is_plain_; }

  // Begins, and goes on: takes what has come, puts plain bytes and those to be sent where they go.
  State Shake(base::ByteBuffer& to_network);
  State Take(std::string_view from_network, base::ByteBuffer& plain, base::ByteBuffer& to_network);
  // REQUIRES: kOpen.
  void Encrypt(std::string_view plain, base::ByteBuffer& to_network);

 private:
  void Drain(base::ByteBuffer& to_network);
  void Fail();

  ssl_st* const ssl_;
  bio_st* const in_;
  bio_st* const out_;
  State state_ = State::kShaking;
  bool heard_ = false;
  bool peer_is_plain_ = false;
  std::string error_;
};

}  // namespace weir::redis
