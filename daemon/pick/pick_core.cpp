#include "daemon/pick/pick_core.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "daemon/endpoints/endpoint_spec.hpp"
#include "daemon/pick/column_loops.hpp"
#include "daemon/pick/composite.hpp"
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

// What a request puts on an endpoint until its first token.
std::uint32_t loaded_tokens(const SourceSettings& settings, const PickRequest& request,
                            std::uint32_t uncached_tokens) {
  if (settings.output_ratio == 0) return uncached_tokens;
  double output = request.expected_output_tokens != 0
                      ? static_cast<double>(request.expected_output_tokens)
                      : settings.output_ratio * static_cast<double>(request.prompt_tokens);
  if (settings.output_tokens_max != 0)
    output = std::min(output, static_cast<double>(settings.output_tokens_max));
  return static_cast<std::uint32_t>(
      std::min(static_cast<double>(uncached_tokens) + output, static_cast<double>(UINT32_MAX)));
}

}  // namespace

struct PickCore::Run {
  const PickRequest& request;
  const endpoints::Topology& topology;
  std::uint64_t tick;
  PickScratch& scratch;
  state::Counters& counters;
  const latency::Coefficients* coefficients;          // the newest; nullptr: nothing is predicted
  bool least_bad = false;                             // nobody was ready: these are suspect
  const endpoints::TopologyEndpoint* peer = nullptr;  // see PickContext
  PickNotes* notes = nullptr;

  Candidates& candidates() const { return scratch.candidates; }
  PickTrace* trace() const { return scratch.trace; }
  PickContext context() const {
    return {request, topology, scratch.candidates, tick, scratch.random, peer, notes};
  }
};

PickCore::PickCore(const Parts& parts, std::unique_ptr<const Schedule> schedule)
    : parts_(parts),
      schedules_(std::move(schedule)),
      sessions_(parts.session_secret),
      sources_{parts.records,      parts.table,      &sessions_,
               parts.block_tokens, parts.blocks_min, parts.flights} {}

// Announced until this thread's next pick, so that what a result points to lives while it is
// remembered. An idle thread keeps one old schedule alive, no more.
const Schedule& PickCore::schedule_of(PickScratch& scratch) {
  const Schedule& schedule = scratch.schedule == nullptr
                                 ? schedules_.acquire(scratch.reader)
                                 : schedules_.renew(scratch.reader, *scratch.schedule);
  scratch.schedule = &schedule;
  return schedule;
}

const latency::Coefficients* PickCore::coefficients_of(PickScratch& scratch) const {
  if (parts_.flights == nullptr) return nullptr;
  scratch.coefficients = &parts_.flights->coefficients(scratch.reader, scratch.coefficients);
  return scratch.coefficients->sound ? scratch.coefficients : nullptr;
}

// Blocks beyond the longest prefix that counts are nowhere: not in a match, not in what it is a
// share of.
PickRequest PickCore::bounded(const PickRequest& asked, const Schedule& schedule) const {
  PickRequest request = asked;
  std::size_t blocks_max = parts_.blocks_max;
  if (const std::uint64_t tokens = schedule.sources().prefix_tokens_max; tokens != 0)
    blocks_max =
        std::min<std::size_t>(blocks_max, std::max<std::uint64_t>(1, tokens / parts_.block_tokens));
  if (request.keys.size() > blocks_max) request.keys = request.keys.first(blocks_max);
  return request;
}

void PickCore::pick(const PickRequest& asked, const endpoints::Topology& topology,
                    std::uint64_t tick, PickScratch& scratch, state::Counters& counters,
                    PickResult& result) {
  const Schedule& schedule = schedule_of(scratch);
  PickRequest request = bounded(asked, schedule);
  result.count = 0;
  result.reserved = false;
  result.has_prefill = result.has_encode = false;
  result.profile = result.prefill_profile = result.encode_profile = nullptr;
  result.reason = abi::Reason::kNone;
  result.keys = request.keys;
  result.session = {};
  result.predicted_ttft_ms = kUnknown;
  result.predicted_itl_ms = kUnknown;
  Run run{request, topology, tick, scratch, counters, coefficients_of(scratch)};
  PickNotes notes;
  run.notes = &notes;
  PickTrace* const trace = run.trace();
  if (trace != nullptr) trace->begin(request);
  const auto refuse = [&](int status, abi::Counter counter, const char* why) {
    result.status = status;
    counters.add(counter);
    counters.add(abi::Counter::picks_refused);
    if (trace == nullptr) return;
    trace->refused(why);
    trace->end(result);
  };

  const Gathered gathered =
      gather_candidates(request, topology, parts_.records, scratch.subset, scratch.candidates);
  limit_affinity(request, tick, scratch.candidates);
  run.least_bad = gathered.least_bad;
  result.status = gathered.status;
  if (trace != nullptr)
    trace->left_out(request, topology, parts_.records, scratch.subset, scratch.candidates);
  if (gathered.status == -ENOENT)
    return refuse(-ENOENT, abi::Counter::picks_unknown_model, "no endpoint serves the model");
  if (gathered.status != 0) {
    return refuse(gathered.status, abi::Counter::picks_no_endpoint,
                  "no endpoint is ready, or none in the subset");
  }
  const Profile* profile = schedule.primary(request);
  if (profile == nullptr)
    return refuse(-EINVAL, abi::Counter::picks_no_profile, "there is no profile of that name");
  if (const std::string& header = profile->session_header();
      request.session.empty() && !header.empty()) {
    if (const std::string_view* session = request.attribute(header)) request.session = *session;
  }
  if (request.priority < 0 && saturated(run, schedule))
    return refuse(-EBUSY, abi::Counter::picks_shed_priority,
                  "the pool is saturated and the priority negative");
  if (!admitted(run, schedule))
    return refuse(-EBUSY, abi::Counter::picks_shed_slo,
                  "the priority is negative, nobody is predicted to be in time and nobody is idle");
  Ranking ranking;
  if (!rank(run, *profile, Stage::kPrimary, ranking))
    return refuse(-EBUSY, abi::Counter::picks_shed, "the filters left nobody");
  result.profile = profile;
  result.session = request.session;
  fill_result(run, ranking, result);
  // What is known of the winner, while the candidates are those of its profile.
  PickFacts facts;
  const bool predicts = run.coefficients != nullptr && !request.dry_run;
  if (predicts) facts = facts_at(run, ranking.order[0]);
  pick_encode(run, schedule, result);
  pick_prefill(run, schedule, predicts ? &facts : nullptr, result);
  if (predicts) {
    result.predicted_ttft_ms = static_cast<float>(facts.predicted.ttft_s * 1000);
    result.predicted_itl_ms = static_cast<float>(facts.predicted.itl_s * 1000);
  }
  if (!request.dry_run) reserve(run, schedule, predicts ? &facts : nullptr, result);
  counters.add(abi::Counter::picks);
  counters.add(abi::Counter::prompt_blocks, request.keys.size());
  counters.add(abi::Counter::match_blocks, result.endpoints[0].match_blocks);
  if (trace != nullptr) trace->end(result);
}

PickFacts PickCore::facts_at(const Run& run, std::size_t at) const {
  return facts_of(
      {*parts_.flights, *run.coefficients, parts_.records, parts_.block_tokens, run.tick},
      run.request, run.candidates(), at);
}

bool PickCore::saturated(const Run& run, const Schedule& schedule) const {
  produce(schedule.detector_columns(), sources_, schedule.sources(), run.request, run.tick,
          run.coefficients, 0, run.scratch.match, run.candidates());
  return schedule.detector().saturation(run.candidates()) >= 1.0;
}

bool PickCore::admitted(const Run& run, const Schedule& schedule) const {
  // The only admitter looks at requests of negative priority alone; others pay nothing for it.
  if (run.request.priority >= 0 || schedule.admitters().empty()) return true;
  produce(with_made_of(schedule.admitter_columns()), sources_, schedule.sources(), run.request,
          run.tick, run.coefficients, 0, run.scratch.match, run.candidates());
  const PickContext context = run.context();
  return std::all_of(schedule.admitters().begin(), schedule.admitters().end(),
                     [&](const Admitter* admitter) { return admitter->admits(context); });
}

// False: the filters left nobody.
bool PickCore::rank(const Run& run, const Profile& profile, Stage stage, Ranking& ranking) const {
  Candidates& candidates = run.candidates();
  PickTrace* const trace = run.trace();
  if (trace != nullptr) trace->stage(stage, profile.name(), run.least_bad, candidates);
  const SourceSettings& settings = run.scratch.schedule->sources();
  std::uint64_t session_ttl_ms = profile.session_ttl_ms();
  if (run.request.affinity_ttl_ms != 0)
    session_ttl_ms = std::min(session_ttl_ms, run.request.affinity_ttl_ms);
  const std::uint64_t session_ttl_ticks = session_ttl_ms / kTickMs;
  const auto fill = [&](ColumnSet columns) {
    produce(columns, sources_, settings, run.request, run.tick, run.coefficients, session_ttl_ticks,
            run.scratch.match, candidates);
    if (trace != nullptr) trace->columns(columns, candidates);
  };
  const ColumnSet early = with_made_of(profile.filter_columns());
  if (!profile.filters().empty()) {
    fill(early);
    apply_filters(run, profile, early);
    if (candidates.count == 0) return false;
  }
  ColumnSet columns = profile.columns() | kColumnsAlways;
  // A scorer of costs falls back to the composite score.
  if (run.coefficients == nullptr && (columns & column_bit(Column::kCost)) != 0)
    columns |= kCompositeColumns;
  fill(with_made_of(columns) & ~early);
  sum_scores(run, profile);
  const auto wanted =
      std::clamp<std::uint32_t>(run.request.endpoints_max, 1, abi::kResultEndpointsMax);
  profile.picker().rank(run.context(), {candidates.sums(), candidates.count}, wanted, ranking);
  if (trace != nullptr) {
    trace->sums({candidates.sums(), candidates.count});
    trace->ranking(ranking);
  }
  return true;
}

void PickCore::apply_filters(const Run& run, const Profile& profile, ColumnSet produced) const {
  Candidates& candidates = run.candidates();
  const PickContext context = run.context();
  for (std::size_t use = 0; use < profile.filters().size(); ++use) {
    if (candidates.count == 0) return;
    const std::span<std::uint8_t> keep(candidates.keep(), candidates.count);
    std::fill(keep.begin(), keep.end(), std::uint8_t{1});
    profile.filters()[use]->filter(context, keep);
    if (run.trace() != nullptr) run.trace()->filter(profile.filter_name(use), keep);
    candidates.compact(produced);
  }
}

void PickCore::sum_scores(const Run& run, const Profile& profile) const {
  Candidates& candidates = run.candidates();
  const PickContext context = run.context();
  double* sums = candidates.sums();
  float* scores = candidates.scores();
  std::fill_n(sums, candidates.count, 0.0);
  for (std::size_t use = 0; use < profile.scorers().size(); ++use) {
    const auto& [scorer, weight] = profile.scorers()[use];
    std::fill_n(scores, candidates.count, kNoScore);
    // One NaN and the scorer is left out of this pick as a whole: half a scorer would bias the
    // others.
    const bool sound = scorer->score(context, {scores, candidates.count}) &&
                       all_are_numbers({scores, candidates.count});
    if (run.trace() != nullptr) {
      run.trace()->scorer(profile.scorer_name(use), weight, {scores, candidates.count}, !sound);
    }
    if (!sound) {
      run.counters.add(abi::Counter::plugin_failures);
      continue;
    }
    add_weighted({scores, candidates.count}, weight, sums);
  }
}

PickedEndpoint PickCore::picked_at(const Run& run, std::size_t at) const {
  const Candidates& candidates = run.scratch.candidates;
  PickedEndpoint picked;
  picked.endpoint = candidates.endpoints()[at];
  picked.generation = abi::LifeWord{candidates.lives()[at]}.generation();
  picked.stamp_floor = abi::LifeWord{candidates.lives()[at]}.floor();
  picked.match_blocks = candidates.match_blocks()[at];
  picked.match_tokens = match_tokens_of(run.request, picked.match_blocks, parts_.block_tokens);
  picked.score = static_cast<float>(candidates.sums()[at]);
  return picked;
}

void PickCore::fill_result(const Run& run, const Ranking& ranking, PickResult& result) const {
  const Candidates& candidates = run.scratch.candidates;
  result.count = ranking.count;
  for (std::uint32_t place = 0; place < ranking.count; ++place)
    result.endpoints[place] = picked_at(run, ranking.order[place]);
  const auto matches = candidates.match_blocks();
  const std::uint32_t longest = greatest(matches);
  const std::size_t winner = ranking.order[0];
  const bool session = (result.profile->columns() & column_bit(Column::kSession)) != 0 &&
                       candidates.column(Column::kSession)[winner] == 1.0F;
  if (run.least_bad) {
    result.reason = abi::Reason::kFallback;
  } else if (candidates.count == 1) {
    result.reason = abi::Reason::kOnly;
  } else if (run.notes->unpredicted) {
    result.reason = abi::Reason::kUnpredicted;
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

// Another pick for the same request, over all candidates again. False: nobody for it, or who
// decodes himself, which does it then.
bool PickCore::pick_stage(const Run& run, Stage stage, const Profile& profile, PickResult& result,
                          PickedEndpoint& picked) const {
  PickScratch& scratch = run.scratch;
  gather_candidates(run.request, run.topology, parts_.records, scratch.subset, scratch.candidates);
  limit_affinity(run.request, run.tick, scratch.candidates);
  Ranking ranking;
  if (scratch.candidates.count == 0 || !rank(run, profile, stage, ranking)) return false;
  picked = picked_at(run, ranking.order[0]);
  if (picked.endpoint == result.endpoints[0].endpoint) return false;
  scratch.stage_winner = ranking.order[0];
  // All of them have to fit where a result has room for so many.
  result.count = std::min(result.count, static_cast<std::uint32_t>(abi::kResultEndpointsMax) -
                                            (result.has_encode ? 2U : 1U));
  return true;
}

void PickCore::pick_encode(const Run& run, const Schedule& schedule, PickResult& result) const {
  const PickedEndpoint& decode = result.endpoints[0];
  const Profile* profile =
      schedule.encode(run.request, run.request.prompt_tokens - decode.match_tokens);
  if (profile == nullptr) return;
  Run second = run;
  second.peer = decode.endpoint;
  if (!pick_stage(second, Stage::kEncode, *profile, result, result.encode)) return;
  result.has_encode = true;
  result.encode_profile = profile;
  run.counters.add(abi::Counter::picks_encode);
}

void PickCore::pick_prefill(const Run& run, const Schedule& schedule, PickFacts* facts,
                            PickResult& result) const {
  const PickedEndpoint& decode = result.endpoints[0];
  const Profile* profile =
      schedule.prefill(run.request, run.request.prompt_tokens - decode.match_tokens);
  if (profile == nullptr) return;
  Run second = run;
  second.peer = decode.endpoint;
  if (!pick_stage(second, Stage::kPrefill, *profile, result, result.prefill)) return;
  result.has_prefill = true;
  result.prefill_profile = profile;
  if (facts != nullptr) {
    // The first token comes from there; the way over is not known.
    const PickFacts first = facts_at(second, run.scratch.stage_winner);
    facts->predicted.ttft_s = first.predicted.ttft_s;
    facts->predicted.progress_s = first.predicted.progress_s;
    facts->load = first.load;
    facts->uncached_tokens = first.uncached_tokens;
  }
  run.counters.add(abi::Counter::picks_split);
}

void PickCore::reserve(const Run& run, const Schedule& schedule, const PickFacts* facts,
                       PickResult& result) const {
  const PickRequest& request = run.request;
  const PickedEndpoint& winner = result.endpoints[0];
  const PickedEndpoint& prefills = result.has_prefill ? result.prefill : winner;
  endpoints::NewReservation reservation;
  reservation.ticket = request.ticket;
  reservation.endpoint = abi::endpoint_handle(winner.endpoint->id, winner.generation);
  if (result.has_prefill) {
    reservation.prefill_endpoint = abi::endpoint_handle(prefills.endpoint->id, prefills.generation);
  }
  if (result.has_encode) {
    reservation.encode_endpoint =
        abi::endpoint_handle(result.encode.endpoint->id, result.encode.generation);
  }
  reservation.uncached_tokens =
      loaded_tokens(schedule.sources(), request, request.prompt_tokens - prefills.match_tokens);
  reservation.prompt_tokens = request.prompt_tokens;
  reservation.expected_output_tokens = request.expected_output_tokens;
  reservation.uid = request.uid;
  reservation.tick = run.tick;
  reservation.now_ns = request.now_ns;
  reservation.facts = facts;
  result.reserved = parts_.reservations->reserve(reservation);
  if (!result.reserved) run.counters.add(abi::Counter::reservations_full);
}

void PickCore::stamp(std::span<const std::uint64_t> keys, const PickedEndpoint& picked,
                     std::uint64_t tick, state::Counters& counters) const {
  const auto now = static_cast<std::uint32_t>(tick) & abi::kStampMask;
  const prefix::StampOutcome outcome = parts_.table->stamp(
      keys, picked.endpoint->id, stamp_for(tick, picked.stamp_floor), abi::Tier::kAssumed, now);
  counters.add(abi::Counter::stamped_blocks, outcome.inserted + outcome.touched);
  counters.add(abi::Counter::replaced_words, outcome.replaced);
  counters.add(abi::Counter::hot_markers, outcome.hot_markers);
  counters.add(abi::Counter::blocks_left_out, outcome.left_out);
}

void PickCore::remember(const PickRequest& request, const PickResult& result, std::uint64_t tick,
                        state::Counters& counters) {
  if (result.status != 0 || request.dry_run || result.profile == nullptr) return;
  const Profile& profile = *result.profile;
  const PickedEndpoint& winner = result.endpoints[0];
  const std::uint32_t id = winner.endpoint->id;
  if (!result.keys.empty()) {
    stamp(result.keys, winner, tick, counters);
    if (result.has_prefill) stamp(result.keys, result.prefill, tick, counters);
  }
  for (PickMemory* memory : profile.memories())
    memory->remember(request, winner.endpoint->id, winner.match_blocks);
  if (result.has_prefill) {
    for (PickMemory* memory : result.prefill_profile->memories())
      memory->remember(request, result.prefill.endpoint->id, result.prefill.match_blocks);
  }
  if (result.has_encode) {
    for (PickMemory* memory : result.encode_profile->memories())
      memory->remember(request, result.encode.endpoint->id, result.encode.match_blocks);
  }
  if (profile.session_ttl_ms() != 0 && !result.session.empty())
    sessions_.remember(result.session, id, winner.generation, tick);
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
