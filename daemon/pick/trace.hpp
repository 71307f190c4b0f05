// PickTrace: what one pick went through, written down while it happens, for an explanation later.
//
// A row of entries in memory that is allocated once; explanation.hpp reads them back. Belongs to
// one thread. The pick core writes where its scratch has a trace, which is for sampled picks and
// dry runs; without one a pick pays for a look at a null pointer.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>

#include "abi/state_layout.hpp"
#include "daemon/endpoints/topology.hpp"
#include "daemon/pick/columns.hpp"
#include "daemon/pick/plugin.hpp"
#include "daemon/pick/request.hpp"
#include "daemon/pick/result.hpp"

namespace pickd::pick {

// One entry: a head word [ bytes of the content : 56 ][ kind : 8 ], the content, zeros up to a
// word. What is counted in candidates counts those that were left when it was written.
enum class TraceKind : std::uint8_t {
  kPick = 1,   // TracedPick, then model, adapter, session, request id; always the first
  kLeftOut,    // TracedEndpoint, name: serves the model and is no candidate
  kStage,      // TracedStage, name of its profile; what follows belongs to it
  kCandidate,  // TracedEndpoint, name; in order
  kColumn,     // TracedColumn, a float a candidate
  kFilter,     // TracedPlugin, name, a byte a candidate: 0 is dropped
  kScorer,     // TracedPlugin, name, a float a candidate
  kSums,       // a double a candidate
  kRanking,    // Ranking
  kRefused,    // words: why nobody was picked
  kResult,     // TracedResult; always the last
};

struct TracedPick {
  std::uint64_t ticket_client;
  std::uint64_t ticket_sequence;
  std::uint64_t now_ns;  // of the store's clock
  std::uint32_t uid;
  std::uint32_t prompt_tokens;
  std::uint32_t prompt_blocks;
  std::uint32_t expected_output_tokens;
  float slo_ttft_ms;
  float slo_itl_ms;
  std::int32_t priority;
  std::uint32_t dry_run;
  std::uint16_t text_bytes[4];
};
static_assert(sizeof(TracedPick) % sizeof(std::uint64_t) == 0);

// Why an endpoint that serves the model is no candidate.
enum class LeftOut : std::uint32_t { kNotReady = 0, kOutsideSubset = 1, kReplaced = 2 };

struct TracedEndpoint {
  std::uint32_t id;
  std::uint32_t generation;
  LeftOut why;
  std::uint32_t state;  // abi::EndpointState
};

enum class Stage : std::uint32_t { kPrimary = 0, kPrefill = 1, kEncode = 2 };
const char* stage_name(Stage stage);

struct TracedStage {
  Stage stage;
  std::uint32_t least_bad;  // 1: nobody was ready
};

struct TracedColumn {
  Column column;
  std::uint32_t spare;
};

struct TracedPlugin {
  double weight;  // of a scorer
  std::uint32_t name_bytes;
  std::uint32_t left_out;  // 1: a scorer that failed or gave a NaN
};

struct TracedResult {
  std::int32_t status;
  std::uint32_t reason;
  float predicted_ttft_ms;
  float predicted_itl_ms;
  std::uint32_t cut;  // 1: there was no room for all entries
  std::uint32_t spare;
};

class PickTrace {
 public:
  // `words`: room for one pick, allocated here and nowhere else; at least kWordsMin.
  explicit PickTrace(std::size_t words);
  static constexpr std::size_t kWordsMin = 512;
  // Enough for `endpoints` candidates in a pick of three stages, with names of common length.
  static std::size_t words_for(std::size_t endpoints);

  void begin(const PickRequest& request);
  // After the candidates were gathered. `subset`: the bits of the hint, if there is one.
  void left_out(const PickRequest& request, const endpoints::Topology& topology,
                const abi::EndpointRecord* records, const std::bitset<abi::kEndpointIdsMax>& subset,
                const Candidates& candidates);
  void stage(Stage stage, std::string_view profile, bool least_bad, const Candidates& candidates);
  void columns(ColumnSet produced, const Candidates& candidates);
  void filter(std::string_view name, std::span<const std::uint8_t> keep);
  void scorer(std::string_view name, double weight, std::span<const float> scores, bool left_out);
  void sums(std::span<const double> sums);
  void ranking(const Ranking& ranking);
  void refused(std::string_view why);
  void end(const PickResult& result);

  // The entries; valid until the next begin().
  std::span<const std::uint64_t> words() const { return {words_.get(), used_}; }

 private:
  using Part = std::span<const std::byte>;
  template <typename T>
  static Part part(const T& value) {
    return std::as_bytes(std::span<const T, 1>(&value, 1));
  }
  static Part part(std::string_view text) {
    return std::as_bytes(std::span<const char>(text.data(), text.size()));
  }
  void append(TraceKind kind, std::initializer_list<Part> parts);

  std::unique_ptr<std::uint64_t[]> words_;
  std::size_t room_;
  std::size_t used_ = 0;
  bool cut_ = false;
};

}  // namespace pickd::pick
