// AdminSource: what the admin listener shows, collected from the parts of the daemon. Control
// thread only; reads words that others write and waits for nobody.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "daemon/admin/facts.hpp"
#include "daemon/control/engine_room.hpp"
#include "daemon/control/explainer.hpp"
#include "daemon/control/pulse.hpp"
#include "daemon/endpoints/endpoint_notes.hpp"

namespace pickd::control {

class AdminSource final : public admin::Source {
 public:
  struct Parts {
    EngineRoom* room;
    endpoints::EndpointNotes* notes;
    const Explainer* explainer;
    const Pulse* pulse;
    std::uint64_t started_ns;  // of the monotonic clock
    std::string reactor;
    std::function<std::size_t()> clients;
    std::function<std::size_t()> channels;
  };
  explicit AdminSource(Parts parts);

  admin::Facts facts() override;
  std::vector<admin::Check> health() override;
  std::vector<admin::Check> readiness() override;
  std::vector<RecentPick> recent_picks(std::size_t count) override;

 private:
  admin::EndpointFacts endpoint_facts(const endpoints::TopologyEndpoint& endpoint,
                                      std::uint64_t tick);
  void add_picks(admin::Facts& facts) const;
  void add_latency(admin::Facts& facts) const;

  Parts parts_;
};

}  // namespace pickd::control
