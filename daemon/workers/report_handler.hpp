// What a report does: releases or moves what a ticket holds, counts what the engine said, and notes
// whether the endpoint served.
#pragma once

#include <cstdint>

#include "daemon/endpoints/reservations.hpp"
#include "daemon/endpoints/topology.hpp"
#include "daemon/state/counters.hpp"
#include "daemon/workers/submission.hpp"

namespace pickd::workers {

class ReportHandler {
 public:
  ReportHandler(endpoints::Reservations& reservations, abi::EndpointRecord* records)
      : reservations_(&reservations), records_(records) {}

  // The status for the client: 0, -ESTALE, -EPERM, -ENOENT (no such fallback endpoint).
  // `now_ns` is of the store's clock. A report of the end becomes one of all that was told of the
  // usage, now and before.
  int apply(DecodedReport& report, std::uint32_t uid, std::uint64_t now_ns,
            const endpoints::Topology& topology, state::Counters& counters) const;

 private:
  endpoints::ReportOutcome move(const DecodedReport& report, std::uint32_t uid,
                                std::uint64_t now_ns, const endpoints::Topology& topology,
                                std::uint64_t* from, bool* found) const;
  void note(abi::ReportKind kind, std::uint64_t handle) const;

  endpoints::Reservations* reservations_;
  abi::EndpointRecord* records_;
};

}  // namespace pickd::workers
