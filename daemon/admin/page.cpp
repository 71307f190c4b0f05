#include "daemon/admin/page.hpp"

#include <openssl/evp.h>

#include <string_view>

#include "daemon/admin/page_parts.hpp"

namespace pickd::admin {

namespace {

// As a Content-Security-Policy names the content of an element.
std::string hash_source(std::string_view content) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  EVP_Digest(content.data(), content.size(), digest, &bytes, EVP_sha256(), nullptr);
  unsigned char text[2 * EVP_MAX_MD_SIZE];
  const int length = EVP_EncodeBlock(text, digest, static_cast<int>(bytes));
  return "'sha256-" +
         std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(length)) + "'";
}

void put_into(std::string& page, std::string_view mark, std::string_view content) {
  page.replace(page.find(mark), mark.size(), content);
}

}  // namespace

Answer page_answer() {
  std::string page(kPageHtml);
  put_into(page, "/*STYLE*/", kPageStyle);
  put_into(page, "/*SCRIPT*/", kPageScript);
  Answer answer;
  answer.content_type = "text/html; charset=utf-8";
  answer.body = std::move(page);
  answer.fields = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src " + hash_source(kPageScript) + "; style-src " +
           hash_source(kPageStyle) +
           "; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
           "frame-ancestors 'none'"},
      {"X-Frame-Options", "DENY"},
      {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
  };
  return answer;
}

}  // namespace pickd::admin
