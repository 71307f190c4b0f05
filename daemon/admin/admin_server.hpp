// The admin listener: metrics, health and the page over HTTP, for who operates the daemon. Reads
// only. Runs on the control thread's reactor; no worker ever waits for it.
//
//   /metrics   Prometheus' text format or OpenMetrics      /            the page
//   /healthz   whether the daemon works                    /api/state   what it shows
//   /readyz    whether picks can be answered well          /api/picks   the newest picks
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/admin/facts.hpp"
#include "daemon/admin/history.hpp"
#include "daemon/admin/http_server.hpp"
#include "daemon/base/result.hpp"
#include "daemon/config/config.hpp"
#include "daemon/net/reactor.hpp"
#include "daemon/state/counters.hpp"

namespace pickd::admin {

class AdminServer {
 public:
  // Listens where `config` says; a null pointer when that is nowhere. The others outlive it.
  static base::Result<std::unique_ptr<AdminServer>> create(const config::AdminConfig& config,
                                                           net::Reactor& reactor,
                                                           state::Counters& counters,
                                                           Source& source);
  ~AdminServer();

  // Where it listens, as URLs, for the log.
  const std::vector<std::string>& places() const { return places_; }

 private:
  AdminServer(const config::AdminConfig& config, net::Reactor& reactor, state::Counters& counters,
              Source& source);
  base::Result<void> listen();
  Answer answer(const Request& request);
  Answer metrics(const Request& request);
  Answer state(const Request& request);
  void sample();

  config::AdminConfig config_;
  net::Reactor* reactor_;
  Source* source_;
  Answer page_;
  History history_;
  HttpServer http_;
  std::vector<std::string> places_;
  bool owns_socket_file_ = false;
  net::Reactor::TimerId sample_timer_ = 0;
};

}  // namespace pickd::admin
