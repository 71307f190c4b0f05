// Url: the parts of an http or https URL that a client needs. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/base/result.hpp"

namespace pickd::net::http {

struct Url {
  bool tls = false;
  std::string host;  // a name or an address literal, without brackets
  std::uint16_t port = 80;
  std::string target = "/";  // path and query

  // For the Host field: IPv6 in brackets, the port where it is not the scheme's own.
  std::string authority() const;
  std::string text() const;
  bool operator==(const Url&) const = default;
};

// "http://host:port/path?query", or "host:port" (taken as http). Refuses user names, fragments,
// other schemes, spaces and control characters; an error says what would be right.
base::Result<Url> parse_url(std::string_view text);

}  // namespace pickd::net::http
