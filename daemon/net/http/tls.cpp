#include "daemon/net/http/tls.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <climits>

namespace pickd::net::http {

namespace {

constexpr std::size_t kWirePieceBytes = 16 * 1024;

// The oldest error that OpenSSL has queued, in words; the queue is empty afterwards.
std::string queued_error() {
  const unsigned long code = ::ERR_get_error();
  ::ERR_clear_error();
  if (code == 0) return "unknown error";
  const char* reason = ::ERR_reason_error_string(code);
  return reason != nullptr ? reason : "error " + std::to_string(code);
}

bool is_address(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

}  // namespace

base::Result<std::shared_ptr<TlsContext>> TlsContext::create(const TlsSettings& settings) {
  ::ERR_clear_error();
  SSL_CTX* context = ::SSL_CTX_new(::TLS_client_method());
  if (context == nullptr) return base::Error{-ENOMEM, "TLS: " + queued_error()};
  std::shared_ptr<TlsContext> made(new TlsContext(settings, context));
  ::SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // A peer that closes without close_notify is told apart by HTTP's own framing.
  ::SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);  // 1,000 idle connections hold none
  ::SSL_CTX_set_verify(context, settings.skip_verify ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  if (settings.skip_verify) return made;
  if (settings.ca_file.empty()) {
    if (::SSL_CTX_set_default_verify_paths(context) != 1)
      return base::Error{-ENOENT, "TLS: the system's certificates: " + queued_error()};
  } else if (::SSL_CTX_load_verify_file(context, settings.ca_file.c_str()) != 1) {
    return base::Error{-ENOENT, "TLS: the CA file " + settings.ca_file +
                                    " must hold certificates in PEM: " + queued_error()};
  }
  return made;
}

TlsContext::~TlsContext() { ::SSL_CTX_free(context_); }

TlsStream::TlsStream(std::shared_ptr<TlsContext> context, const std::string& host)
    : context_(std::move(context)), ssl_(::SSL_new(context_->native())) {
  BIO* in = ::BIO_new(::BIO_s_mem());
  BIO* out = ::BIO_new(::BIO_s_mem());
  if (ssl_ == nullptr || in == nullptr || out == nullptr) {
    ::BIO_free(in);
    ::BIO_free(out);
    fail("set up");
    return;
  }
  ::SSL_set_bio(ssl_, in, out);
  ::SSL_set_connect_state(ssl_);
  const std::string& told = context_->settings().server_name;
  const std::string& name = told.empty() ? host : told;
  if (is_address(name)) {
    if (::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl_), name.c_str()) != 1) fail("set up");
  } else if (::SSL_set_tlsext_host_name(ssl_, name.c_str()) != 1 ||
             ::SSL_set1_host(ssl_, name.c_str()) != 1) {
    fail("set up");
  }
}

TlsStream::~TlsStream() { ::SSL_free(ssl_); }

void TlsStream::fail(const char* doing) {
  state_ = State::kFailed;
  const long verified = ssl_ == nullptr ? X509_V_OK : ::SSL_get_verify_result(ssl_);
  const std::string reason = queued_error();
  error_ = std::string("TLS, ") + doing + ": " + reason;
  if (verified != X509_V_OK)
    error_ += std::string(" (") + ::X509_verify_cert_error_string(verified) + ")";
}

TlsStream::State TlsStream::handshake() {
  if (state_ != State::kHandshaking) return state_;
  ::ERR_clear_error();
  const int result = ::SSL_do_handshake(ssl_);
  if (result == 1) return state_ = State::kOpen;
  const int error = ::SSL_get_error(ssl_, result);
  if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) fail("handshake");
  return state_;
}

void TlsStream::put_wire(std::string_view bytes) {
  if (ssl_ == nullptr || state_ == State::kFailed) return;
  // A memory BIO takes all or, out of memory, nothing.
  const int wrote = ::BIO_write(::SSL_get_rbio(ssl_), bytes.data(), static_cast<int>(bytes.size()));
  if (wrote != static_cast<int>(bytes.size())) fail("receive");
}

void TlsStream::take_wire(std::string& out) {
  if (ssl_ == nullptr) return;
  BIO* wire = ::SSL_get_wbio(ssl_);
  char piece[kWirePieceBytes];
  while (::BIO_ctrl_pending(wire) != 0) {
    const int got = ::BIO_read(wire, piece, sizeof piece);
    if (got <= 0) return;
    out.append(piece, static_cast<std::size_t>(got));
  }
}

bool TlsStream::write(std::string_view plain) {
  if (state_ != State::kOpen) return false;
  ::ERR_clear_error();
  std::size_t wrote = 0;
  if (::SSL_write_ex(ssl_, plain.data(), plain.size(), &wrote) == 1) return true;
  fail("send");
  return false;
}

std::size_t TlsStream::read(char* to, std::size_t size) {
  if (state_ != State::kOpen) return 0;
  ::ERR_clear_error();
  std::size_t got = 0;
  if (::SSL_read_ex(ssl_, to, size, &got) == 1) return got;
  switch (::SSL_get_error(ssl_, 0)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: break;
    case SSL_ERROR_ZERO_RETURN: state_ = State::kEnded; break;
    default: fail("receive");
  }
  return 0;
}

}  // namespace pickd::net::http
