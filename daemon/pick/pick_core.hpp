// The pick core: a request in, endpoints out, the load reserved in the same step.
//
// No I/O, no clock, no allocation, no lock: the daemon, the simulator, the benchmarks and the tests
// run this code. pick() and remember() are called by any worker, each with scratch of its own.
#pragma once

#include <bitset>
#include <memory>

#include "daemon/base/published.hpp"
#include "daemon/endpoints/reservations.hpp"
#include "daemon/endpoints/topology.hpp"
#include "daemon/pick/producers.hpp"
#include "daemon/pick/result.hpp"
#include "daemon/pick/schedule.hpp"
#include "daemon/pick/session_table.hpp"
#include "daemon/pick/trace.hpp"
#include "daemon/prefix/prefix_table.hpp"
#include "daemon/state/counters.hpp"

namespace pickd::pick {

// What a worker needs to pick; reused for every pick.
struct PickScratch {
  // `reader_slot`: a number below kThreadsCountedMax that no other thread picks with.
  explicit PickScratch(std::uint64_t random_seed, std::uint32_t reader_slot = 0)
      : random(random_seed), reader(reader_slot) {}

  Candidates candidates;
  std::bitset<abi::kEndpointIdsMax> subset;
  prefix::MatchScratch match;
  base::Random random;
  std::uint32_t reader;                // the thread's slot in what is published to workers
  const Schedule* schedule = nullptr;  // in use since the last pick, announced in the core
  const latency::Coefficients* coefficients = nullptr;  // the same
  std::size_t stage_winner = 0;  // among the candidates, of the stage that was picked last
  PickTrace* trace = nullptr;    // the next pick is written down there; nullptr: nowhere
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

  PickCore(const Parts& parts, std::unique_ptr<const Schedule> schedule);

  // Decides and reserves. `tick` was read before the call: what a reset does meanwhile lies above
  // it. Result pointers live as long as `topology`, and those to profiles until the next pick with
  // this scratch.
  void pick(const PickRequest& asked, const endpoints::Topology& topology, std::uint64_t tick,
            PickScratch& scratch, state::Counters& counters, PickResult& result);

  // Fetches what a pick of these keys looks at first. Any keys will do.
  void prefetch(std::span<const std::uint64_t> keys) const { parts_.table->prefetch(keys); }

  // After the answer is out: stamps the blocks of who was picked, remembers session and adapter.
  void remember(const PickRequest& request, const PickResult& result, std::uint64_t tick,
                state::Counters& counters);

  // Picks that begin after this go by `schedule`; those under way end by the one they began with.
  // One thread only, this and the next.
  void set_schedule(std::unique_ptr<const Schedule> schedule) {
    schedules_.publish(std::move(schedule));
  }
  const Schedule& schedule() const { return schedules_.current(); }

 private:
  struct Run;  // one profile over the candidates of one request

  const Schedule& schedule_of(PickScratch& scratch);
  const latency::Coefficients* coefficients_of(PickScratch& scratch) const;
  PickRequest bounded(const PickRequest& asked, const Schedule& schedule) const;
  bool saturated(const Run& run, const Schedule& schedule) const;
  bool admitted(const Run& run, const Schedule& schedule) const;
  bool rank(const Run& run, const Profile& profile, Stage stage, Ranking& ranking) const;
  void apply_filters(const Run& run, const Profile& profile, ColumnSet produced) const;
  void sum_scores(const Run& run, const Profile& profile) const;
  PickedEndpoint picked_at(const Run& run, std::size_t at) const;
  void fill_result(const Run& run, const Ranking& ranking, PickResult& result) const;
  bool pick_stage(const Run& run, Stage stage, const Profile& profile, PickResult& result,
                  PickedEndpoint& picked) const;
  void pick_encode(const Run& run, const Schedule& schedule, PickResult& result) const;
  void pick_prefill(const Run& run, const Schedule& schedule, PickFacts* facts,
                    PickResult& result) const;
  PickFacts facts_at(const Run& run, std::size_t at) const;
  void reserve(const Run& run, const Schedule& schedule, const PickFacts* facts,
               PickResult& result) const;
  void stamp(std::span<const std::uint64_t> keys, const PickedEndpoint& picked, std::uint64_t tick,
             state::Counters& counters) const;

  Parts parts_;
  base::Published<Schedule, abi::kThreadsCountedMax> schedules_;
  SessionTable sessions_;
  ProducerSources sources_;
};

}  // namespace pickd::pick
