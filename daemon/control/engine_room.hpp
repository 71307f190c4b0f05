// The engine room: the parts of the daemon that work on the state segment, made in order, started
// and stopped together. The control server and the tests drive it; it knows no socket.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/base/result.hpp"
#include "daemon/config/config.hpp"
#include "daemon/endpoints/endpoint_table.hpp"
#include "daemon/endpoints/reservations.hpp"
#include "daemon/endpoints/topology_store.hpp"
#include "daemon/maintenance/learner_thread.hpp"
#include "daemon/maintenance/maintenance.hpp"
#include "daemon/pick/flights.hpp"
#include "daemon/pick/pick_core.hpp"
#include "daemon/prefix/prefix_table.hpp"
#include "daemon/state/state_segment.hpp"
#include "daemon/workers/worker.hpp"

namespace pickd::control {

// What can be said of a configuration without making anything: do the sizes fit, are there the
// group and the profile. The text names the setting.
base::Result<void> check_config(const config::Config& config);

class EngineRoom {
 public:
  // Called on a worker's thread when a channel has left it.
  using ChannelGone = std::function<void(std::uint32_t channel, bool broken)>;

  static base::Result<std::unique_ptr<EngineRoom>> create(const config::Config& config,
                                                          bool virtual_clock,
                                                          ChannelGone channel_gone);
  ~EngineRoom();

  void start();

  state::StateSegment& segment() { return *segment_; }
  state::TickClock& clock() { return *clock_; }
  endpoints::EndpointTable& endpoint_table() { return *endpoint_table_; }
  endpoints::TopologyStore& topologies() { return topologies_; }
  endpoints::Reservations& reservations() { return *reservations_; }
  pick::PickCore& core() { return *core_; }
  maintenance::Maintenance& maintenance() { return *maintenance_; }
  maintenance::LearnerThread* learner() { return learner_.get(); }  // nullptr: nothing is learned
  workers::Chores& slow_wakes() { return slow_wakes_; }
  workers::Worker& worker(std::uint32_t index) { return *workers_[index]; }
  std::uint32_t worker_count() const { return static_cast<std::uint32_t>(workers_.size()); }
  // What a submission may hold.
  workers::PickLimits pick_limits() const;
  // Of an endpoint that names no capacity, in blocks; 0: no limit.
  std::uint64_t capacity_blocks_default() const { return capacity_blocks_default_; }
  // How the store began: "warm", or "empty: " and why.
  const std::string& origin() const { return origin_; }
  // Control thread only, both. Picks that begin afterwards go by the new schedule.
  const pick::Schedule& schedule() const { return core_->schedule(); }
  void set_schedule(std::unique_ptr<const pick::Schedule> schedule) {
    core_->set_schedule(std::move(schedule));
  }

 private:
  EngineRoom() = default;
  base::Result<void> add_endpoints(const config::Config& config);
  base::Result<void> make_workers(const config::Config& config, const ChannelGone& channel_gone);

  std::string origin_;
  std::uint64_t capacity_blocks_default_ = 0;
  std::unique_ptr<state::StateSegment> segment_;
  std::unique_ptr<state::TickClock> clock_;
  std::unique_ptr<prefix::Ages> ages_;
  std::unique_ptr<prefix::PrefixTable> prefix_table_;
  endpoints::TopologyStore topologies_;
  std::unique_ptr<endpoints::EndpointTable> endpoint_table_;
  std::unique_ptr<pick::Flights> flights_;
  std::unique_ptr<endpoints::Reservations> reservations_;
  std::unique_ptr<pick::PickCore> core_;
  std::unique_ptr<maintenance::Maintenance> maintenance_;
  std::unique_ptr<maintenance::LearnerThread> learner_;
  // Before the workers, which post there as long as they live.
  workers::Chores slow_wakes_{"pickd-wakes"};
  workers::Chores channel_ends_{"pickd-ends"};
  std::vector<std::unique_ptr<workers::Worker>> workers_;
};

}  // namespace pickd::control
