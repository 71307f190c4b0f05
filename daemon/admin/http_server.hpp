// HttpServer: answers GET and HEAD on sockets of the reactor, for few and patient readers.
//
// Every connection has its own buffer, its own deadline and one answer at a time: one that is slow
// or silent takes its place and nothing else. Reactor thread only. Knows nothing of what is served.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/admin/answer.hpp"
#include "daemon/admin/request_reader.hpp"
#include "daemon/base/fd.hpp"
#include "daemon/base/result.hpp"
#include "daemon/net/reactor.hpp"
#include "daemon/state/counters.hpp"

namespace pickd::admin {

struct ServerLimits {
  std::size_t connections_max = 32;
  std::size_t head_bytes_max = 8 * 1024;
  std::uint32_t requests_max = 10'000;  // of one connection
  std::uint64_t request_within_ms = 5000;
  std::uint64_t idle_ms = 90'000;
};

class HttpServer {
 public:
  // What is said to a request of the path and query.
  using Site = std::function<Answer(const Request& request)>;

  HttpServer(net::Reactor& reactor, state::Counters& counters, const ServerLimits& limits,
             Site site);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // `any_host`: a request there may name any Host, for no browser can be made to ask it.
  base::Result<void> serve(base::Fd listener, bool any_host);
  std::size_t connections() const { return connections_.size(); }

 private:
  struct Listener {
    base::Fd socket;
    bool any_host = false;
    net::Reactor::TimerId rest = 0;  // while there are no descriptors
  };
  struct Connection;

  base::Result<void> watch(Listener& listener);
  void accept_from(Listener& listener);
  bool make_room();
  void ready(std::uint64_t id, std::uint32_t readiness);
  void receive(Connection& connection);
  void go_on(Connection& connection, RequestReader::State state);
  void say(Connection& connection, const Answer& answer, bool keep_alive, bool with_body);
  void refuse(Connection& connection, const Answer& answer);
  Answer answer_to(const Connection& connection, const Request& request);
  void flush(Connection& connection);
  void sent(Connection& connection);
  void drain(Connection& connection);
  void deadline(Connection& connection, std::uint64_t ms);
  void close(Connection& connection);

  net::Reactor* reactor_;
  state::Counters* counters_;
  ServerLimits limits_;
  Site site_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::uint64_t next_id_ = 0;
};

}  // namespace pickd::admin
