#include "daemon/control/discovery_owner.hpp"

#include <set>
#include <sstream>

#include "daemon/base/log.hpp"
#include "daemon/discovery/make_source.hpp"

namespace pickd::control {

namespace {

// How soon an endpoint that was left out gets a place which became free.
constexpr std::uint64_t kTryAgainNs = 5'000'000'000;

}  // namespace

base::Result<std::unique_ptr<DiscoveryOwner>> DiscoveryOwner::create(const config::Config& config,
                                                                     net::Reactor& reactor,
                                                                     EngineRoom& room,
                                                                     state::Counters& counters) {
  std::unique_ptr<DiscoveryOwner> owner(new DiscoveryOwner(reactor, room, counters));
  owner->forget_others(config);
  for (const config::PoolConfig& pool : config.pools) {
    if (!pool.discovery) continue;
    if (auto added = owner->add(pool, config); !added) return added.error();
  }
  if (!owner->pools_.empty()) owner->try_again();
  return owner;
}

DiscoveryOwner::~DiscoveryOwner() { reactor_.cancel(timer_); }

base::Result<void> DiscoveryOwner::add(const config::PoolConfig& pool,
                                       const config::Config& config) {
  auto added = std::make_unique<Pool>();
  Pool* self = added.get();
  added->name = pool.name;
  const discovery::SetKeeper::Parts parts{
      &room_.endpoint_table(), &room_.topologies(), [this] { return room_.clock().tick(); },
      static_cast<std::uint32_t>(config.state.endpoints_max), config.state.block_tokens};
  added->keeper = std::make_unique<discovery::SetKeeper>(parts, pool);
  auto source = discovery::make_source(
      reactor_, pool, config.state.block_tokens,
      {[this, self](const auto& set) { took(*self, self->keeper->take(set)); },
       [this, self](const std::string& why) { trouble(*self, why); }});
  if (!source) {
    return base::Error{source.error().code, pool.discovery->place.text() +
                                                ": discovery of pool \"" + pool.name +
                                                "\": " + source.error().text};
  }
  added->source = std::move(*source);
  added->source->start();
  pools_.push_back(std::move(added));
  return {};
}

// A state file that is gone on with may hold endpoints of a discovery that was taken out of the
// configuration meanwhile; nobody else would ever remove them.
void DiscoveryOwner::forget_others(const config::Config& config) {
  std::set<std::string> stale;
  for (const endpoints::TopologyEndpoint& endpoint : room_.topologies().current().endpoints()) {
    if (endpoint.source.starts_with(discovery::kSourcePrefix)) stale.insert(endpoint.source);
  }
  for (const config::PoolConfig& pool : config.pools) {
    if (pool.discovery) stale.erase(discovery::source_name(pool.name));
  }
  for (const std::string& source : stale) {
    if (auto removed = room_.endpoint_table().replace({}, source, room_.clock().tick()); !removed)
      spdlog::warn("{}: {}", source, removed.error().text);
  }
}

void DiscoveryOwner::took(Pool& pool, const discovery::SetKeeper::Taken& taken) {
  if (taken.changed) {
    counters_.add(abi::Counter::discovery_sets);
    pool.given = true;
    pool.endpoints = taken.endpoints;
    pool.said_endpoints.reset();
    tell(pool);
  }
  counters_.add(abi::Counter::discovery_left_out, taken.complaints.size());
  for (const std::string& complaint : taken.complaints) {
    if (pool.lines.take(room_.clock().tick()))
      spdlog::warn("discovery of pool \"{}\": left out: {}", pool.name, complaint);
  }
}

void DiscoveryOwner::trouble(Pool& pool, const std::string& why) {
  if (pool.trouble == why) return;
  pool.trouble = why;
  if (!why.empty()) counters_.add(abi::Counter::discovery_troubles);
  tell(pool);
}

// What is new since the log said something: a trouble once, and once more when it is over.
void DiscoveryOwner::tell(Pool& pool) {
  if (pool.said_endpoints != pool.endpoints && pool.given &&
      pool.lines.take(room_.clock().tick())) {
    pool.said_endpoints = pool.endpoints;
    spdlog::info("discovery of pool \"{}\": {} endpoints", pool.name, pool.endpoints);
  }
  if (pool.said_trouble == pool.trouble || !pool.lines.take(room_.clock().tick())) return;
  pool.said_trouble = pool.trouble;
  if (pool.trouble.empty()) {
    pool.said_lines.clear();
    spdlog::info("discovery of pool \"{}\": all is well again", pool.name);
    return;
  }
  std::set<std::string> said;
  std::istringstream lines(pool.trouble);
  for (std::string line; std::getline(lines, line);) {
    if (!pool.said_lines.contains(line))
      spdlog::warn("discovery of pool \"{}\": {}", pool.name, line);
    said.insert(line);
  }
  pool.said_lines = std::move(said);
}

void DiscoveryOwner::try_again() {
  for (const auto& pool : pools_) {
    if (pool->keeper->left_out()) took(*pool, pool->keeper->again());
    tell(*pool);
  }
  timer_ = reactor_.after(kTryAgainNs, [this] { try_again(); });
}

}  // namespace pickd::control
