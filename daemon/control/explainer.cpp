#include "daemon/control/explainer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <vector>

#include "daemon/base/clock.hpp"
#include "daemon/base/random.hpp"
#include "daemon/workers/submission.hpp"

namespace pickd::control {

struct Explainer::DryRun {
  explicit DryRun(std::size_t endpoints)
      : scratch(base::random_u64(), state::kControlRow),
        trace(pick::PickTrace::words_for(endpoints)),
        counters(row) {
    scratch.trace = &trace;
  }

  pick::PickScratch scratch;
  pick::PickTrace trace;
  workers::DecodeScratch decode;
  abi::Word row[abi::kCountersMax]{};  // nobody reads it
  state::Counters counters;
};

Explainer::Explainer(EngineRoom& room) : room_(room) {}
Explainer::~Explainer() = default;

std::unique_ptr<const pick::Explanation> Explainer::kept(
    const std::optional<endpoints::Ticket>& ticket, Viewer viewer) const {
  std::vector<std::uint64_t> found;
  std::uint64_t found_ns = 0;
  for (std::uint32_t index = 0; index < room_.worker_count(); ++index) {
    std::uint64_t newest_ns = 0;
    auto trace = room_.worker(index).traces().newest([&](const pick::TracedPick& pick) {
      if (viewer && pick.uid != *viewer) return false;
      if (ticket &&
          (pick.ticket_client != ticket->client || pick.ticket_sequence != ticket->sequence)) {
        return false;
      }
      newest_ns = pick.now_ns;
      return true;
    });
    if (!trace || (!found.empty() && newest_ns <= found_ns)) continue;
    found = std::move(*trace);
    found_ns = newest_ns;
  }
  auto explained = pick::explain(found);
  if (!explained) return nullptr;
  return std::make_unique<const pick::Explanation>(std::move(*explained));
}

std::vector<std::unique_ptr<const pick::Explanation>> Explainer::recent(std::size_t count) const {
  struct Kept {
    std::uint64_t now_ns;
    endpoints::Ticket ticket;
    std::uint32_t worker;
  };
  std::vector<Kept> kept;
  for (std::uint32_t index = 0; index < room_.worker_count(); ++index) {
    // Wants none, and so gets to see them all; again from the start when the worker was quicker.
    static_cast<void>(room_.worker(index).traces().newest([&](const pick::TracedPick& pick) {
      kept.push_back({pick.now_ns, {pick.ticket_client, pick.ticket_sequence}, index});
      return false;
    }));
  }
  const auto order = [](const Kept& a, const Kept& b) {
    return std::tie(b.now_ns, a.ticket.client, a.ticket.sequence) <
           std::tie(a.now_ns, b.ticket.client, b.ticket.sequence);
  };
  const auto same = [](const Kept& a, const Kept& b) {
    return a.ticket.client == b.ticket.client && a.ticket.sequence == b.ticket.sequence;
  };
  std::sort(kept.begin(), kept.end(), order);
  kept.erase(std::unique(kept.begin(), kept.end(), same), kept.end());
  std::vector<std::unique_ptr<const pick::Explanation>> found;
  for (const Kept& one : kept) {
    if (found.size() == count) break;
    auto trace = room_.worker(one.worker).traces().newest([&](const pick::TracedPick& pick) {
      return pick.ticket_client == one.ticket.client && pick.ticket_sequence == one.ticket.sequence;
    });
    if (!trace) continue;  // gone meanwhile
    if (auto explained = pick::explain(*trace); explained)
      found.push_back(std::make_unique<const pick::Explanation>(std::move(*explained)));
  }
  return found;
}

base::Result<std::unique_ptr<const pick::Explanation>> Explainer::dry_run(
    std::span<const std::byte> record, std::uint32_t uid, workers::UserRates& rates) {
  const abi::StateHeader& header = room_.segment().header();
  if (dry_ == nullptr) dry_ = std::make_unique<DryRun>(header.endpoint_ids);
  DryRun& dry = *dry_;
  // As in a worker: a copy of its own, aligned for the keys.
  std::vector<std::uint64_t> words((record.size() + sizeof(std::uint64_t) - 1) /
                                   sizeof(std::uint64_t));
  if (!record.empty()) std::memcpy(words.data(), record.data(), record.size());
  const std::span<const std::byte> copy(reinterpret_cast<const std::byte*>(words.data()),
                                        record.size());
  workers::DecodedPick decoded;
  if (!workers::decode_pick(copy, room_.pick_limits(), dry.decode, decoded))
    return base::Error{-EINVAL, "the record is no pick as pickd's library writes it"};
  pick::PickRequest& request = decoded.request;
  const std::uint64_t coarse_ns = base::coarse_ns();
  if (!rates.messages.take(1, coarse_ns) || !rates.blocks.take(request.keys.size(), coarse_ns)) {
    return base::Error{-EAGAIN,
                       "this user is over listen.messages_per_s or listen.blocks_per_s; try again"};
  }
  request.dry_run = true;
  request.uid = uid;
  request.ticket = {};
  request.now_ns = room_.clock().now_ns();
  pick::PickResult result;
  const endpoints::Topology& topology = room_.topologies().acquire(state::kControlRow);
  room_.core().pick(request, topology, request.now_ns / abi::kTickNs, dry.scratch, dry.counters,
                    result);
  room_.topologies().release(state::kControlRow);
  auto explained = pick::explain(dry.trace.words());
  if (!explained) return base::Error{-EPROTO, "the pick could not be explained"};
  return std::make_unique<const pick::Explanation>(std::move(*explained));
}

}  // namespace pickd::control
