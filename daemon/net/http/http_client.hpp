// HttpClient: one HTTP/1.1 connection over the reactor, kept alive, one request at a time.
//
// For reading metrics pages and for watches of a Kubernetes API server: GET only, the answer
// streamed to a sink, nothing followed, nothing buffered but a head. Reactor thread only. Knows
// nothing of what the answers mean; who may count failures gets them as Outcome::failure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/result.hpp"
#include "daemon/net/http/response.hpp"
#include "daemon/net/http/url.hpp"
#include "daemon/net/reactor.hpp"

namespace pickd::net {
class Resolver;
}

namespace pickd::net::http {

class BearerToken;
class TlsContext;

struct ClientOptions {
  std::uint64_t connect_timeout_ms = 1000;  // look-up, connection and TLS handshake together
  std::uint64_t keep_alive_ms = 60'000;     // a connection idle for longer is not used again
  std::uint32_t head_bytes_max = 16 * 1024;
  std::shared_ptr<TlsContext> tls;     // needed for https; shared by all clients of one setting
  std::shared_ptr<BearerToken> token;  // sent to this host alone; nullptr: none
  Resolver* resolver = nullptr;        // for names; nullptr: only address literals
};

struct Request {
  std::string target;  // path and query; empty: that of the URL the client was made with
  std::string accept = "*/*";
  std::vector<std::pair<std::string, std::string>> fields = {};  // further ones, sent as they are
  std::uint64_t idle_timeout_ms = 1000;  // longest wait for the next byte; 0: none
  // From get() on, look-up and connecting included; 0: none, as for a watch.
  std::uint64_t total_timeout_ms = 5000;
  std::uint64_t body_bytes_max = 4 * 1024 * 1024;  // 0: no limit, as for a watch
};

class HttpClient {
 public:
  // `reactor` must outlive the client. Nothing is connected yet.
  HttpClient(Reactor& reactor, Url url, ClientOptions options);
  ~HttpClient();  // cancels; the sink is not called any more
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Asks. Not while busy(). `sink` must live until done() or cancel(). Never calls it from inside
  // this call: a failure known at once is told by the reactor's next turn. A kept-alive connection
  // that turns out to be dead is replaced once; 401 makes the token be read again and the request
  // sent once more, if the file holds another one by then.
  void get(const Request& request, ResponseSink& sink);
  // Forgets the exchange and closes the connection; done() is not called. Harmless when idle.
  void cancel();
  bool busy() const;
  const Url& url() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pickd::net::http
