// Gateway: one node's pickd in a simulation: the daemon's own pick core, prefix table,
// reservations, horizons and learner over plain memory, in virtual time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/endpoints/endpoint_table.hpp"
#include "daemon/pick/pick_core.hpp"
#include "daemon/pick/schedule.hpp"
#include "daemon/prefix/horizons.hpp"
#include "daemon/prefix/sweep.hpp"
#include "tools/sim/workload.hpp"

namespace pickd::sim {

struct GatewayOptions {
  std::string policy = "least-predicted-cost";  // name of a built-in profile, or a file *.yaml
  std::uint32_t endpoints = 8;
  std::uint64_t capacity_blocks = 5000;  // of an endpoint; 0: unknown
  double ttl_s = 1800;
  double lease_s = 600;
  double report_noise = 0;  // standard deviation of a learned latency, as a share of it
  std::uint64_t seed = 1;
};

struct Chosen {
  std::uint32_t endpoint = 0;  // from 0
  std::uint64_t ticket = 0;
  double ttft_s = 0;  // predicted; NaN: nothing was
  double itl_s = 0;
};

class Gateway {
 public:
  explicit Gateway(const GatewayOptions& options);

  // Picks, reserves and stamps. Throws std::runtime_error when nobody can be picked.
  Chosen pick(const SimRequest& request, double now_s);
  void first_token(std::uint64_t ticket, double now_s);
  void done(std::uint64_t ticket, double now_s, std::uint32_t prompt_tokens,
            std::uint32_t cached_tokens, std::uint32_t output_tokens);
  // The engine answered with an error, or was gone.
  void failed(std::uint64_t ticket, double now_s);

  // What a scrape of an endpoint said.
  void scraped(std::uint32_t endpoint, std::uint32_t waiting, std::uint32_t running, double kv_use,
               double now_s);
  // It came back empty.
  void restarted(std::uint32_t endpoint, double now_s);

  // Horizons, sweep, learner: call it every 50 ms of virtual time.
  void turn(double now_s);

  const latency::Learner& learner() const { return learner_; }
  const latency::Coefficients& coefficients() const { return *newest_; }

 private:
  struct Free {
    void operator()(abi::Word* words) const;
  };
  double noise();

  GatewayOptions options_;
  std::uint64_t lines_;
  std::unique_ptr<abi::Word, Free> words_;
  std::unique_ptr<abi::EndpointRecord[]> records_;
  std::unique_ptr<abi::Reservation[]> slots_;
  abi::Word global_horizon_{0};
  abi::Word high_water_{1};
  abi::Word row_[abi::kCountersMax]{};
  prefix::Ages ages_;
  prefix::PrefixTable table_;
  prefix::Horizons horizons_;
  prefix::Sweep sweep_;
  pick::Flights flights_;
  endpoints::Reservations reservations_;
  endpoints::TopologyStore store_;
  endpoints::EndpointTable endpoints_;
  state::Counters counters_;
  std::unique_ptr<pick::PickCore> core_;
  std::unique_ptr<pick::PickScratch> scratch_;
  latency::Learner learner_;
  const latency::Coefficients* newest_;
  std::uint64_t tickets_ = 0;  // given so far
  std::vector<std::uint64_t> keys_;
  std::uint32_t lease_cursor_ = 0;
  double drawn_down_s_ = 0;
  base::Random random_;
};

}  // namespace pickd::sim
