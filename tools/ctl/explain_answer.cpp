#include "tools/ctl/explain_answer.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <tuple>

#include "tools/common/control_client.hpp"
#include "tools/ctl/daemon_view.hpp"
#include "tools/ctl/explain_request.hpp"

namespace pickd::ctl {

namespace {

struct Ticket {
  std::uint64_t client = 0;
  std::uint64_t sequence = 0;
};

Ticket read_ticket(const std::string& text) {
  Ticket ticket;
  char* end = nullptr;
  ticket.client = std::strtoull(text.c_str(), &end, 0);
  if (end != text.c_str() && *end == ':') {
    const char* second = end + 1;
    ticket.sequence = std::strtoull(second, &end, 0);
    if (end != second && *end == '\0') return ticket;
  }
  throw std::runtime_error("--ticket " + text +
                           ": a ticket is CLIENT:SEQUENCE, two numbers, as pickd_ticket has them");
}

template <typename Lists, typename Take>
void for_each(const Lists* list, Take take) {
  if (list == nullptr) return;
  for (const auto* entry : *list) take(*entry);
}
std::vector<float> floats_of(const flatbuffers::Vector<float>* values) {
  return values == nullptr ? std::vector<float>()
                           : std::vector<float>(values->begin(), values->end());
}

ExplainStage stage_of(const fb::ExplainStage& stage) {
  ExplainStage made{text_of(stage.name()),
                    text_of(stage.profile()),
                    stage.least_bad(),
                    stage.candidates(),
                    {},
                    {},
                    {},
                    stage.ties()};
  for_each(stage.columns(), [&made](const auto& name) { made.columns.push_back(name.str()); });
  for_each(stage.filters(), [&made](const fb::ExplainFilter& filter) {
    made.filters.push_back({text_of(filter.name()), filter.dropped()});
  });
  for_each(stage.scorers(), [&made](const fb::ExplainScorer& scorer) {
    made.scorers.push_back({text_of(scorer.name()), scorer.weight(), scorer.left_out()});
  });
  return made;
}

ExplainAnswer head_of(const fb::ExplainAnswer& page) {
  ExplainAnswer head;
  head.status = page.status();
  head.reason = page.reason();
  head.refused = text_of(page.refused());
  head.ticket_client = page.ticket_client();
  head.ticket_sequence = page.ticket_sequence();
  head.age_ms = page.age_ms();
  head.uid = page.uid();
  head.dry_run = page.dry_run();
  head.schedule = text_of(page.schedule());
  head.model = text_of(page.model());
  head.adapter = text_of(page.adapter());
  head.session = text_of(page.session());
  head.request_id = text_of(page.request_id());
  head.prompt_tokens = page.prompt_tokens();
  head.prompt_blocks = page.prompt_blocks();
  head.expected_output_tokens = page.expected_output_tokens();
  head.priority = page.priority();
  head.slo_ttft_ms = page.slo_ttft_ms();
  head.slo_itl_ms = page.slo_itl_ms();
  head.predicted_ttft_ms = page.predicted_ttft_ms();
  head.predicted_itl_ms = page.predicted_itl_ms();
  head.cut = page.cut();
  for_each(page.stages(),
           [&head](const fb::ExplainStage& stage) { head.stages.push_back(stage_of(stage)); });
  for_each(page.left_out(), [&head](const fb::ExplainLeftOut& endpoint) {
    head.left_out.push_back({text_of(endpoint.name()), text_of(endpoint.why())});
  });
  head.left_out_count = page.left_out_count();
  return head;
}

void take_rows(const fb::ExplainAnswer& page, ExplainAnswer& answer) {
  for_each(page.rows(), [&answer](const fb::ExplainRow& row) {
    answer.rows.push_back({row.stage(), row.id(), row.generation(), text_of(row.name()),
                           text_of(row.dropped_by()), floats_of(row.columns()),
                           floats_of(row.scores()), row.sum(), row.place()});
  });
}

void sort_rows(std::vector<ExplainRow>& rows) {
  const auto rank = [](const ExplainRow& row) {
    const std::uint32_t place = row.place == 0 ? UINT32_MAX : row.place;
    return std::make_tuple(row.stage, !row.dropped_by.empty(), place, -row.sum);
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&rank](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

}  // namespace

ExplainAnswer ask_explanation(const std::string& socket, const ExplainWhich& which) {
  Ticket ticket;
  if (!which.ticket.empty()) ticket = read_ticket(which.ticket);
  tools::ControlClient control(socket, "pickctl");
  RequestRecord record;
  if (!which.request_path.empty()) record = read_request(which.request_path, control);
  ExplainAnswer answer;
  std::uint32_t from = 0;
  do {
    const auto& page = tools::ControlClient::expect<fb::ExplainAnswer>(
        control.ask([&](client::ControlExchange& exchange) {
          flatbuffers::FlatBufferBuilder& builder = exchange.builder();
          flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> bytes;
          if (from == 0 && !record.bytes.empty()) {
            bytes = builder.CreateVector(reinterpret_cast<const std::uint8_t*>(record.bytes.data()),
                                         record.bytes.size());
          }
          exchange.set_body(
              fb::CreateAskExplain(builder, ticket.client, ticket.sequence, bytes, from));
        }));
    if (from == 0) answer = head_of(page);
    take_rows(page, answer);
    from = page.next_row();
  } while (from != 0);
  answer.prompt_cut = record.cut;
  sort_rows(answer.rows);
  return answer;
}

}  // namespace pickd::ctl
