// Ranks: one engine with several data-parallel ranks as several endpoints, or as one. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/config/pool_config.hpp"
#include "daemon/endpoints/endpoint_spec.hpp"

namespace pickd::discovery {

// The first rank keeps the name, so that it keeps its prefixes when ranks come and go; the others
// are "<name>-rank-1" and so on. Ranks behind one port share the address and have `rank` set, by
// which their part of the common metrics page is found; ranks with ports of their own have their
// own pages. As one: the address at the first port and no rank; the others' ports are `more_ports`,
// unless a page is named that is not at the endpoint's own port, which is taken to tell of all.
std::vector<endpoints::EndpointSpec> expand_ranks(const std::vector<endpoints::EndpointSpec>& specs,
                                                  const config::RanksConfig& ranks);

// `address` (host:port, a URL, or a host alone) with another port.
std::string with_port(const std::string& address, std::uint32_t port);
// The port of an address; 0 when it names none.
std::uint32_t port_of(const std::string& address);

}  // namespace pickd::discovery
