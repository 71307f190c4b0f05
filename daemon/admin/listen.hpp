// Where the admin listener stands: addresses read and checked, sockets that listen, and whether the
// Host of a request names this machine.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/base/fd.hpp"
#include "daemon/base/result.hpp"
#include "daemon/config/config.hpp"

namespace pickd::admin {

struct TcpAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  bool loopback = false;
};

// "127.0.0.1:9464", "[::1]:9464", "localhost:9464". No other names: what one means may change.
base::Result<TcpAddress> read_tcp_address(std::string_view text);

// Whether what is set can be served at; the text names the setting.
base::Result<void> check(const config::AdminConfig& config);

base::Result<base::Fd> listen_tcp(const TcpAddress& address);
// A socket file that is there is replaced when nobody listens at it.
base::Result<base::Fd> listen_unix_stream(const std::string& path, std::uint32_t mode);
// As a URL would have it: "127.0.0.1:40123".
std::string bound_to(int listener);

// Whether a Host field is an address or "localhost". A name of another kind may be a stranger's
// that was made to point here, so that a browser takes their page and this listener for one site.
bool is_address(std::string_view host);

}  // namespace pickd::admin
