// Certificates made on the spot, for a test's server of TLS.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace pickd::net::http::test {

// An authority and a certificate that it signed; the authority's is written to a file.
class Certificates {
 public:
  // `valid_s`: from now on; negative: over.
  explicit Certificates(const char* names, long valid_s = 3600) : valid_s_(valid_s) {
    ca_key_ = ::EVP_EC_gen("P-256");
    key_ = ::EVP_EC_gen("P-256");
    ca_ = make("authority", ca_key_, nullptr, "critical,CA:TRUE", nullptr);
    leaf_ = make("engine", key_, ca_, "CA:FALSE", names);
    ca_file_ = ::testing::TempDir() + "/ca.XXXXXX";
    std::FILE* file = ::fdopen(::mkstemp(ca_file_.data()), "w");
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
    ::X509_gmtime_adj(::X509_getm_notAfter(made), issuer == nullptr ? 3600 : valid_s_);
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

  long valid_s_;
  EVP_PKEY* ca_key_ = nullptr;
  EVP_PKEY* key_ = nullptr;
  X509* ca_ = nullptr;
  X509* leaf_ = nullptr;
  std::string ca_file_;
};

}  // namespace pickd::net::http::test
