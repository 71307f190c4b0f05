#include "daemon/net/http/url.hpp"

#include <algorithm>
#include <charconv>

namespace pickd::net::http {

namespace {

constexpr std::uint16_t kHttpPort = 80;
constexpr std::uint16_t kHttpsPort = 443;

base::Error wrong(std::string_view url, const char* what) {
  return {-EINVAL, "the URL \"" + std::string(url) + "\" " + what};
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  const bool there = text.substr(0, prefix.size()) == prefix;
  if (there) text.remove_prefix(prefix.size());
  return there;
}

// A port of 1 to 65535; false for anything else.
bool read_port(std::string_view text, std::uint16_t& port) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port != 0;
}

}  // namespace

std::string Url::authority() const {
  const bool v6 = host.find(':') != std::string::npos;
  std::string out = v6 ? "[" + host + "]" : host;
  if (port != (tls ? kHttpsPort : kHttpPort)) out += ":" + std::to_string(port);
  return out;
}

std::string Url::text() const { return (tls ? "https://" : "http://") + authority() + target; }

base::Result<Url> parse_url(std::string_view text) {
  const bool odd = std::any_of(text.begin(), text.end(), [](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return byte <= 0x20 || byte == 0x7F || byte == '\\';
  });
  if (odd) return wrong(text, "must not hold spaces, control characters or backslashes");
  Url url;
  std::string_view rest = text;
  url.tls = take_prefix(rest, "https://");
  if (!url.tls && !take_prefix(rest, "http://") && rest.find("://") != std::string_view::npos) {
    return wrong(text, "must begin with http:// or https://");
  }
  url.port = url.tls ? kHttpsPort : kHttpPort;
  if (rest.find('#') != std::string_view::npos) return wrong(text, "must not have a #fragment");
  const std::size_t slash = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, slash);
  const std::string_view target = rest.substr(slash);
  if (!target.empty()) url.target = (target[0] == '?' ? "/" : "") + std::string(target);
  if (authority.find('@') != std::string_view::npos)
    return wrong(text, "must not hold a user name; put a token into a file");

  std::string_view port;
  if (!authority.empty() && authority[0] == '[') {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return wrong(text, "lacks a ] after its IPv6 address");
    url.host = authority.substr(1, close - 1);
    port = authority.substr(close + 1);
    if (url.host.find(':') == std::string::npos)
      return wrong(text, "must have an IPv6 address in its brackets, such as [fd00::1]");
  } else {
    const std::size_t colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    port = authority.substr(colon);
    if (port.rfind(':') != 0 && !port.empty())
      return wrong(text, "has several colons; write an IPv6 address in brackets");
  }
  if (url.host.empty()) return wrong(text, "must name a host, such as http://10.0.0.1:8000");
  if (!port.empty() && (port[0] != ':' || !read_port(port.substr(1), url.port)))
    return wrong(text, "must have a port from 1 to 65535");
  return url;
}

}  // namespace pickd::net::http
