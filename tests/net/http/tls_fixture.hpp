// The server's side of TLS over a scripted connection.
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <string>
#include <string_view>

#include "tests/net/http/certificates.hpp"
#include "tests/net/http/client_fixture.hpp"

namespace pickd::net::http::test {

// The server's side: handshake, one request after another answered with `body`.
class TlsPeer {
 public:
  TlsPeer(const Certificates& certificates, int version_max = TLS1_3_VERSION)
      : context_(::SSL_CTX_new(::TLS_server_method())) {
    ::SSL_CTX_use_certificate(context_, certificates.leaf());
    ::SSL_CTX_use_PrivateKey(context_, certificates.key());
    ::SSL_CTX_set_min_proto_version(context_, TLS1_VERSION);
    ::SSL_CTX_set_max_proto_version(context_, version_max);
    ::SSL_CTX_set_security_level(context_, 0);  // so that it may offer what is too old
  }
  ~TlsPeer() { ::SSL_CTX_free(context_); }
  TlsPeer(const TlsPeer&) = delete;
  TlsPeer& operator=(const TlsPeer&) = delete;

  // Returns the name that the client asked for, or "-" when the handshake failed.
  std::string serve(Peer& peer, std::string_view body) const {
    SSL* ssl = ::SSL_new(context_);
    ::SSL_set_fd(ssl, peer.fd());
    std::string name = "-";
    if (::SSL_accept(ssl) == 1) {
      const char* asked = ::SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
      name = asked == nullptr ? "" : asked;
      std::string request;
      char letter = 0;
      while (::SSL_read(ssl, &letter, 1) == 1) {
        request += letter;
        if (request.find("\r\n\r\n") == std::string::npos) continue;
        request.clear();
        const std::string answer =
            "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
            std::string(body);
        if (::SSL_write(ssl, answer.data(), static_cast<int>(answer.size())) <= 0) break;
      }
    }
    ::SSL_free(ssl);
    ::ERR_clear_error();
    return name;
  }

 private:
  SSL_CTX* context_;
};

}  // namespace pickd::net::http::test
