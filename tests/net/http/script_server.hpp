// A server of real sockets whose every connection runs a script: what an engine may do, and worse.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/base/fd.hpp"

namespace pickd::net::http::test {

// One accepted connection, in blocking calls. Every wait ends when the server does.
class Peer {
 public:
  Peer(int socket, int bell) : socket_(socket), bell_(bell) {}

  // Reads until the end of a request's head; the head, or what came before the end.
  std::string read_request() {
    std::string text;
    char letter = 0;
    while (text.find("\r\n\r\n") == std::string::npos && wait() &&
           ::recv(socket_.get(), &letter, 1, 0) == 1)
      text += letter;
    return text;
  }
  // False when the client is gone.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      pollfd ready[2] = {{socket_.get(), POLLOUT, 0}, {bell_, POLLIN, 0}};
      ::poll(ready, 2, -1);
      if (ready[1].revents != 0) return false;
      const ssize_t sent =
          ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno != EAGAIN) return false;
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  bool answer(std::string_view body, std::string_view more = "", int status = 200) {
    return send("HTTP/1.1 " + std::to_string(status) +
                " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
                std::string(more) + "\r\n" + std::string(body));
  }
  // Until the client closes, sends something, or the server ends. False at the server's end.
  bool wait() const {
    pollfd ready[2] = {{socket_.get(), POLLIN, 0}, {bell_, POLLIN, 0}};
    ::poll(ready, 2, -1);
    return ready[1].revents == 0;
  }
  // The next close sends a reset.
  void reset() {
    const linger hard{1, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    socket_.reset();
  }
  int fd() const { return socket_.get(); }
  void close() { socket_.reset(); }

 private:
  base::Fd socket_;
  int bell_;
};

class ScriptServer {
 public:
  // `script` runs on a thread of its own for each connection; `index` counts them from 0.
  using Script = std::function<void(Peer& peer, int index)>;

  explicit ScriptServer(Script script, int family = AF_INET) : script_(std::move(script)) {
    int ends[2];
    if (::pipe(ends) == 0) {
      bell_ = base::Fd(ends[0]);
      bell_ring_ = base::Fd(ends[1]);
    }
    listener_ = base::Fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_loopback;
    const bool is_v6 = family == AF_INET6;
    const auto* address =
        is_v6 ? reinterpret_cast<sockaddr*>(&v6) : reinterpret_cast<sockaddr*>(&v4);
    bound_ = ::bind(listener_.get(), address, is_v6 ? sizeof v6 : sizeof v4) == 0 &&
             ::listen(listener_.get(), 64) == 0;
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&name), &size);
    port_ = ntohs(is_v6 ? reinterpret_cast<sockaddr_in6*>(&name)->sin6_port
                        : reinterpret_cast<sockaddr_in*>(&name)->sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~ScriptServer() {
    bell_ring_.reset();  // the other end becomes readable for everybody
    acceptor_.join();
    for (std::thread& one : connections_) one.join();
  }
  ScriptServer(const ScriptServer&) = delete;
  ScriptServer& operator=(const ScriptServer&) = delete;

  bool bound() const { return bound_; }
  std::uint16_t port() const { return port_; }
  int accepted() const { return accepted_; }
  std::string url(std::string_view target = "/metrics") const {
    return "http://127.0.0.1:" + std::to_string(port_) + std::string(target);
  }

 private:
  void accept_all() {
    while (true) {
      pollfd ready[2] = {{listener_.get(), POLLIN, 0}, {bell_.get(), POLLIN, 0}};
      ::poll(ready, 2, -1);
      if (ready[1].revents != 0) return;
      const int socket = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) continue;
      const int index = accepted_++;
      connections_.emplace_back([this, socket, index] {
        Peer peer(socket, bell_.get());
        script_(peer, index);
      });
    }
  }

  Script script_;
  base::Fd bell_;
  base::Fd bell_ring_;
  base::Fd listener_;
  bool bound_ = false;
  std::uint16_t port_ = 0;
  std::atomic<int> accepted_{0};
  std::thread acceptor_;
  std::vector<std::thread> connections_;
};

}  // namespace pickd::net::http::test
