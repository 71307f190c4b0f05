// The pick core: a request in, endpoints out, the load reserved in the same step.
//
// No I/O, no clock, no allocation, no lock: the daemon, the simulator, the benchmarks and the tests
// run this code. pick() and remember() are called by any worker, each with scratch of its own.
#pragma once

#include <bitset>
#include <memory>

#include "daemon/endpoints/reservations.hpp"
#include "daemon/endpoints/topology.hpp"
#include "daemon/pick/producers.hpp"
#include "daemon/pick/profile.hpp"
#include "daemon/pick/result.hpp"
#include "daemon/pick/session_table.hpp"
#include "daemon/prefix/prefix_table.hpp"
#include "daemon/state/counters.hpp"

namespace pickd::pick {

// What a worker needs to pick; reused for every pick.
struct PickScratch {
  explicit PickScratch(std::uint64_t random_seed, std::uint32_t reader_slot = 0)
      : random(random_seed), reader(reader_slot) {}

  Candidates candidates;
  std::bitset<abi::kEndpointIdsMax> subset;
  prefix::MatchScratch match;
  base::Random random;
  std::uint32_t reader;  // the worker's slot in what is published to workers
};

class PickCore {
 public:
  struct Parts {
    abi::EndpointRecord* records;
    prefix::PrefixTable* table;
    endpoints::Reservations* reservations;
    std::uint32_t block_tokens;
    std::uint32_t blocks_min;
    std::uint32_t blocks_max;
    std::uint64_t session_secret;
    Flights* flights = nullptr;  // nullptr: nothing is predicted and nothing learned
  };

  // `profile` outlives the core.
  PickCore(const Parts& parts, const Profile& profile);

  // Decides and reserves. `tick` was read before the call: what a reset does meanwhile lies above
  // it. Result pointers live as long as `topology`.
  void pick(const PickRequest& asked, const endpoints::Topology& topology, std::uint64_t tick,
            PickScratch& scratch, state::Counters& counters, PickResult& result);

  // After the answer is out: stamps the winner's blocks, remembers the session and the adapter.
  void remember(const PickRequest& request, const PickResult& result, std::uint64_t tick,
                state::Counters& counters);

  const Profile& profile() const { return *profile_; }

 private:
  void apply_filters(const PickContext& context, Candidates& candidates, ColumnSet produced) const;
  void sum_scores(const PickContext& context, Candidates& candidates,
                  state::Counters& counters) const;
  void fill_result(const PickContext& context, const Ranking& ranking, bool least_bad,
                   PickResult& result) const;
  void reserve(const PickContext& context, std::size_t winner,
               const latency::Coefficients* coefficients, state::Counters& counters,
               PickResult& result);

  Parts parts_;
  const Profile* profile_;
  SessionTable sessions_;
  ProducerSources sources_;
};

}  // namespace pickd::pick
