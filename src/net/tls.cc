#include "net/tls.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace weir::net {

namespace {

// The first error that OpenSSL noted, in its words; the rest is forgotten.
std::string Why() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "unknown reason";
}

Error Bad(const char* what, const std::string& file, const std::string& why) {
  return Error::Invalid(std::string(what) + " " + file + ": " + why);
}

// Nobody is asked for a passphrase.
int NoPassphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

int ChooseProtocol(SSL*, const unsigned char** out, unsigned char* out_size,
                   const unsigned char* offered, unsigned offered_size, void* own) {
  const auto& protocols = *static_cast<const std::string*>(own);
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size,
                            reinterpret_cast<const unsigned char*>(protocols.data()),
                            static_cast<unsigned>(protocols.size()), offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

Result<void> UseCertificate(SSL_CTX& context, const TlsOptions& options) {
  if (SSL_CTX_use_certificate_chain_file(&context, options.certificate_file.c_str()) != 1) {
    return Bad("certificate", options.certificate_file, Why());
  }
  const X509* const certificate = SSL_CTX_get0_certificate(&context);
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
    return Bad("certificate", options.certificate_file, "has expired");
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
    return Bad("certificate", options.certificate_file, "is not valid yet");
  }
  bool encrypted = false;
  SSL_CTX_set_default_passwd_cb(&context, NoPassphrase);
  SSL_CTX_set_default_passwd_cb_userdata(&context, &encrypted);
  const bool read =
      SSL_CTX_use_PrivateKey_file(&context, options.key_file.c_str(), SSL_FILETYPE_PEM) == 1;
  SSL_CTX_set_default_passwd_cb_userdata(&context, nullptr);
  SSL_CTX_set_default_passwd_cb(&context, nullptr);
  if (encrypted) {
    return Bad("key", options.key_file,
               "is encrypted, and nobody is asked for a passphrase; store it plain and readable by "
               "weir alone");
  }
  if (!read || SSL_CTX_check_private_key(&context) != 1) {
    return Bad("key", options.key_file, Why());
  }
  return {};
}

std::string TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

struct FreeNames {
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};
using AlternativeNames = std::unique_ptr<GENERAL_NAMES, FreeNames>;

AlternativeNames NamesOf(X509* certificate) {
  return AlternativeNames(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
}

bool IsCalled(X509* certificate, const std::string& wanted) {
  if (X509_check_host(certificate, wanted.data(), wanted.size(),
                      X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr) == 1 ||
      X509_check_ip_asc(certificate, wanted.c_str(), 0) == 1) {
    return true;
  }
  const AlternativeNames names = NamesOf(certificate);
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI && TextOf(name->d.uniformResourceIdentifier) == wanted) {
      return true;
    }
  }
  return false;
}

// After a certificate was found good: whether it is one of those that are wanted.
int CheckName(int good, X509_STORE_CTX* store) {
  if (good != 1 || X509_STORE_CTX_get_error_depth(store) != 0) {
    return good;
  }
  const auto* const ssl = static_cast<const SSL*>(
      X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const auto& names =
      *static_cast<const std::vector<std::string>*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  X509* const certificate = X509_STORE_CTX_get_current_cert(store);
  if (std::any_of(names.begin(), names.end(),
                  [certificate](const std::string& name) { return IsCalled(certificate, name); })) {
    return 1;
  }
  X509_STORE_CTX_set_error(store, X509_V_ERR_HOSTNAME_MISMATCH);
  return 0;
}

Result<void> AskClients(SSL_CTX& context, const TlsOptions& options) {
  if (options.client_ca_file.empty()) {
    return {};
  }
  STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(options.client_ca_file.c_str());
  if (names == nullptr ||
      SSL_CTX_load_verify_locations(&context, options.client_ca_file.c_str(), nullptr) != 1) {
    sk_X509_NAME_pop_free(names, X509_NAME_free);
    return Bad("client CA", options.client_ca_file, Why());
  }
  SSL_CTX_set_client_CA_list(&context, names);
  // OpenSSL takes what it does not change as not const.
  SSL_CTX_set_app_data(&context, const_cast<std::vector<std::string>*>(&options.client_names));
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     options.client_names.empty() ? nullptr : CheckName);
  return {};
}

// A name with a byte that no name has is none: it could be taken for another.
std::string IfPrintable(std::string name) {
  const bool printable = std::all_of(name.begin(), name.end(), [](char character) {
    return static_cast<unsigned char>(character) > 0x20 && character != 0x7f;
  });
  return printable ? name : std::string();
}

std::string IdentityOf(const SSL* ssl) {
  X509* const certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr) {
    return {};
  }
  const AlternativeNames names = NamesOf(certificate);
  std::string uri;
  std::string dns;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI && uri.empty()) {
      uri = TextOf(name->d.uniformResourceIdentifier);
    } else if (name->type == GEN_DNS && dns.empty()) {
      dns = TextOf(name->d.dNSName);
    }
  }
  if (!uri.empty() || !dns.empty()) {
    return IfPrintable(uri.empty() ? dns : uri);
  }
  X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  return at < 0 ? std::string()
                : IfPrintable(TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))));
}

class TlsSession final : public Session {
 public:
  TlsSession(SSL_CTX& context, SessionFactory& within, const Peer& peer)
      : ssl_(SSL_new(&context)),
        in_(BIO_new(BIO_s_mem())),
        out_(BIO_new(BIO_s_mem())),
        factory_(within),
        peer_(peer) {
    BIO_set_mem_eof_return(in_, -1);
    SSL_set_bio(ssl_.get(), in_, out_);  // which now owns them
    SSL_set_accept_state(ssl_.get());
  }

  Progress OnBytes(std::span<char> input, base::ByteBuffer& output) override {
    if (!input.empty()) {
      BIO_write(in_, input.data(), static_cast<int>(input.size()));
    }
    Progress progress{input.size(), Next::kMessage};
    if (session_ == nullptr && !Greet()) {
      progress.same_message = amidst_;
      amidst_ = true;
      progress.next = ended_ ? Next::kClose : Next::kMessage;
      Drain(output);
      return progress;
    }
    const size_t read = Decrypt();
    if (read != 0 || input.empty()) {
      const Progress inner = session_->OnBytes(plain_.span(), answer_);
      plain_.Consume(inner.consumed);
      next_ = inner.next;
      progress.same_message = amidst_ && inner.consumed == 0;
      amidst_ = next_ == Next::kMessage;
    }
    progress.next = ended_ || plain_.size() > kPlainBytesMax ? Next::kClose : next_;
    Encrypt(progress.next, output);
    return progress;
  }

  void OnTimeout(base::ByteBuffer& output) override {
    if (session_ != nullptr) {
      session_->OnTimeout(answer_);
      Encrypt(Next::kClose, output);
    }
  }
  void OnDrain() override {
    draining_ = true;
    if (session_ != nullptr) {
      session_->OnDrain();
    }
  }
  uint32_t WakeAfter() override { return session_ != nullptr ? session_->WakeAfter() : 0; }
  Next OnWake(base::ByteBuffer& output) override {
    if (session_ == nullptr) {
      return Next::kIdle;
    }
    const Next next = session_->OnWake(answer_);
    Encrypt(next, output);
    return next;
  }

 private:
  static constexpr size_t kPlainBytesMax = size_t{2} << 20;
  static constexpr size_t kRecordBytes = size_t{16} << 10;
  static constexpr size_t kKeptBytes = size_t{64} << 10;

  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  // Shakes hands. True: done; else more is needed, or it has failed.
  bool Greet() {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_.get());
    if (done == 1) {
      peer_.identity = IdentityOf(ssl_.get());
      session_ = factory_.Open(peer_);
      session_->SetHost(host());
      amidst_ = false;
      if (draining_) {
        session_->OnDrain();
      }
      return true;
    }
    ended_ = SSL_get_error(ssl_.get(), done) != SSL_ERROR_WANT_READ;
    return false;
  }

  // What has come, to the end of plain_; how much.
  size_t Decrypt() {
    size_t all = 0;
    for (;;) {
      ERR_clear_error();
      char* const room = plain_.Reserve(kRecordBytes + kPadding);
      size_t size = 0;
      if (SSL_read_ex(ssl_.get(), room, kRecordBytes, &size) != 1) {
        ended_ = SSL_get_error(ssl_.get(), 0) != SSL_ERROR_WANT_READ;
        return all;
      }
      plain_.Commit(size);
      all += size;
    }
  }

  void Encrypt(Next next, base::ByteBuffer& output) {
    ERR_clear_error();
    size_t written = 0;
    if (!answer_.empty()) {
      SSL_write_ex(ssl_.get(), answer_.data(), answer_.size(), &written);
      answer_.Clear();
      answer_.Shrink(kKeptBytes);
    }
    if (next == Next::kClose) {
      SSL_shutdown(ssl_.get());
    }
    if (next == Next::kIdle) {
      plain_.Shrink(kKeptBytes);
    }
    Drain(output);
  }

  void Drain(base::ByteBuffer& output) {
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(out_, &bytes);
    if (size > 0) {
      output.Append({bytes, static_cast<size_t>(size)});
      (void)BIO_reset(out_);
    }
  }

  const std::unique_ptr<SSL, FreeSsl> ssl_;
  BIO* const in_;
  BIO* const out_;
  SessionFactory& factory_;
  Peer peer_;
  std::unique_ptr<Session> session_;
  base::ByteBuffer plain_;
  base::ByteBuffer answer_;
  Next next_ = Next::kIdle;
  bool amidst_ = false;
  bool ended_ = false;
  bool draining_ = false;
};

}  // namespace

TlsContext::TlsContext(const TlsOptions& options) : options_(options) {
  for (const std::string& protocol : options.protocols) {
    protocols_wire_ += static_cast<char>(protocol.size());
    protocols_wire_ += protocol;
  }
}

Result<std::shared_ptr<TlsContext>> TlsContext::Create(const TlsOptions& options) {
  std::shared_ptr<TlsContext> context(new TlsContext(options));
  if (Result<void> loaded = context->Reload(); !loaded) {
    return loaded.error();
  }
  return context;
}

Result<void> TlsContext::Reload() {
  const std::shared_ptr<SSL_CTX> made(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  SSL_CTX_set_min_proto_version(made.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(made.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                      SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(made.get(), SSL_MODE_RELEASE_BUFFERS);
  // A ticket is good for the listener that gave it, and for no other.
  const std::string& id = options_.certificate_file;
  SSL_CTX_set_session_id_context(
      made.get(), reinterpret_cast<const unsigned char*>(id.data()),
      static_cast<unsigned>(std::min<size_t>(id.size(), SSL_MAX_SID_CTX_LENGTH)));
  if (!protocols_wire_.empty()) {
    SSL_CTX_set_alpn_select_cb(made.get(), ChooseProtocol, &protocols_wire_);
  }
  if (Result<void> good = UseCertificate(*made, options_); !good) {
    return good;
  }
  if (Result<void> good = AskClients(*made, options_); !good) {
    return good;
  }
  const base::MutexLock lock(mutex_);
  current_ = made;
  return {};
}

std::shared_ptr<SSL_CTX> TlsContext::current() {
  const base::MutexLock lock(mutex_);
  return current_;
}

std::unique_ptr<Session> TlsFactory::Open(const Peer& peer) {
  return std::make_unique<TlsSession>(*context_->current(), *within_, peer);
}

}  // namespace weir::net
