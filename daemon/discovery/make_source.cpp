#include "daemon/discovery/make_source.hpp"

#include <cstdlib>

#include "daemon/discovery/dns_source.hpp"
#include "daemon/discovery/file_source.hpp"
#include "daemon/discovery/kubernetes/kubernetes_source.hpp"

namespace pickd::discovery {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

base::Result<std::unique_ptr<Source>> make_source(net::Reactor& reactor,
                                                  const config::PoolConfig& pool,
                                                  std::uint64_t block_tokens, SourceHooks hooks) {
  const config::DiscoveryConfig& discovery = *pool.discovery;
  if (discovery.file) {
    FileSourceOptions options;
    options.path = discovery.file->path;
    options.pool = pool.name;
    options.block_tokens = block_tokens;
    return std::unique_ptr<Source>(
        std::make_unique<FileSource>(reactor, std::move(options), std::move(hooks)));
  }
  if (discovery.dns) {
    auto resolver =
        net::Resolver::create(reactor, {discovery.dns->servers, discovery.dns->timeout_ms});
    if (!resolver) return resolver.error();
    return std::unique_ptr<Source>(std::make_unique<DnsSource>(reactor, std::move(*resolver),
                                                               *discovery.dns, std::move(hooks)));
  }
  if (discovery.kubernetes) {
    auto resolver = net::Resolver::create(reactor, {});
    if (!resolver) return resolver.error();
    auto access =
        kubernetes::make_access(*discovery.kubernetes, variable("KUBERNETES_SERVICE_HOST"),
                                variable("KUBERNETES_SERVICE_PORT"), resolver->get());
    if (!access) return access.error();
    return std::unique_ptr<Source>(std::make_unique<kubernetes::KubernetesSource>(
        reactor, std::move(*resolver), std::move(*access), *discovery.kubernetes,
        std::move(hooks)));
  }
  return base::Error{-EINVAL, "pool \"" + pool.name + "\": its discovery names no source"};
}

}  // namespace pickd::discovery
