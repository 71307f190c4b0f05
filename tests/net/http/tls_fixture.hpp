// Certificates made on the spot, and the server's side of TLS over a scripted connection.
#pragma once

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <string>
#include <string_view>

#include "tests/net/http/client_fixture.hpp"

namespace pickd::net::http::test {

// An authority and a certificate that it signed; the authority's is written to a file.
class Certificates {
 public:
  explicit Certificates(const char* names) {
    ca_key_ = ::EVP_EC_gen("P-256");
    key_ = ::EVP_EC_gen("P-256");
    ca_ = make("authority", ca_key_, nullptr, "critical,CA:TRUE", nullptr);
    leaf_ = make("engine", key_, ca_, "CA:FALSE", names);
    ca_file_ = ::testing::TempDir() + "/ca." + std::to_string(::getpid()) + ".pem";
    std::FILE* file = std::fopen(ca_file_.c_str(), "w");
    if (file == nullptr) return;
    ::PEM_write_X509(file, ca_);
    std::fclose(file);
  }
  ~Certificates() {
    ::unlink(ca_file_.c_str());
    ::X509_free(ca_);
    ::X509_free(leaf_);
    ::EVP_PKEY_free(ca_key_);
    ::EVP_PKEY_free(key_);
  }
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  const std::string& ca_file() const { return ca_file_; }
  X509* leaf() const { return leaf_; }
  EVP_PKEY* key() const { return key_; }

 private:
  X509* make(const char* name, EVP_PKEY* key, X509* issuer, const char* basic,
             const char* names) const {
    X509* made = ::X509_new();
    ::X509_set_version(made, 2);
    ::ASN1_INTEGER_set(::X509_get_serialNumber(made), issuer == nullptr ? 1 : 2);
    ::X509_gmtime_adj(::X509_getm_notBefore(made), -3600);
    ::X509_gmtime_adj(::X509_getm_notAfter(made), 3600);
    ::X509_set_pubkey(made, key);
    ::X509_NAME_add_entry_by_txt(::X509_get_subject_name(made), "CN", MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
    ::X509_set_issuer_name(made, ::X509_get_subject_name(issuer == nullptr ? made : issuer));
    extend(made, NID_basic_constraints, basic);
    if (names != nullptr) extend(made, NID_subject_alt_name, names);
    ::X509_sign(made, issuer == nullptr ? key : ca_key_, ::EVP_sha256());
    return made;
  }
  static void extend(X509* made, int what, const char* value) {
    X509_EXTENSION* extension = ::X509V3_EXT_conf_nid(nullptr, nullptr, what, value);
    ::X509_add_ext(made, extension, -1);
    ::X509_EXTENSION_free(extension);
  }

  EVP_PKEY* ca_key_ = nullptr;
  EVP_PKEY* key_ = nullptr;
  X509* ca_ = nullptr;
  X509* leaf_ = nullptr;
  std::string ca_file_;
};

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
