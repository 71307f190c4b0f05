#include "daemon/pick/pick_core.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "daemon/endpoints/endpoint_spec.hpp"
#include "daemon/pick/gather.hpp"
#include "daemon/pick/predictions.hpp"

namespace pickd::pick {

namespace {

constexpr std::uint64_t kTickMs = abi::kTickNs / 1'000'000;

// Columns that the result and the reservation need, whatever the profile reads.
constexpr ColumnSet kColumnsAlways =
    column_bit(Column::kMatchBlocks) | column_bit(Column::kUncachedTokens);

std::uint32_t stamp_for(std::uint64_t tick, std::uint32_t floor) {
  const auto stamp = static_cast<std::uint32_t>(tick) & abi::kStampMask;
  // A floor one tick ahead (reset in this very tick) wins over the tick; one of half a wrap ago
  // does not.
  return abi::newer_stamp(stamp, floor, stamp);
}

void remember_adapter(abi::EndpointRecord& record, std::uint32_t hash) {
  // Most recent first, at most as many as the engine has room for. Races lose an entry at worst.
  const std::uint32_t told = record.adapters_max.load(std::memory_order_relaxed);
  const std::size_t room = told == 0 ? abi::kEndpointAdaptersMax
                                     : std::min<std::size_t>(told, abi::kEndpointAdaptersMax);
  std::uint32_t carried = hash;
  for (std::size_t at = 0; at < room; ++at) {
    const std::uint32_t here = record.adapters_recent[at].load(std::memory_order_relaxed);
    record.adapters_recent[at].store(carried, std::memory_order_relaxed);
    if (here == hash || here == 0) return;
    carried = here;
  }
}

}  // namespace

PickCore::PickCore(const Parts& parts, const Profile& profile)
    : parts_(parts),
      profile_(&profile),
      sessions_(parts.session_secret),
      sources_{parts.records,      parts.table,      &sessions_,
               parts.block_tokens, parts.blocks_min, profile.session_ttl_ms() / kTickMs,
               parts.flights} {}

void PickCore::pick(const PickRequest& asked, const endpoints::Topology& topology,
                    std::uint64_t tick, PickScratch& scratch, state::Counters& counters,
                    PickResult& result) {
  // Blocks beyond the longest prefix that counts are nowhere: not in a match, not in what it is a
  // share of.
  PickRequest request = asked;
  if (request.keys.size() > parts_.blocks_max) request.keys = request.keys.first(parts_.blocks_max);
  result.count = 0;
  result.reserved = false;
  result.reason = abi::Reason::kNone;
  result.predicted_ttft_ms = kUnknown;
  result.predicted_itl_ms = kUnknown;
  Candidates& candidates = scratch.candidates;
  const Gathered gathered =
      gather_candidates(request, topology, parts_.records, scratch.subset, candidates);
  result.status = gathered.status;
  if (gathered.status != 0) {
    counters.add(gathered.status == -ENOENT ? abi::Counter::picks_unknown_model
                                            : abi::Counter::picks_no_endpoint);
    counters.add(abi::Counter::picks_refused);
    return;
  }
  const PickContext context{request, topology, candidates, tick, scratch.random};
  const latency::Coefficients* coefficients =
      parts_.flights == nullptr ? nullptr : &parts_.flights->coefficients(scratch.reader);
  const ColumnSet early = profile_->filter_columns();
  if (!profile_->filters().empty()) {
    produce(early, sources_, request, tick, coefficients, scratch.match, candidates);
    apply_filters(context, candidates, early);
    if (candidates.count == 0) {
      result.status = -EBUSY;
      counters.add(abi::Counter::picks_shed);
      counters.add(abi::Counter::picks_refused);
      return;
    }
  }
  const ColumnSet late = (profile_->columns() | kColumnsAlways) & ~early;
  produce(late, sources_, request, tick, coefficients, scratch.match, candidates);
  sum_scores(context, candidates, counters);

  Ranking ranking;
  const auto wanted = std::clamp<std::uint32_t>(request.endpoints_max, 1, abi::kResultEndpointsMax);
  profile_->picker().rank(context, {candidates.sums(), candidates.count}, wanted, ranking);
  fill_result(context, ranking, gathered.least_bad, result);
  if (!request.dry_run) reserve(context, ranking.order[0], coefficients, counters, result);
  counters.add(abi::Counter::picks);
  counters.add(abi::Counter::prompt_blocks, request.keys.size());
  counters.add(abi::Counter::match_blocks, result.endpoints[0].match_blocks);
}

void PickCore::apply_filters(const PickContext& context, Candidates& candidates,
                             ColumnSet produced) const {
  for (const Filter* filter : profile_->filters()) {
    if (candidates.count == 0) return;
    std::fill_n(candidates.keep(), candidates.count, std::uint8_t{1});
    filter->filter(context, {candidates.keep(), candidates.count});
    candidates.compact(produced);
  }
}

void PickCore::sum_scores(const PickContext& context, Candidates& candidates,
                          state::Counters& counters) const {
  double* sums = candidates.sums();
  float* scores = candidates.scores();
  std::fill_n(sums, candidates.count, 0.0);
  for (const Profile::WeightedScorer& use : profile_->scorers()) {
    std::fill_n(scores, candidates.count, kNoScore);
    if (!use.scorer->score(context, {scores, candidates.count})) {
      counters.add(abi::Counter::plugin_failures);
      continue;
    }
    // One NaN and the scorer is left out of this pick as a whole: half a scorer would bias the
    // others.
    bool sound = true;
    for (std::size_t at = 0; at < candidates.count; ++at) sound &= !std::isnan(scores[at]);
    if (!sound) {
      counters.add(abi::Counter::plugin_failures);
      continue;
    }
    for (std::size_t at = 0; at < candidates.count; ++at) {
      if (scores[at] == kNoScore) continue;
      sums[at] += use.weight * static_cast<double>(std::clamp(scores[at], 0.0F, 1.0F));
    }
  }
}

void PickCore::fill_result(const PickContext& context, const Ranking& ranking, bool least_bad,
                           PickResult& result) const {
  const Candidates& candidates = context.candidates;
  result.count = ranking.count;
  for (std::uint32_t place = 0; place < ranking.count; ++place) {
    const std::size_t at = ranking.order[place];
    PickedEndpoint& picked = result.endpoints[place];
    picked.endpoint = candidates.endpoints()[at];
    picked.generation = abi::LifeWord{candidates.lives()[at]}.generation();
    picked.stamp_floor = abi::LifeWord{candidates.lives()[at]}.floor();
    picked.match_blocks = candidates.match_blocks()[at];
    picked.match_tokens =
        match_tokens_of(context.request, picked.match_blocks, parts_.block_tokens);
    picked.score = static_cast<float>(candidates.sums()[at]);
  }
  const auto matches = candidates.match_blocks();
  const std::uint32_t longest = *std::max_element(matches.begin(), matches.end());
  const std::size_t winner = ranking.order[0];
  const bool session =
      profile_->session_ttl_ms() != 0 && candidates.column(Column::kSession)[winner] == 1.0F;
  if (least_bad) {
    result.reason = abi::Reason::kFallback;
  } else if (candidates.count == 1) {
    result.reason = abi::Reason::kOnly;
  } else if (ranking.ties == 0) {
    result.reason = abi::Reason::kPolicy;
  } else if (session) {
    result.reason = abi::Reason::kSession;
  } else if (ranking.ties > 1) {
    result.reason = abi::Reason::kTie;
  } else {
    result.reason =
        longest != 0 && matches[winner] == longest ? abi::Reason::kPrefix : abi::Reason::kScore;
  }
}

void PickCore::reserve(const PickContext& context, std::size_t winner_at,
                       const latency::Coefficients* coefficients, state::Counters& counters,
                       PickResult& result) {
  const PickRequest& request = context.request;
  const PickedEndpoint& winner = result.endpoints[0];
  endpoints::NewReservation reservation;
  reservation.ticket = request.ticket;
  reservation.endpoint = abi::endpoint_handle(winner.endpoint->id, winner.generation);
  reservation.uncached_tokens = request.prompt_tokens - winner.match_tokens;
  reservation.prompt_tokens = request.prompt_tokens;
  reservation.expected_output_tokens = request.expected_output_tokens;
  reservation.uid = request.uid;
  reservation.tick = context.tick;
  reservation.now_ns = request.now_ns;
  PickFacts facts;
  if (coefficients != nullptr) {
    facts = facts_of(*parts_.flights, *coefficients, request, parts_.block_tokens,
                     context.candidates, winner_at);
    reservation.facts = &facts;
    result.predicted_ttft_ms = static_cast<float>(facts.predicted.ttft_s * 1000);
    result.predicted_itl_ms = static_cast<float>(facts.predicted.itl_s * 1000);
  }
  result.reserved = parts_.reservations->reserve(reservation);
  if (!result.reserved) counters.add(abi::Counter::reservations_full);
}

void PickCore::remember(const PickRequest& request, const PickResult& result, std::uint64_t tick,
                        state::Counters& counters) {
  if (result.status != 0 || request.dry_run) return;
  const PickedEndpoint& winner = result.endpoints[0];
  const std::uint32_t id = winner.endpoint->id;
  auto keys = request.keys;
  if (keys.size() > parts_.blocks_max) keys = keys.first(parts_.blocks_max);
  if (!keys.empty()) {
    const auto now = static_cast<std::uint32_t>(tick) & abi::kStampMask;
    const prefix::StampOutcome outcome = parts_.table->stamp(
        keys, id, stamp_for(tick, winner.stamp_floor), abi::Tier::kAssumed, now);
    counters.add(abi::Counter::stamped_blocks, outcome.inserted + outcome.touched);
    counters.add(abi::Counter::replaced_words, outcome.replaced);
    counters.add(abi::Counter::hot_markers, outcome.hot_markers);
  }
  if (profile_->session_ttl_ms() != 0 && !request.session.empty()) {
    sessions_.remember(request.session, id, winner.generation, tick);
  }
  if (!request.adapter.empty()) {
    abi::EndpointRecord& record = parts_.records[id];
    // An engine that was replaced since the pick has loaded nothing. One that is replaced between
    // this look and the store gets one adapter too many, and a pick too much for it, at worst.
    const abi::LifeWord life{record.life.load(std::memory_order_acquire)};
    if (life.generation() != winner.generation) return;
    remember_adapter(record,
                     endpoints::adapter_hash(request.adapter.data(), request.adapter.size()));
  }
}

}  // namespace pickd::pick
