#include "daemon/discovery/dns_source.hpp"

#include <algorithm>

#include "daemon/base/random.hpp"

namespace pickd::discovery {

namespace {

using net::DnsType;
using Type = config::DnsDiscoveryConfig::Type;

constexpr std::uint64_t kMsInNs = 1'000'000;
constexpr std::uint64_t kDoublingsMax = 16;

std::string at_port(const std::string& host, std::uint64_t port) {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

endpoints::EndpointSpec endpoint(std::string name, std::string address) {
  endpoints::EndpointSpec spec;
  spec.name = std::move(name);
  spec.address = std::move(address);
  return spec;
}

}  // namespace

DnsSource::DnsSource(net::Reactor& reactor, std::unique_ptr<net::Resolver> resolver,
                     config::DnsDiscoveryConfig config, SourceHooks hooks)
    : reactor_(reactor),
      resolver_(std::move(resolver)),
      config_(std::move(config)),
      hooks_(std::move(hooks)) {}

DnsSource::~DnsSource() { reactor_.cancel(timer_); }

void DnsSource::start() { ask_again(0); }

void DnsSource::ask_again(std::uint64_t delay_ms) {
  // Jitter of a tenth, so that the daemons of all nodes do not ask in step.
  const std::uint64_t jitter_ms = delay_ms / 10 == 0 ? 0 : base::random_u64() % (delay_ms / 10);
  timer_ = reactor_.after((delay_ms + jitter_ms) * kMsInNs, [this] { refresh(); });
}

void DnsSource::refresh() {
  round_ = Round{};
  switch (config_.type) {
    case Type::kA: return ask(config_.name, DnsType::kA, "");
    case Type::kAaaa: return ask(config_.name, DnsType::kAaaa, "");
    case Type::kSrv: return ask(config_.name, DnsType::kSrv, "");
    case Type::kBoth:
      ask(config_.name, DnsType::kA, "");
      ask(config_.name, DnsType::kAaaa, "");
      return;
  }
}

void DnsSource::ask(const std::string& name, DnsType type, const std::string& target) {
  ++round_.open;
  // The resolver is ours: it goes first, and calls nobody afterwards.
  resolver_->ask(name, type, [this, type, name, target](const net::DnsAnswer& answer) {
    answered(answer, type, name, target);
  });
}

void DnsSource::answered(const net::DnsAnswer& answer, DnsType type, const std::string& name,
                         const std::string& target) {
  --round_.open;
  if (answer.status == net::DnsAnswer::Status::kFailed) {
    if (round_.failure.empty()) round_.failure = name + ": " + answer.error;
  } else if (answer.status == net::DnsAnswer::Status::kFound) {
    round_.ttl_s = std::min(round_.ttl_s, answer.ttl_s);
    if (type == DnsType::kSrv) {
      round_.services = answer.records;
      return ask_targets();
    }
    std::vector<std::string>& addresses = round_.addresses[target];
    for (const net::DnsRecord& record : answer.records) addresses.push_back(record.address);
  } else if (type == DnsType::kA && !target.empty()) {
    return ask(name, DnsType::kAaaa, target);  // a target may have IPv6 addresses alone
  }
  if (round_.open == 0) finish();
}

void DnsSource::ask_targets() {
  for (const net::DnsRecord& service : round_.services) {
    if (service.target.empty()) continue;  // "." says: no such service here
    if (!round_.addresses.contains(service.target)) {
      round_.addresses[service.target];
      ask(service.target + ".", DnsType::kA, service.target);
    }
  }
  if (round_.open == 0) finish();
}

void DnsSource::finish() {
  const std::uint64_t longest_ms = std::max(config_.ttl_min_ms, config_.ttl_max_ms);
  if (!round_.failure.empty()) {
    // Half of the answers are no set: the old one stays whole.
    hooks_.trouble(round_.failure + "; the endpoints of before stay");
    const std::uint64_t doublings = std::min(failures_++, kDoublingsMax);
    return ask_again(std::min(config_.ttl_min_ms << doublings, longest_ms));
  }
  failures_ = 0;
  const bool none = round_.ttl_s == UINT32_MAX;
  const std::uint64_t ttl_ms =
      none ? config_.ttl_min_ms
           : std::clamp(std::uint64_t{round_.ttl_s} * 1000, config_.ttl_min_ms, longest_ms);
  ask_again(ttl_ms);
  hooks_.trouble("");
  hooks_.set(endpoints_of(round_));
}

std::vector<endpoints::EndpointSpec> DnsSource::endpoints_of(const Round& round) const {
  std::vector<endpoints::EndpointSpec> set;
  if (config_.type != Type::kSrv) {
    for (const auto& [target, addresses] : round.addresses) {
      for (const std::string& address : addresses) {
        const std::string at = at_port(address, config_.port);
        set.push_back(endpoint(at, at));
      }
    }
  }
  for (const net::DnsRecord& service : round.services) {
    const auto at = round.addresses.find(service.target);
    if (at == round.addresses.end() || service.port == 0) continue;
    const std::string name = at_port(service.target, service.port);
    for (const std::string& address : at->second) {
      const bool several = at->second.size() > 1;
      auto spec = endpoint(several ? name + "/" + address : name, at_port(address, service.port));
      spec.labels = {{"dns.priority", std::to_string(service.priority)},
                     {"dns.weight", std::to_string(service.weight)}};
      set.push_back(std::move(spec));
    }
  }
  // In one order whatever the server's is: an answer that was only shuffled is no new set.
  std::sort(set.begin(), set.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  const auto same = [](const auto& a, const auto& b) { return a.name == b.name; };
  set.erase(std::unique(set.begin(), set.end(), same), set.end());
  return set;
}

}  // namespace pickd::discovery
