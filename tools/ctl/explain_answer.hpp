// An explanation as the daemon sent it, all pages of it together. The fields are those of
// abi/pickd.fbs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pickd::ctl {

struct ExplainFilter {
  std::string name;
  std::uint32_t dropped;
};

struct ExplainScorer {
  std::string name;
  double weight;
  bool left_out;
};

struct ExplainStage {
  std::string name;
  std::string profile;
  bool least_bad;
  std::uint32_t candidates;
  std::vector<std::string> columns;
  std::vector<ExplainFilter> filters;
  std::vector<ExplainScorer> scorers;
  std::uint32_t ties;
};

struct ExplainRow {
  std::size_t stage;
  std::uint32_t id;
  std::uint32_t generation;
  std::string name;
  std::string dropped_by;
  std::vector<float> columns;
  std::vector<float> scores;
  double sum;
  std::uint32_t place;
};

struct ExplainLeftOut {
  std::string name;
  std::string why;
};

struct ExplainAnswer {
  std::int32_t status = 0;
  std::uint8_t reason = 0;
  std::string refused;
  std::uint64_t ticket_client = 0;
  std::uint64_t ticket_sequence = 0;
  std::uint64_t age_ms = 0;
  std::uint32_t uid = 0;
  bool dry_run = false;
  std::string schedule;
  std::string model;
  std::string adapter;
  std::string session;
  std::string request_id;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t prompt_blocks = 0;
  std::uint32_t expected_output_tokens = 0;
  std::int32_t priority = 0;
  float slo_ttft_ms = 0;
  float slo_itl_ms = 0;
  float predicted_ttft_ms = 0;
  float predicted_itl_ms = 0;
  bool cut = false;
  std::vector<ExplainStage> stages;
  std::vector<ExplainRow> rows;  // those of the result in order, then by sum, the dropped last
  std::vector<ExplainLeftOut> left_out;
  std::size_t left_out_count = 0;

  bool prompt_cut = false;  // of a file's request: the prompt has more blocks than were asked for
};

// Which pick: exactly one of these is set.
struct ExplainWhich {
  bool last = false;
  std::string ticket;
  std::string request_path;
};

// Throws std::runtime_error.
ExplainAnswer ask_explanation(const std::string& socket, const ExplainWhich& which);

}  // namespace pickd::ctl
