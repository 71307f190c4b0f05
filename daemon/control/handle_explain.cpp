// Why a pick went where it went: AskExplain. An answer is sent in pages of rows.
#include <algorithm>
#include <cerrno>
#include <span>

#include "daemon/control/handlers.hpp"

namespace pickd::control {

namespace {

using pick::Explanation;
template <typename T>
using List = flatbuffers::Offset<flatbuffers::Vector<T>>;

// Of one page, so that it fits a message with what stands outside of its rows and lists: rows take
// what the lists of the first page leave.
constexpr std::size_t kPageBytesMax = abi::kControlMessageBytesMax - 4 * 1024;
constexpr std::size_t kRowOverheadBytes = 96;  // what the message takes for one, besides its values
constexpr std::size_t kLeftOutMax = 64;

const char* why_of(const Explanation::LeftOutEndpoint& endpoint) {
  switch (endpoint.why) {
    case pick::LeftOut::kOutsideSubset: return "outside the subset";
    case pick::LeftOut::kReplaced: return "just replaced";
    case pick::LeftOut::kNotReady: break;
  }
  switch (static_cast<abi::EndpointState>(endpoint.state)) {
    case abi::EndpointState::kSuspect: return "suspect";
    case abi::EndpointState::kDown: return "down";
    case abi::EndpointState::kDraining: return "draining";
    case abi::EndpointState::kStarting: return "starting";
    default: return "not ready";
  }
}

std::vector<pick::Column> columns_of(const Explanation::RunStage& stage) {
  std::vector<pick::Column> columns;
  for (std::uint32_t at = 0; at < pick::kColumns; ++at) {
    if ((stage.columns >> at & 1) != 0) columns.push_back(static_cast<pick::Column>(at));
  }
  return columns;
}

flatbuffers::Offset<fb::ExplainStage> put(flatbuffers::FlatBufferBuilder& builder,
                                          const Explanation::RunStage& stage) {
  std::vector<flatbuffers::Offset<flatbuffers::String>> columns;
  for (const pick::Column column : columns_of(stage))
    columns.push_back(builder.CreateString(pick::column_name(column)));
  std::vector<flatbuffers::Offset<fb::ExplainFilter>> filters;
  for (const auto& filter : stage.filters) {
    filters.push_back(
        fb::CreateExplainFilter(builder, builder.CreateString(filter.name), filter.dropped));
  }
  std::vector<flatbuffers::Offset<fb::ExplainScorer>> scorers;
  for (const auto& scorer : stage.scorers) {
    scorers.push_back(fb::CreateExplainScorer(builder, builder.CreateString(scorer.name),
                                              scorer.weight, scorer.left_out));
  }
  const auto name = builder.CreateString(pick::stage_name(stage.stage));
  const auto profile = builder.CreateString(stage.profile);
  const auto column_list = builder.CreateVector(columns);
  const auto filter_list = builder.CreateVector(filters);
  const auto scorer_list = builder.CreateVector(scorers);
  return fb::CreateExplainStage(builder, name, profile, stage.least_bad,
                                static_cast<std::uint32_t>(stage.candidates.size()), column_list,
                                filter_list, scorer_list, stage.ties);
}

flatbuffers::Offset<fb::ExplainRow> put(flatbuffers::FlatBufferBuilder& builder, std::uint8_t at,
                                        const Explanation::RunStage& stage,
                                        const Explanation::Candidate& candidate) {
  std::vector<float> columns;
  for (const pick::Column column : columns_of(stage))
    columns.push_back(candidate.columns[static_cast<std::size_t>(column)]);
  const auto name = builder.CreateString(candidate.name);
  const auto dropped_by =
      builder.CreateString(candidate.dropped_by ? stage.filters[*candidate.dropped_by].name : "");
  const auto column_list = builder.CreateVector(columns);
  const auto score_list = builder.CreateVector(candidate.scores);
  return fb::CreateExplainRow(builder, at, candidate.id, candidate.generation, name, dropped_by,
                              column_list, score_list, candidate.sum, candidate.place);
}

std::size_t bytes_of(const Explanation::RunStage& stage, const Explanation::Candidate& candidate) {
  return kRowOverheadBytes + candidate.name.size() +
         (candidate.dropped_by ? stage.filters[*candidate.dropped_by].name.size() : 0) +
         sizeof(float) * (pick::kColumns + candidate.scores.size());
}

// Rows count through all stages. Returns the first that did not fit; 0: all did.
std::uint32_t put_rows(flatbuffers::FlatBufferBuilder& builder, const Explanation& explanation,
                       std::uint32_t from, List<flatbuffers::Offset<fb::ExplainRow>>& list) {
  const std::size_t room = kPageBytesMax - std::min<std::size_t>(kPageBytesMax, builder.GetSize());
  std::vector<flatbuffers::Offset<fb::ExplainRow>> rows;
  std::uint32_t next = 0;
  std::uint32_t row = 0;
  std::size_t bytes = 0;
  for (std::size_t at = 0; at < explanation.stages.size() && next == 0; ++at) {
    const Explanation::RunStage& stage = explanation.stages[at];
    for (const Explanation::Candidate& candidate : stage.candidates) {
      if (row++ < from) continue;
      bytes += bytes_of(stage, candidate);
      if (bytes > room && !rows.empty()) {
        next = row - 1;
        break;
      }
      rows.push_back(put(builder, static_cast<std::uint8_t>(at), stage, candidate));
    }
  }
  list = builder.CreateVector(rows);
  return next;
}

std::span<const std::uint8_t> page(MessageBuilder& reply, std::uint32_t number,
                                   const Explanation& explanation, std::uint32_t from,
                                   const std::string& schedule_name, std::uint64_t now_ns,
                                   std::uint32_t& next) {
  flatbuffers::FlatBufferBuilder& builder = reply.builder();
  std::vector<flatbuffers::Offset<fb::ExplainStage>> stages;
  std::vector<flatbuffers::Offset<fb::ExplainLeftOut>> left_out;
  if (from == 0) {
    for (const auto& stage : explanation.stages) stages.push_back(put(builder, stage));
    for (const auto& endpoint : explanation.left_out) {
      if (left_out.size() == kLeftOutMax) break;
      const auto name = builder.CreateString(endpoint.name);
      const auto why = builder.CreateString(why_of(endpoint));
      left_out.push_back(fb::CreateExplainLeftOut(builder, endpoint.id, name, why));
    }
  }
  const auto stage_list = builder.CreateVector(stages);
  const auto left_out_list = builder.CreateVector(left_out);
  List<flatbuffers::Offset<fb::ExplainRow>> rows;
  next = put_rows(builder, explanation, from, rows);
  const auto refused = builder.CreateString(explanation.refused);
  const auto schedule = builder.CreateString(schedule_name);
  const auto model = builder.CreateString(explanation.model);
  const auto adapter = builder.CreateString(explanation.adapter);
  const auto session_id = builder.CreateString(explanation.session);
  const auto request_id = builder.CreateString(explanation.request_id);
  const pick::TracedPick& pick = explanation.pick;
  fb::ExplainAnswerBuilder answer(builder);
  answer.add_status(explanation.result.status);
  answer.add_reason(static_cast<std::uint8_t>(explanation.result.reason));
  answer.add_refused(refused);
  answer.add_ticket_client(pick.ticket_client);
  answer.add_ticket_sequence(pick.ticket_sequence);
  answer.add_age_ms(now_ns > pick.now_ns ? (now_ns - pick.now_ns) / 1'000'000 : 0);
  answer.add_uid(pick.uid);
  answer.add_dry_run(pick.dry_run != 0);
  answer.add_schedule(schedule);
  answer.add_model(model);
  answer.add_adapter(adapter);
  answer.add_session(session_id);
  answer.add_request_id(request_id);
  answer.add_prompt_tokens(pick.prompt_tokens);
  answer.add_prompt_blocks(pick.prompt_blocks);
  answer.add_expected_output_tokens(pick.expected_output_tokens);
  answer.add_priority(pick.priority);
  answer.add_slo_ttft_ms(pick.slo_ttft_ms);
  answer.add_slo_itl_ms(pick.slo_itl_ms);
  answer.add_predicted_ttft_ms(explanation.result.predicted_ttft_ms);
  answer.add_predicted_itl_ms(explanation.result.predicted_itl_ms);
  answer.add_cut(explanation.result.cut != 0);
  answer.add_stages(stage_list);
  answer.add_rows(rows);
  answer.add_left_out(left_out_list);
  answer.add_left_out_count(static_cast<std::uint32_t>(explanation.left_out.size()));
  answer.add_next_row(next);
  return reply.finish(number, answer.Finish());
}

}  // namespace

void Handlers::ask_explain(ControlServer& server, Session& session, const fb::Message& message) {
  const fb::AskExplain& ask = *message.body_as_AskExplain();
  const auto refuse = [&](int code, const std::string& text) {
    session.explanation.reset();
    server.send_outcome(session, message.number(), code, text);
  };
  if (ask.record() != nullptr) {
    auto dry = server.explainer_->dry_run(
        std::as_bytes(std::span(ask.record()->data(), ask.record()->size())), session.peer.uid,
        *server.rates_of(session.peer.uid));
    if (!dry) return refuse(dry.error().code, dry.error().text);
    session.explanation = std::move(*dry);
  } else if (ask.from_row() == 0) {
    std::optional<endpoints::Ticket> ticket;
    if (ask.ticket_client() != 0 || ask.ticket_sequence() != 0)
      ticket = {ask.ticket_client(), ask.ticket_sequence()};
    const Explainer::Viewer viewer =
        session.admin ? Explainer::Viewer() : Explainer::Viewer(session.peer.uid);
    session.explanation = server.explainer_->kept(ticket, viewer);
    if (session.explanation == nullptr) {
      return refuse(-ENOENT, ticket
                                 ? "no such pick is kept for this user; explain.picks_per_s says "
                                   "how many are"
                                 : "no pick is kept for this user so far; explain.picks_per_s "
                                   "says how many are");
    }
  } else if (session.explanation == nullptr) {
    return refuse(-ENOENT, "no explanation was asked for before; ask from row 0");
  }
  MessageBuilder reply;
  std::uint32_t next = 0;
  const std::uint32_t from = ask.record() != nullptr ? 0 : ask.from_row();
  server.send(session, page(reply, message.number(), *session.explanation, from,
                            server.room_->schedule().name(), server.room_->clock().now_ns(), next));
  if (next == 0) session.explanation.reset();
}

}  // namespace pickd::control
