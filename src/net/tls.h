// TLS for a listener: certificates that can be changed while connections live, and a session that
// speaks TLS to the peer and plain bytes to the session within.
//
// OpenSSL works on memory here and never sees a socket, so connections are the same with TLS and
// without. A connection keeps the certificates that it began with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

#include "base/mutex.h"
#include "net/session.h"

struct ssl_ctx_st;
struct ssl_st;

namespace weir::net {

struct TlsOptions {
  std::string certificate_file;  // PEM: the certificate, then those that lead to its authority
  std::string key_file;          // PEM, not encrypted
  std::string client_ca_file;    // PEM; empty: clients show no certificate. Else they must
  // One of these must be in a client's certificate: a DNS name, an address or a URI among its
  // alternative names. None: whatever it is called.
  std::vector<std::string> client_names;
  // What is spoken within, the best first ("h2", "http/1.1"); empty: whatever it is.
  std::vector<std::string> protocols;
};

// Thread-safe.
class TlsContext {
 public:
  // The error names the file and what is wrong with it.
  static Result<std::shared_ptr<TlsContext>> Create(const TlsOptions& options);

  // Reads the files again, for connections to come; on an error nothing changes.
  Result<void> Reload();
  // What is in force, for a new connection.
  [[nodiscard]] std::shared_ptr<ssl_ctx_st> current();
  [[nodiscard]] const TlsOptions& options() const noexcept { return options_; }

 private:
  explicit TlsContext(const TlsOptions& options);

  const TlsOptions options_;
  std::string protocols_wire_;  // each after its length
  base::Mutex mutex_;
  std::shared_ptr<ssl_ctx_st> current_ WEIR_GUARDED_BY(mutex_);
};

// Sessions of another factory, within TLS. They are made once the peer is known: its identity is
// that of its certificate (the first URI, else the first DNS name, else the common name).
class TlsFactory final : public SessionFactory {
 public:
  TlsFactory(std::shared_ptr<TlsContext> context, std::unique_ptr<SessionFactory> within)
      : context_(std::move(context)), within_(std::move(within)) {}

  std::unique_ptr<Session> Open(const Peer& peer) override;

 private:
  const std::shared_ptr<TlsContext> context_;
  const std::unique_ptr<SessionFactory> within_;
};

}  // namespace weir::net
