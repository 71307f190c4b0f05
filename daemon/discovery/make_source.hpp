// make_source: the source that a pool's configuration names.
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/base/result.hpp"
#include "daemon/config/pool_config.hpp"
#include "daemon/discovery/source.hpp"
#include "daemon/net/reactor.hpp"

namespace pickd::discovery {

// `pool` has a discovery. Fails on what only trying shows: a DNS server's address that is none, a
// certificate file that cannot be read.
base::Result<std::unique_ptr<Source>> make_source(net::Reactor& reactor,
                                                  const config::PoolConfig& pool,
                                                  std::uint64_t block_tokens, SourceHooks hooks);

}  // namespace pickd::discovery
