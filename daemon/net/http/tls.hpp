// TLS through OpenSSL, without I/O: ciphertext in, ciphertext out, plain text on the other side.
//
// TlsContext is what connections of one setting share; TlsStream is one connection. Client side
// only, TLS 1.2 or newer. Reactor thread only.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/base/result.hpp"

struct ssl_st;
struct ssl_ctx_st;

namespace pickd::net::http {

struct TlsSettings {
  std::string ca_file;       // PEM; empty: the system's
  bool skip_verify = false;  // take any certificate: for tests and closed networks
  std::string server_name;   // for SNI and the certificate; empty: the host of the URL
};

class TlsContext {
 public:
  // Fails when the CA file cannot be read or holds no certificate.
  static base::Result<std::shared_ptr<TlsContext>> create(const TlsSettings& settings);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  const TlsSettings& settings() const { return settings_; }
  ssl_ctx_st* native() { return context_; }

 private:
  TlsContext(const TlsSettings& settings, ssl_ctx_st* context)
      : settings_(settings), context_(context) {}
  TlsSettings settings_;
  ssl_ctx_st* context_;
};

class TlsStream {
 public:
  enum class State { kHandshaking, kOpen, kEnded, kFailed };

  // `host`: a name or an address literal, checked against the certificate unless told otherwise.
  TlsStream(std::shared_ptr<TlsContext> context, const std::string& host);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // Goes on with the handshake; after it came to kOpen, plain text may be written and read.
  State handshake();
  void put_wire(std::string_view bytes);  // what the socket gave
  // Appends what the socket is to send to `out`.
  void take_wire(std::string& out);

  bool write(std::string_view plain);
  // Plain text that is there, at most `size`; 0: none now, see state().
  std::size_t read(char* to, std::size_t size);

  State state() const { return state_; }
  const std::string& error() const { return error_; }  // with kFailed

 private:
  void fail(const char* doing);

  std::shared_ptr<TlsContext> context_;
  ssl_st* ssl_;
  State state_ = State::kHandshaking;
  std::string error_;
};

}  // namespace pickd::net::http
