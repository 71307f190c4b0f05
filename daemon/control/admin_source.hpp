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
#include "daemon/endpoints/endpoint_notes.hpp"

namespace pickd::control {

class AdminSource final : public admin::Source {
 public:
  struct Parts {
    EngineRoom* room;
    endpoints::EndpointNotes* notes;
    const Explainer* explainer;
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
  admin::Check maintenance_check() const;
  admin::Check worker_check(std::uint32_t index);

  struct Asked {
    std::uint64_t times = 0;
    std::uint64_t at_ns = 0;
  };
  Parts parts_;
  std::vector<Asked> asked_;  // by worker
};

}  // namespace pickd::control
