#include "redis/tls.h"

#include <arpa/inet.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace weir::redis {

namespace {

constexpr size_t kRecordBytes = size_t{16} << 10;

std::string Why() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "unknown reason";
}

Error Bad(const char* what, const std::string& file) {
  return Error::Invalid("Redis URL: " + std::string(what) + "='" + file + "': " + Why());
}

// Nobody is asked for a passphrase.
int NoPassphrase(char*, int, int, void*) {
  return -1;
}

bool IsAddress(const std::string& host) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

}  // namespace

Result<std::shared_ptr<TlsClientContext>> TlsClientContext::Create(
    const TlsClientOptions& options) {
  std::shared_ptr<SSL_CTX> made(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  SSL_CTX* const context = made.get();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  ERR_clear_error();
  if (options.ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  } else if (SSL_CTX_load_verify_locations(context, options.ca_file.c_str(), nullptr) != 1) {
    return Bad("ca", options.ca_file);
  }
  SSL_CTX_set_verify(context, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (!options.certificate_file.empty()) {
    SSL_CTX_set_default_passwd_cb(context, NoPassphrase);
    if (SSL_CTX_use_certificate_chain_file(context, options.certificate_file.c_str()) != 1) {
      return Bad("cert", options.certificate_file);
    }
    if (SSL_CTX_use_PrivateKey_file(context, options.key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1) {
      return Bad("key", options.key_file);
    }
  }
  return std::shared_ptr<TlsClientContext>(new TlsClientContext(options, std::move(made)));
}

TlsStream::TlsStream(const TlsClientContext& context, const std::string& host)
    : ssl_(SSL_new(context.get())), in_(BIO_new(BIO_s_mem())), out_(BIO_new(BIO_s_mem())) {
  BIO_set_mem_eof_return(in_, -1);
  SSL_set_bio(ssl_, in_, out_);  // which now owns them
  SSL_set_connect_state(ssl_);
  const std::string& given = context.options().server_name;
  const std::string& name = given.empty() ? host : given;
  if (IsAddress(name)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), name.c_str());
  } else {
    SSL_set_tlsext_host_name(ssl_, name.c_str());
    SSL_set1_host(ssl_, name.c_str());
  }
}

TlsStream::~TlsStream() {
  SSL_free(ssl_);
}

TlsStream::State TlsStream::Shake(base::ByteBuffer& to_network) {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_);
  if (done == 1) {
    state_ = State::kOpen;
  } else if (SSL_get_error(ssl_, done) != SSL_ERROR_WANT_READ) {
    Fail();
  }
  Drain(to_network);
  return state_;
}

void TlsStream::Fail() {
  state_ = State::kFailed;
  const unsigned long code = ERR_peek_error();
  const int reason = ERR_GET_REASON(code);
  peer_is_plain_ = reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
                   reason == SSL_R_PACKET_LENGTH_TOO_LONG || reason == SSL_R_BAD_RECORD_TYPE;
  const long verified = SSL_get_verify_result(ssl_);
  error_ = Why();
  if (verified != X509_V_OK) {
    error_ += std::string(": ") + X509_verify_cert_error_string(verified);
  }
}

TlsStream::State TlsStream::Take(std::string_view from_network, base::ByteBuffer& plain,
                                 base::ByteBuffer& to_network) {
  heard_ = true;
  BIO_write(in_, from_network.data(), static_cast<int>(from_network.size()));
  if (state_ == State::kShaking && Shake(to_network) != State::kOpen) {
    return state_;
  }
  for (;;) {
    ERR_clear_error();
    size_t size = 0;
    if (SSL_read_ex(ssl_, plain.Reserve(kRecordBytes), kRecordBytes, &size) != 1) {
      const int problem = SSL_get_error(ssl_, 0);
      if (problem == SSL_ERROR_ZERO_RETURN) {
        state_ = State::kEnded;
      } else if (problem != SSL_ERROR_WANT_READ) {
        Fail();
      }
      break;
    }
    plain.Commit(size);
  }
  Drain(to_network);
  return state_;
}

void TlsStream::Encrypt(std::string_view plain, base::ByteBuffer& to_network) {
  ERR_clear_error();
  size_t written = 0;
  if (!plain.empty() && SSL_write_ex(ssl_, plain.data(), plain.size(), &written) != 1) {
    Fail();
  }
  Drain(to_network);
}

void TlsStream::Drain(base::ByteBuffer& to_network) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out_, &bytes);
  if (size > 0) {
    to_network.Append({bytes, static_cast<size_t>(size)});
    (void)BIO_reset(out_);
  }
}

}  // namespace weir::redis
