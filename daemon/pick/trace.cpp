#include "daemon/pick/trace.hpp"

#include <algorithm>
#include <cstring>

namespace pickd::pick {

namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
// The last entry always finds room.
constexpr std::size_t kResultWords = 1 + sizeof(TracedResult) / kWord;
static_assert(sizeof(TracedResult) % kWord == 0);

// For the size of a trace: what one candidate takes in one stage, with a name of 40 bytes, all
// columns and eight scorers; and what a pick takes besides.
constexpr std::size_t kWordsPerCandidate =
    1 + (sizeof(TracedEndpoint) + 40) / kWord + 1 + (kColumns + 8) * sizeof(float) / kWord + 1;
constexpr std::size_t kWordsPerPick = 1024;

}  // namespace

const char* stage_name(Stage stage) {
  switch (stage) {
    case Stage::kPrimary: return "pick";
    case Stage::kPrefill: return "prefill";
    case Stage::kEncode: return "encode";
  }
  return "";
}

PickTrace::PickTrace(std::size_t words)
    // Not zeroed: a page that no trace reaches takes no memory.
    : words_(new std::uint64_t[std::max(words, kWordsMin)]), room_(std::max(words, kWordsMin)) {}

std::size_t PickTrace::words_for(std::size_t endpoints) {
  return kWordsPerPick + 3 * endpoints * kWordsPerCandidate;
}

void PickTrace::append(TraceKind kind, std::initializer_list<Part> parts) {
  std::size_t bytes = 0;
  for (const Part& part : parts) bytes += part.size();
  const std::size_t words = 1 + (bytes + kWord - 1) / kWord;
  const std::size_t kept = kind == TraceKind::kResult ? 0 : kResultWords;
  // After the first that does not fit nothing is written: a trace with a hole would read as another
  // pick.
  if ((cut_ && kept != 0) || used_ + words + kept > room_) {
    cut_ = true;
    return;
  }
  words_[used_] = bytes << 8 | static_cast<std::uint64_t>(kind);
  words_[used_ + words - 1] = words == 1 ? words_[used_] : 0;
  auto* to = reinterpret_cast<std::byte*>(words_.get() + used_ + 1);
  for (const Part& part : parts) {
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
  used_ += words;
}

void PickTrace::begin(const PickRequest& request) {
  used_ = 0;
  cut_ = false;
  TracedPick pick{};
  pick.ticket_client = request.ticket.client;
  pick.ticket_sequence = request.ticket.sequence;
  pick.now_ns = request.now_ns;
  pick.uid = request.uid;
  pick.prompt_tokens = request.prompt_tokens;
  pick.prompt_blocks = static_cast<std::uint32_t>(request.keys.size());
  pick.expected_output_tokens = request.expected_output_tokens;
  pick.slo_ttft_ms = request.slo_ttft_ms;
  pick.slo_itl_ms = request.slo_itl_ms;
  pick.priority = request.priority;
  pick.dry_run = request.dry_run ? 1 : 0;
  const std::string_view texts[] = {request.model, request.adapter, request.session,
                                    request.request_id};
  for (std::size_t at = 0; at < std::size(texts); ++at)
    pick.text_bytes[at] = static_cast<std::uint16_t>(texts[at].size());
  append(TraceKind::kPick,
         {part(pick), part(texts[0]), part(texts[1]), part(texts[2]), part(texts[3])});
}

void PickTrace::left_out(const PickRequest& request, const endpoints::Topology& topology,
                         const abi::EndpointRecord* records,
                         const std::bitset<abi::kEndpointIdsMax>& subset,
                         const Candidates& candidates) {
  const std::vector<std::uint16_t>* ids = topology.candidates(request.model);
  if (ids == nullptr) return;
  std::size_t taken = 0;  // candidates stand in the order of the ids
  for (const std::uint16_t id : *ids) {
    if (taken < candidates.count && candidates.ids()[taken] == id) {
      ++taken;
      continue;
    }
    const endpoints::TopologyEndpoint& endpoint = *topology.find(id);
    TracedEndpoint traced{id, endpoint.generation, LeftOut::kNotReady, 0};
    // Relaxed: told to people, who know that it may be another a moment later.
    traced.state = records[id].state.load(std::memory_order_relaxed);
    if (request.has_subset && !subset.test(id)) {
      traced.why = LeftOut::kOutsideSubset;
    } else if (records[id].text_version.load(std::memory_order_relaxed) != endpoint.text_version) {
      traced.why = LeftOut::kReplaced;
    }
    append(TraceKind::kLeftOut, {part(traced), part(std::string_view(endpoint.name))});
  }
}

void PickTrace::stage(Stage stage, std::string_view profile, bool least_bad,
                      const Candidates& candidates) {
  const TracedStage traced{stage, least_bad ? 1U : 0U};
  append(TraceKind::kStage, {part(traced), part(profile)});
  for (std::size_t at = 0; at < candidates.count; ++at) {
    const TracedEndpoint endpoint{candidates.ids()[at],
                                  abi::LifeWord{candidates.lives()[at]}.generation(),
                                  LeftOut::kNotReady, 0};
    append(TraceKind::kCandidate,
           {part(endpoint), part(std::string_view(candidates.endpoints()[at]->name))});
  }
}

void PickTrace::columns(ColumnSet produced, const Candidates& candidates) {
  for (std::uint32_t at = 0; at < kColumns; ++at) {
    if ((produced >> at & 1) == 0) continue;
    const TracedColumn column{static_cast<Column>(at), 0};
    append(TraceKind::kColumn,
           {part(column), std::as_bytes(candidates.column(static_cast<Column>(at)))});
  }
}

void PickTrace::filter(std::string_view name, std::span<const std::uint8_t> keep) {
  const TracedPlugin plugin{0, static_cast<std::uint32_t>(name.size()), 0};
  append(TraceKind::kFilter, {part(plugin), part(name), std::as_bytes(keep)});
}

void PickTrace::scorer(std::string_view name, double weight, std::span<const float> scores,
                       bool left_out) {
  const TracedPlugin plugin{weight, static_cast<std::uint32_t>(name.size()), left_out ? 1U : 0U};
  append(TraceKind::kScorer, {part(plugin), part(name), std::as_bytes(scores)});
}

void PickTrace::sums(std::span<const double> sums) {
  append(TraceKind::kSums, {std::as_bytes(sums)});
}

void PickTrace::ranking(const Ranking& ranking) { append(TraceKind::kRanking, {part(ranking)}); }

void PickTrace::refused(std::string_view why) { append(TraceKind::kRefused, {part(why)}); }

void PickTrace::end(const PickResult& result) {
  TracedResult traced{};
  traced.status = result.status;
  traced.reason = static_cast<std::uint32_t>(result.reason);
  traced.predicted_ttft_ms = result.predicted_ttft_ms;
  traced.predicted_itl_ms = result.predicted_itl_ms;
  traced.cut = cut_ ? 1 : 0;
  append(TraceKind::kResult, {part(traced)});
}

}  // namespace pickd::pick
