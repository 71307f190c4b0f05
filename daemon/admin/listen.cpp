#include "daemon/admin/listen.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "daemon/net/socket_file.hpp"

namespace pickd::admin {

namespace {

constexpr int kBacklog = 64;

struct HostPort {
  std::string host;  // without brackets
  std::string_view port;
  bool has_port = false;
};

HostPort split(std::string_view text) {
  HostPort parts;
  if (!text.empty() && text[0] == '[') {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return parts;
    parts.host = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    if (text.empty() || text[0] != ':') return text.empty() ? parts : HostPort{};
    parts.port = text.substr(1);
    parts.has_port = true;
    return parts;
  }
  const std::size_t colon = text.find(':');
  parts.host = text.substr(0, colon);
  if (colon != std::string_view::npos) {
    parts.port = text.substr(colon + 1);
    parts.has_port = true;
  }
  return parts;
}

bool read_v4(const std::string& host, in_addr& address) {
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1;
}

bool read_v6(const std::string& host, in6_addr& address) {
  return ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool is_loopback(const in_addr& address) { return ntohl(address.s_addr) >> 24 == 127; }

bool is_loopback(const in6_addr& address) {
  if (IN6_IS_ADDR_LOOPBACK(&address)) return true;
  return IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127;
}

bool somebody_listens(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;  // nobody can
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const base::Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
         errno == EAGAIN;
}

}  // namespace

base::Result<TcpAddress> read_tcp_address(std::string_view text) {
  const base::Error wrong{-EINVAL,
                          "admin.listen: must be an address and a port, such as 127.0.0.1:9464 or "
                          "[::1]:9464, is \"" +
                              std::string(text) + "\""};
  HostPort parts = split(text);
  std::uint16_t port = 0;
  const auto [end, error] =
      std::from_chars(parts.port.data(), parts.port.data() + parts.port.size(), port);
  if (!parts.has_port || parts.port.empty() || error != std::errc() ||
      end != parts.port.data() + parts.port.size()) {
    return wrong;
  }
  if (parts.host == "localhost") parts.host = "127.0.0.1";
  TcpAddress address;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (read_v4(parts.host, v4.sin_addr)) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    address.loopback = is_loopback(v4.sin_addr);
    address.size = sizeof v4;
    std::memcpy(&address.bytes, &v4, sizeof v4);
    return address;
  }
  if (read_v6(parts.host, v6.sin6_addr)) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    address.loopback = is_loopback(v6.sin6_addr);
    address.size = sizeof v6;
    std::memcpy(&address.bytes, &v6, sizeof v6);
    return address;
  }
  return wrong;
}

base::Result<void> check(const config::AdminConfig& config) {
  if (!config.socket.empty() && config.socket[0] != '/') {
    return base::Error{-EINVAL,
                       "admin.socket: must be an absolute path, is \"" + config.socket + "\""};
  }
  if (config.listen.empty()) return {};
  const auto address = read_tcp_address(config.listen);
  if (!address) return address.error();
  if (address.value().loopback || config.allow_remote) return {};
  return base::Error{-EACCES,
                     "admin.listen: " + config.listen +
                         " can be reached by other machines, and what is served there has no "
                         "password. Listen at 127.0.0.1 or [::1], or set admin.allow_remote: true "
                         "where the network lets in only who may read it"};
}

base::Result<base::Fd> listen_tcp(const TcpAddress& address) {
  base::Fd socket(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return base::errno_error("admin.listen: socket");
  const int yes = 1;
  // A daemon that comes back must not wait for the connections of the one before.
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.size) != 0)
    return base::errno_error("admin.listen: bind");
  if (::listen(socket.get(), kBacklog) != 0) return base::errno_error("admin.listen: listen");
  return socket;
}

base::Result<base::Fd> listen_unix_stream(const std::string& path, std::uint32_t mode) {
  if (somebody_listens(path)) {
    return base::Error{-EADDRINUSE, "admin.socket " + path + ": somebody listens there already"};
  }
  base::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return base::errno_error("admin.socket " + path);
  if (auto there = net::listen_at(socket.get(), {"admin.socket", path, mode, ""}); !there) {
    return there.error();
  }
  return socket;
}

std::string bound_to(int listener) {
  sockaddr_storage bytes{};
  socklen_t size = sizeof bytes;
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&bytes), &size) != 0) return "";
  char text[INET6_ADDRSTRLEN] = "";
  if (bytes.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &bytes, sizeof v4);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return std::string(text) + ':' + std::to_string(ntohs(v4.sin_port));
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &bytes, sizeof v6);
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return '[' + std::string(text) + "]:" + std::to_string(ntohs(v6.sin6_port));
}

bool is_address(std::string_view host) {
  HostPort parts = split(host);
  if (parts.has_port && !std::all_of(parts.port.begin(), parts.port.end(),
                                     [](char digit) { return digit >= '0' && digit <= '9'; })) {
    return false;
  }
  std::transform(parts.host.begin(), parts.host.end(), parts.host.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  in_addr v4{};
  in6_addr v6{};
  // What ends in .localhost is never looked up.
  return parts.host == "localhost" || parts.host.ends_with(".localhost") ||
         read_v4(parts.host, v4) || read_v6(parts.host, v6);
}

}  // namespace pickd::admin
