// Resolver: names to addresses over the reactor, with c-ares, so that no thread waits for a name
// server.
//
// The reactor's thread makes it, asks it and ends it; handlers run there, never from inside ask().
// The server's word and the lack of one are different answers (DnsAnswer::Status). Knows nothing of
// endpoints; keeps no cache: whoever asks gets the TTL.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/base/result.hpp"
#include "daemon/net/dns_answer.hpp"
#include "daemon/net/reactor.hpp"

namespace pickd::net {

struct ResolverOptions {
  // "10.96.0.10:53" or "[fd00::1]:53" each, the port optional; none: those of resolv.conf.
  std::vector<std::string> servers = {};
  std::uint64_t timeout_ms = 5000;  // until a question counts as failed, all tries together
};

class Resolver {
 public:
  using Handler = std::function<void(const DnsAnswer& answer)>;
  using QuestionId = std::uint64_t;

  // -EINVAL when a server's address is none. The reactor must outlive the resolver.
  static base::Result<std::unique_ptr<Resolver>> create(Reactor& reactor,
                                                        const ResolverOptions& options);
  virtual ~Resolver() = default;

  // The records of one type. Relative names are tried with the search domains of resolv.conf, as
  // the system's resolver does; kFailed as soon as one of those fails and none answers. Calls
  // `handler` once, unless cancelled.
  virtual QuestionId ask(const std::string& name, DnsType type, Handler handler) = 0;

  // Addresses for a connection, IPv4 first: a literal address (brackets allowed) as it is, then the
  // hosts file, then A, then AAAA when there is no A.
  virtual QuestionId ask_addresses(const std::string& host, Handler handler) = 0;

  // The handler is not called any more. Unknown and answered ids are no mistake.
  virtual void cancel(QuestionId question) = 0;
};

}  // namespace pickd::net
