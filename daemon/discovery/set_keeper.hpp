// Set keeper: makes each set of a source the endpoints of its pool, and leaves out what cannot be.
//
// A source's mistake must cost one endpoint, not the set: what is wrong, named twice, somebody
// else's or over the limit is left out and said once, the rest holds. Control thread only; ticks
// come from the function given.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "daemon/config/pool_config.hpp"
#include "daemon/endpoints/endpoint_table.hpp"
#include "daemon/endpoints/topology_store.hpp"

namespace pickd::discovery {

// The name under which the endpoints of a pool's discovery stand.
std::string source_name(const std::string& pool);
inline constexpr const char* kSourcePrefix = "discovery:";

class SetKeeper {
 public:
  struct Parts {
    endpoints::EndpointTable* table;
    const endpoints::TopologyStore* topologies;
    std::function<std::uint64_t()> tick_now;
    std::uint32_t endpoints_max = 0;  // in the table, all sources together
    std::uint64_t block_tokens = 64;
  };
  // What taking a set came to.
  struct Taken {
    bool changed = false;       // the table was given another set
    std::size_t endpoints = 0;  // in the set, ranks expanded, what was left out not counted
    std::size_t left_out = 0;
    std::vector<std::string> complaints = {};  // new ones, at most kComplaintsMax, for the log
  };
  static constexpr std::size_t kComplaintsMax = 10;

  SetKeeper(Parts parts, config::PoolConfig pool);

  Taken take(const std::vector<endpoints::EndpointSpec>& set);
  // The last set once more: what was left out may have a place by now.
  Taken again() { return take(last_); }
  bool left_out() const { return left_out_; }

 private:
  endpoints::EndpointSpec completed(endpoints::EndpointSpec spec) const;
  // Why an endpoint has to be left out; empty: it has not.
  std::string reason_against(const endpoints::EndpointSpec& spec) const;

  Parts parts_;
  config::PoolConfig pool_;
  std::string source_;
  std::vector<endpoints::EndpointSpec> last_;   // as the source gave it
  std::vector<endpoints::EndpointSpec> given_;  // as the table has it
  bool given_any_ = false;
  bool left_out_ = false;
  std::set<std::string> said_;  // complaints about the set before
};

}  // namespace pickd::discovery
