// make_access: where the API server is, whose certificates it is known by, and who we are there.
#include <fstream>

#include "daemon/discovery/kubernetes/kubernetes_source.hpp"
#include "daemon/net/http/bearer_token.hpp"
#include "daemon/net/http/tls.hpp"

namespace pickd::discovery::kubernetes {

namespace {

constexpr std::uint64_t kConnectTimeoutMs = 5000;
constexpr std::size_t kNamespaceBytesMax = 63;

base::Result<std::string> read_namespace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string name(kNamespaceBytesMax + 1, '\0');
  file.read(name.data(), static_cast<std::streamsize>(name.size()));
  name.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  while (!name.empty() && (name.back() == '\n' || name.back() == ' ')) name.pop_back();
  if (name.empty() || name.size() > kNamespaceBytesMax) {
    return base::Error{-ENOENT, "no namespace in " + path +
                                    ", which every pod with a service account has; say namespace:"};
  }
  return name;
}

base::Result<net::http::Url> server_of(const std::string& configured, const std::string& host,
                                       const std::string& port) {
  if (!configured.empty()) return net::http::parse_url(configured);
  if (host.empty()) {
    return base::Error{-ENOENT,
                       "KUBERNETES_SERVICE_HOST is not set, so this is no pod; say api_server:, "
                       "such as https://10.96.0.1:443"};
  }
  const bool v6 = host.find(':') != std::string::npos;
  return net::http::parse_url("https://" + (v6 ? "[" + host + "]" : host) + ":" +
                              (port.empty() ? "443" : port));
}

}  // namespace

base::Result<Access> make_access(const config::KubernetesDiscoveryConfig& config,
                                 const std::string& service_host, const std::string& service_port,
                                 net::Resolver* resolver) {
  Access access;
  auto server = server_of(config.api_server, service_host, service_port);
  if (!server) return server.error();
  access.server = *server;
  access.name_space = config.name_space;
  if (access.name_space.empty()) {
    auto name = read_namespace(config.namespace_file);
    if (!name) return name.error();
    access.name_space = *name;
  }
  access.client.connect_timeout_ms = kConnectTimeoutMs;
  access.client.resolver = resolver;
  if (access.server.tls) {
    auto tls = net::http::TlsContext::create({config.ca_file, false, ""});
    if (!tls) return tls.error();
    access.client.tls = *tls;
  }
  // Over plain HTTP a token would be there for all to read.
  const bool local = access.server.host == "127.0.0.1" || access.server.host == "localhost";
  if (!config.token_file.empty() && (access.server.tls || local))
    access.client.token = std::make_shared<net::http::BearerToken>(config.token_file);
  return access;
}

}  // namespace pickd::discovery::kubernetes
