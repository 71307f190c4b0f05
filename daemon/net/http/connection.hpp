// Connection: one TCP connection to one of a host's addresses, with TLS where asked for, over the
// reactor. Bytes in, bytes out; knows nothing of HTTP. Reactor thread only.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/fd.hpp"
#include "daemon/net/http/response.hpp"
#include "daemon/net/http/tls.hpp"
#include "daemon/net/reactor.hpp"

namespace pickd::net::http {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

// An address literal with a port; false when `host` is none.
bool read_address(const std::string& host, std::uint16_t port, Address& address);

class Connection {
 public:
  // What it tells its owner. Each may destroy the connection, then it must return false.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual bool connection_open() = 0;
    virtual bool connection_received(std::string_view bytes) = 0;
    // kNone: the peer closed in order. Not called after close().
    virtual void connection_ended(Failure failure, const std::string& text) = 0;
  };

  Connection(Reactor& reactor, Owner& owner) : reactor_(&reactor), owner_(&owner) {}
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Tries the addresses in turn; with a context, TLS with `host` follows. The owner is told by a
  // later turn of the reactor, never from inside.
  void open(std::vector<Address> addresses, std::shared_ptr<TlsContext> tls,
            const std::string& host);
  // What cannot be sent at once is kept and sent when it can. Failures come to the owner later.
  void send(std::string_view bytes);
  bool sent_all() const { return pending_.empty(); }
  void close();
  bool is_open() const { return stage_ == Stage::kOpen; }

 private:
  enum class Stage : std::uint8_t { kClosed, kConnecting, kHandshaking, kOpen };

  void failed_to_connect(int code);
  bool try_next();  // false: no address is left to try
  void end_later(Failure failure, std::string text);
  void end(Failure failure, const std::string& text);
  void ready(std::uint32_t readiness);
  void connected();
  bool flush();  // false: the connection ended and may be gone
  void receive();
  // Passes on what came from the socket; false: stop, `this` may be gone.
  bool take(std::string_view bytes);
  bool take_plain();
  bool go_on_with_handshake();

  Reactor* reactor_;
  Owner* owner_;
  base::Fd socket_;
  Stage stage_ = Stage::kClosed;
  bool wants_write_ = false;
  std::vector<Address> addresses_;
  std::size_t next_address_ = 0;
  std::string host_;
  std::shared_ptr<TlsContext> tls_context_;
  std::unique_ptr<TlsStream> tls_;
  std::string pending_;     // wire bytes that the socket did not take yet
  std::string last_error_;  // of the addresses tried
  Failure last_failure_ = Failure::kConnect;
  Reactor::TimerId later_ = 0;
};

}  // namespace pickd::net::http
