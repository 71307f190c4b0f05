#include "daemon/admin/state_json.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "daemon/pick/columns.hpp"

namespace pickd::admin {

namespace {

using Json = nlohmann::ordered_json;
using pick::Explanation;

constexpr std::size_t kCandidatesMax = 32;  // of one pick, the best of them

template <typename T>
Json maybe(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// Names are bytes: what is no UTF-8 is replaced.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace);
}

Json model_json(const ModelFacts& model) {
  return {{"samples", model.samples},   {"error", number(model.error)},
          {"bias", number(model.bias)}, {"coverage", number(model.coverage)},
          {"ready", model.ready},       {"drifting", model.drifting}};
}

Json endpoint_json(const EndpointFacts& endpoint) {
  return {{"name", endpoint.name},
          {"address", endpoint.address},
          {"pool", endpoint.pool},
          {"role", endpoint.role},
          {"state", endpoint.state},
          {"why", endpoint.why_not_ready},
          {"engine", endpoint.engine},
          {"models", endpoint.models},
          {"waiting", maybe(endpoint.waiting)},
          {"running", maybe(endpoint.running)},
          {"kv_use", maybe(endpoint.kv_use)},
          {"load_age_s", maybe(endpoint.load_age_s)},
          {"inflight", endpoint.inflight_requests},
          {"inflight_tokens", endpoint.inflight_tokens},
          {"blocks", endpoint.live_blocks},
          {"capacity", endpoint.capacity_blocks},
          {"picks", endpoint.picks},
          {"prompt_blocks", endpoint.prompt_blocks},
          {"match_blocks", endpoint.match_blocks}};
}

Json point_json(const History::Point& point) {
  return {{"n", point.number},
          {"t", point.unix_ms},
          {"picks", point.picks_per_s},
          {"refused", point.refused_per_s},
          {"match", maybe(point.match_share)},
          {"reported", maybe(point.reported_share)},
          {"p50", maybe(point.pick_p50_s)},
          {"p99", maybe(point.pick_p99_s)},
          {"ttft", maybe(point.ttft_p50_s)},
          {"error", maybe(point.ttft_error)},
          {"inflight", point.inflight}};
}

Json checks_list(const std::vector<Check>& checks) {
  Json list = Json::array();
  for (const Check& check : checks)
    list.push_back({{"name", check.name}, {"ok", check.good}, {"why", check.why}});
  return list;
}

Json candidate_json(const Explanation::RunStage& stage, const Explanation::Candidate& candidate) {
  Json columns = Json::object();
  for (std::uint32_t at = 0; at < pick::kColumns; ++at) {
    if ((stage.columns >> at & 1) != 0)
      columns[pick::column_name(static_cast<pick::Column>(at))] = number(candidate.columns[at]);
  }
  Json scores = Json::array();
  for (const float score : candidate.scores) scores.push_back(number(score));
  return {{"name", candidate.name},
          {"place", candidate.place},
          {"dropped_by",
           candidate.dropped_by ? Json(stage.filters[*candidate.dropped_by].name) : Json(nullptr)},
          {"sum", number(candidate.sum)},
          {"scores", scores},
          {"columns", columns}};
}

Json stage_json(const Explanation::RunStage& stage) {
  Json scorers = Json::array();
  for (const auto& scorer : stage.scorers) {
    scorers.push_back(
        {{"name", scorer.name}, {"weight", number(scorer.weight)}, {"left_out", scorer.left_out}});
  }
  Json filters = Json::array();
  for (const auto& filter : stage.filters)
    filters.push_back({{"name", filter.name}, {"dropped", filter.dropped}});
  std::vector<const Explanation::Candidate*> best;
  for (const auto& candidate : stage.candidates) best.push_back(&candidate);
  std::stable_sort(best.begin(), best.end(), [](const auto* a, const auto* b) {
    // Those with a place first, then those that stayed, by their sums.
    const auto rank = [](const Explanation::Candidate& one) {
      return one.place != 0 ? one.place : one.dropped_by ? UINT32_MAX : UINT32_MAX - 1;
    };
    return rank(*a) != rank(*b) ? rank(*a) < rank(*b) : a->sum > b->sum;
  });
  Json candidates = Json::array();
  for (const auto* candidate : best) {
    if (candidates.size() == kCandidatesMax) break;
    candidates.push_back(candidate_json(stage, *candidate));
  }
  return {{"name", pick::stage_name(stage.stage)},
          {"profile", stage.profile},
          {"least_bad", stage.least_bad},
          {"ties", stage.ties},
          {"filters", filters},
          {"scorers", scorers},
          {"candidates_all", stage.candidates.size()},
          {"candidates", candidates}};
}

const char* reason_word(std::uint32_t reason) {
  static constexpr const char* kWords[] = {"none", "score",  "tie",      "prefix",   "session",
                                           "only", "policy", "fallback", "degraded", "unpredicted"};
  return reason < std::size(kWords) ? kWords[reason] : "unknown";
}

Json pick_json(const Source::RecentPick& recent) {
  const Explanation& of = *recent.explanation;
  Json stages = Json::array();
  for (const auto& stage : of.stages) stages.push_back(stage_json(stage));
  char ticket[40];
  std::snprintf(ticket, sizeof ticket, "%016llx%016llx",
                static_cast<unsigned long long>(of.pick.ticket_client),
                static_cast<unsigned long long>(of.pick.ticket_sequence));
  return {{"ticket", ticket},
          {"age_s", recent.age_s},
          {"model", of.model},
          {"adapter", of.adapter},
          {"prompt_tokens", of.pick.prompt_tokens},
          {"prompt_blocks", of.pick.prompt_blocks},
          {"priority", of.pick.priority},
          {"status", of.result.status},
          {"reason", reason_word(of.result.reason)},
          {"refused", of.refused},
          {"predicted_ttft_ms", number(of.result.predicted_ttft_ms)},
          {"predicted_itl_ms", number(of.result.predicted_itl_ms)},
          {"left_out", of.left_out.size()},
          {"stages", stages}};
}

}  // namespace

bool all_good(const std::vector<Check>& checks) {
  return std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.good; });
}

std::string checks_json(const std::vector<Check>& checks) {
  const Json json{{"status", all_good(checks) ? "ok" : "failed"}, {"checks", checks_list(checks)}};
  return json.dump(2, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
}

std::string state_json(const Facts& facts, const std::vector<Check>& readiness,
                       const History& history, std::uint64_t since, std::size_t endpoints_max) {
  Json endpoints = Json::array();
  for (const EndpointFacts& endpoint : facts.endpoints) {
    if (endpoints.size() == endpoints_max) break;
    endpoints.push_back(endpoint_json(endpoint));
  }
  Json classes = Json::array();
  for (const ClassFacts& of : facts.classes) {
    classes.push_back({{"name", of.name},
                       {"output_tokens", number(of.output_tokens)},
                       {"ttft", model_json(of.ttft)},
                       {"itl", model_json(of.itl)}});
  }
  Json reasons = Json::object();
  for (const auto& [reason, count] : facts.picks_by_reason) reasons[reason] = count;
  Json points = Json::array();
  for (const History::Point& point : history.points()) {
    if (point.number > since) points.push_back(point_json(point));
  }
  const auto count = [&facts](abi::Counter which) { return facts.counter(which); };
  return text_of({{"version", facts.version},
                  {"pid", facts.pid},
                  {"now_ms", facts.unix_ms},
                  {"uptime_s", facts.uptime_s},
                  {"started", facts.started},
                  {"profile", facts.profile},
                  {"block_tokens", facts.block_tokens},
                  {"ttl_s", facts.ttl_s},
                  {"state_bytes", facts.state_bytes},
                  {"words", facts.prefix_words},
                  {"words_live", facts.prefix_live},
                  {"clients", facts.clients},
                  {"channels", facts.channels},
                  {"workers", facts.workers},
                  {"reservations", facts.reservations},
                  {"ready", all_good(readiness)},
                  {"readiness", checks_list(readiness)},
                  {"counters",
                   {{"picks", count(abi::Counter::picks)},
                    {"refused", count(abi::Counter::picks_refused)},
                    {"prompt_blocks", count(abi::Counter::prompt_blocks)},
                    {"match_blocks", count(abi::Counter::match_blocks)},
                    {"requests_done", count(abi::Counter::requests_done)},
                    {"requests_failed", count(abi::Counter::requests_failed)},
                    {"reported_prompt_tokens", count(abi::Counter::reported_prompt_tokens)},
                    {"reported_cached_tokens", count(abi::Counter::reported_cached_tokens)}}},
                  {"reasons", reasons},
                  {"endpoints_all", facts.endpoints.size()},
                  {"endpoints", endpoints},
                  {"classes", classes},
                  {"points", points}});
}

std::string picks_json(const std::vector<Source::RecentPick>& picks) {
  Json list = Json::array();
  for (const Source::RecentPick& recent : picks) list.push_back(pick_json(recent));
  return text_of({{"picks", list}});
}

}  // namespace pickd::admin
