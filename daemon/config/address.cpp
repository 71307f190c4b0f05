#include "daemon/config/address.hpp"

#include <cstddef>

namespace pickd::config {

namespace {

bool has_blank(const std::string& text) { return text.find_first_of(" \t") != std::string::npos; }

constexpr const char* kUrl = "must be a URL such as http://10.0.0.1:8000/metrics";

}  // namespace

std::string address_mistake(const std::string& address) {
  if (has_blank(address)) return "must not hold spaces";
  const std::size_t scheme = address.find("://");
  if (scheme != std::string::npos) {
    return scheme == 0 || scheme + 3 == address.size()
               ? "must have a scheme and a host, such as http://10.0.0.1:8000"
               : "";
  }
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return "needs a port or a scheme, such as 10.0.0.1:8000";
  if (address.find(':') != colon && address[colon - 1] != ']') {
    return "has several colons; write an IPv6 address in brackets, such as [fd00::1]:8000";
  }
  const std::string port = address.substr(colon + 1);
  const bool digits = !port.empty() && port.size() <= 5 &&
                      port.find_first_not_of("0123456789") == std::string::npos;
  const int number = digits ? std::stoi(port) : 0;
  return number >= 1 && number <= 65535 ? "" : "must end with a port from 1 to 65535";
}

std::string metrics_url_mistake(const std::string& url) {
  if (url.empty()) return "";
  const bool scheme = url.rfind("http://", 0) == 0 || url.rfind("https://", 0) == 0;
  if (!scheme || has_blank(url) || url.find_first_of("#\\") != std::string::npos) return kUrl;
  const std::size_t from = url.find("://") + 3;
  const std::string host = url.substr(from, url.find_first_of("/?", from) - from);
  if (host.empty()) return kUrl;
  if (host.find('@') != std::string::npos)
    return "must not hold a user name; put a token into a file";
  const bool bare = host.find(':') == std::string::npos || host.back() == ']';  // without a port
  return bare ? "" : address_mistake(host);
}

}  // namespace pickd::config
