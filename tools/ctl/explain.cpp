// pickctl explain: why a pick went where it went; of one that was kept, or of a dry run.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "pickd/pickd.h"
#include "tools/common/human.hpp"
#include "tools/ctl/commands.hpp"
#include "tools/ctl/explain_answer.hpp"
#include "tools/ctl/table.hpp"

namespace pickd::ctl {

namespace {

using Json = nlohmann::ordered_json;

const char* reason_of(const ExplainAnswer& answer) {
  return pickd_reason_name(static_cast<pickd_reason>(answer.reason));
}

// ---- JSON -------------------------------------------------------------------------------------

// JSON has no infinity: a text, as the table says it. Null is unknown, or no score.
Json number(double value) {
  if (value == std::numeric_limits<double>::infinity()) return "inf";
  return std::isfinite(value) ? Json(value) : Json();
}

Json to_json(const ExplainStage& stage, const ExplainRow& row) {
  Json out;
  out["name"] = row.name;
  out["id"] = row.id;
  out["generation"] = row.generation;
  out["place"] = row.place == 0 ? Json() : Json(row.place);
  out["dropped_by"] = row.dropped_by.empty() ? Json() : Json(row.dropped_by);
  out["sum"] = row.dropped_by.empty() ? number(row.sum) : Json();
  out["columns"] = Json::object();
  for (std::size_t at = 0; at < std::min(row.columns.size(), stage.columns.size()); ++at)
    out["columns"][stage.columns[at]] = number(row.columns[at]);
  out["scores"] = Json::object();
  for (std::size_t at = 0; at < std::min(row.scores.size(), stage.scorers.size()); ++at)
    out["scores"][stage.scorers[at].name] = number(row.scores[at]);
  return out;
}

Json to_json(const ExplainAnswer& answer, std::size_t index) {
  const ExplainStage& stage = answer.stages[index];
  Json out;
  out["stage"] = stage.name;
  out["profile"] = stage.profile;
  out["nobody_ready"] = stage.least_bad;
  out["ties"] = stage.ties;
  out["filters"] = Json::array();
  for (const auto& filter : stage.filters)
    out["filters"].push_back({{"name", filter.name}, {"dropped", filter.dropped}});
  out["scorers"] = Json::array();
  for (const auto& scorer : stage.scorers) {
    out["scorers"].push_back(
        {{"name", scorer.name}, {"weight", scorer.weight}, {"left_out", scorer.left_out}});
  }
  out["candidates"] = Json::array();
  for (const auto& row : answer.rows) {
    if (row.stage == index) out["candidates"].push_back(to_json(stage, row));
  }
  return out;
}

void print_json(const ExplainAnswer& answer) {
  Json out;
  out["ticket"] =
      std::to_string(answer.ticket_client) + ":" + std::to_string(answer.ticket_sequence);
  out["status"] = answer.status;
  out["reason"] = reason_of(answer);
  out["refused"] = answer.refused.empty() ? Json() : Json(answer.refused);
  out["dry_run"] = answer.dry_run;
  out["age_ms"] = answer.age_ms;
  out["uid"] = answer.uid;
  out["schedule"] = answer.schedule;
  out["model"] = answer.model;
  out["adapter"] = answer.adapter;
  out["session"] = answer.session;
  out["request_id"] = answer.request_id;
  out["prompt_tokens"] = answer.prompt_tokens;
  out["prompt_blocks"] = answer.prompt_blocks;
  out["prompt_cut"] = answer.prompt_cut;
  out["expected_output_tokens"] = answer.expected_output_tokens;
  out["priority"] = answer.priority;
  out["slo_ttft_ms"] = number(answer.slo_ttft_ms);
  out["slo_itl_ms"] = number(answer.slo_itl_ms);
  out["predicted_ttft_ms"] = number(answer.predicted_ttft_ms);
  out["predicted_itl_ms"] = number(answer.predicted_itl_ms);
  out["incomplete"] = answer.cut;
  out["stages"] = Json::array();
  for (std::size_t at = 0; at < answer.stages.size(); ++at)
    out["stages"].push_back(to_json(answer, at));
  out["left_out"] = Json::array();
  for (const auto& endpoint : answer.left_out)
    out["left_out"].push_back({{"name", endpoint.name}, {"why", endpoint.why}});
  out["left_out_count"] = answer.left_out_count;
  std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

// ---- Text -------------------------------------------------------------------------------------

std::string shown(double value) {
  if (std::isnan(value) || value == -std::numeric_limits<double>::infinity()) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

void print_request(const ExplainAnswer& answer) {
  if (answer.dry_run && answer.ticket_client == 0) {
    std::printf("dry run, by %s\n", tools::printable(answer.schedule).c_str());
  } else {
    std::printf("pick         %" PRIu64 ":%" PRIu64 " of uid %u, %s ago%s\n", answer.ticket_client,
                answer.ticket_sequence, answer.uid, tools::human_ms(answer.age_ms).c_str(),
                answer.dry_run ? ", a dry run" : "");
  }
  if (answer.status == 0) {
    std::printf("reason       %s\n", reason_of(answer));
  } else {
    std::printf("refused      %s (%s)\n", tools::printable(answer.refused).c_str(),
                pickd_strerror(answer.status));
  }
  std::printf("request      %u tokens in %u block%s%s, priority %d", answer.prompt_tokens,
              answer.prompt_blocks, answer.prompt_blocks == 1 ? "" : "s",
              answer.prompt_cut ? " (cut)" : "", answer.priority);
  const std::pair<const char*, const std::string&> texts[] = {{"model", answer.model},
                                                              {"adapter", answer.adapter},
                                                              {"session", answer.session},
                                                              {"id", answer.request_id}};
  for (const auto& [name, text] : texts) {
    if (!text.empty()) std::printf(", %s %s", name, tools::printable(text).c_str());
  }
  if (answer.slo_ttft_ms != 0) std::printf(", TTFT within %g ms", answer.slo_ttft_ms);
  if (answer.slo_itl_ms != 0) std::printf(", ITL within %g ms", answer.slo_itl_ms);
  std::printf("\n");
  if (!std::isnan(answer.predicted_ttft_ms) || !std::isnan(answer.predicted_itl_ms)) {
    std::printf("predicted    TTFT %s ms, ITL %s ms\n", shown(answer.predicted_ttft_ms).c_str(),
                shown(answer.predicted_itl_ms).c_str());
  }
  for (const auto& endpoint : answer.left_out)
    std::printf("left out     %s: %s\n", tools::printable(endpoint.name).c_str(),
                tools::printable(endpoint.why).c_str());
  if (answer.left_out_count > answer.left_out.size())
    std::printf("             and %zu more\n", answer.left_out_count - answer.left_out.size());
  if (answer.cut) std::printf("incomplete   explain.memory_kib had no room for all of it\n");
}

void print_stage(const ExplainAnswer& answer, std::size_t index) {
  const ExplainStage& stage = answer.stages[index];
  std::printf("\n%-12s profile %s, %u candidates%s", stage.name.c_str(),
              tools::printable(stage.profile).c_str(), stage.candidates,
              stage.least_bad ? ", nobody is ready: the least bad" : "");
  if (stage.ties > 1) std::printf(", %u share the first place", stage.ties);
  std::printf("\n");
  for (const auto& filter : stage.filters)
    std::printf("filter       %s dropped %u\n", tools::printable(filter.name).c_str(),
                filter.dropped);
  for (const auto& scorer : stage.scorers)
    std::printf("scorer       %s x %g%s\n", tools::printable(scorer.name).c_str(), scorer.weight,
                scorer.left_out ? ", left out: it failed or gave no number" : "");
  Table table({"PLACE", "NAME"});
  for (const std::string& column : stage.columns) table.head(column, Table::kRight);
  for (const auto& scorer : stage.scorers) table.head(scorer.name, Table::kRight);
  table.head("SUM", Table::kRight);
  for (const auto& row : answer.rows) {
    if (row.stage != index) continue;
    std::vector<std::string> cells = {row.place == 0 ? "-" : std::to_string(row.place),
                                      tools::printable(row.name)};
    for (const float value : row.columns) cells.push_back(shown(value));
    if (row.dropped_by.empty()) {
      for (const float score : row.scores) cells.push_back(shown(score));
      cells.push_back(shown(row.sum));
    } else {
      cells.push_back("dropped by " + tools::printable(row.dropped_by));
    }
    table.row(std::move(cells));
  }
  table.print();
}

}  // namespace

Run make_explain(CLI::App& app, const Common& common) {
  auto pick = std::make_shared<ExplainWhich>();
  auto* which = app.add_option_group("which pick");
  which->add_flag("--last", pick->last, "The newest that is kept: of this user, for admins of all");
  which->add_option("--ticket", pick->ticket, "The pick with this ticket, CLIENT:SEQUENCE");
  which->add_option(
      "--request", pick->request_path,
      "The pick that this request would get: a dry run that reserves and remembers nothing. A JSON "
      "file (-: standard input) with any of model, adapter, salt, prompt or token_ids, "
      "prompt_tokens, session_id, fairness_id, request_id, subset (a list), attributes (a map), "
      "slo_ttft_ms, slo_itl_ms, priority, expected_output_tokens, stream");
  which->require_option(1);
  return [pick, &common] {
    const ExplainAnswer answer = ask_explanation(common.socket, *pick);
    if (common.json) {
      print_json(answer);
      return 0;
    }
    print_request(answer);
    for (std::size_t at = 0; at < answer.stages.size(); ++at) print_stage(answer, at);
    return 0;
  };
}

}  // namespace pickd::ctl
