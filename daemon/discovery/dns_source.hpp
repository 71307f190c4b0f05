// DNS source: the records of a name are the endpoints: A and AAAA with a configured port, or SRV
// with the targets' addresses.
//
//   records             the new set, asked again after their TTL, held within [ttl_min, ttl_max]
//   no such name        an answer too: the set is empty. Asked again after ttl_min
//   failure or silence  the set stays. Asked again after ttl_min, then after twice that, to ttl_max
//
// Names of endpoints are "address:port"; of SRV "target:port", which stays when the target's
// address changes. Reactor thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/config/pool_config.hpp"
#include "daemon/discovery/source.hpp"
#include "daemon/net/reactor.hpp"
#include "daemon/net/resolver.hpp"

namespace pickd::discovery {

class DnsSource final : public Source {
 public:
  DnsSource(net::Reactor& reactor, std::unique_ptr<net::Resolver> resolver,
            config::DnsDiscoveryConfig config, SourceHooks hooks);
  ~DnsSource() override;
  void start() override;

 private:
  // One refresh: all its questions, and what has been answered.
  struct Round {
    std::size_t open = 0;  // questions without an answer
    std::uint32_t ttl_s = UINT32_MAX;
    std::string failure;
    std::vector<net::DnsRecord> services;
    std::map<std::string, std::vector<std::string>> addresses;  // by target; of A and AAAA by ""
  };

  void refresh();
  void ask(const std::string& name, net::DnsType type, const std::string& target);
  void answered(const net::DnsAnswer& answer, net::DnsType type, const std::string& name,
                const std::string& target);
  void ask_targets();
  void finish();
  std::vector<endpoints::EndpointSpec> endpoints_of(const Round& round) const;
  void ask_again(std::uint64_t delay_ms);

  net::Reactor& reactor_;
  std::unique_ptr<net::Resolver> resolver_;
  config::DnsDiscoveryConfig config_;
  SourceHooks hooks_;
  Round round_;
  std::uint64_t failures_ = 0;  // in a row
  net::Reactor::TimerId timer_ = 0;
};

}  // namespace pickd::discovery
