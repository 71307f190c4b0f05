#include "daemon/pick/explanation.hpp"

#include <algorithm>
#include <cstring>

namespace pickd::pick {

namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

// The content of one entry; false from take() where it ends too early.
class Content {
 public:
  explicit Content(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  bool take(T& value) {
    return take_bytes(&value, sizeof value);
  }
  bool take(std::string& text, std::size_t bytes) {
    text.resize(bytes);
    return take_bytes(text.data(), bytes);
  }
  void take_rest(std::string& text) { take(text, bytes_.size()); }
  template <typename T>
  bool take(std::vector<T>& values, std::size_t count) {
    values.resize(count);
    return take_bytes(values.data(), count * sizeof(T));
  }

 private:
  bool take_bytes(void* to, std::size_t bytes) {
    if (bytes > bytes_.size()) return false;
    if (bytes != 0) std::memcpy(to, bytes_.data(), bytes);
    bytes_ = bytes_.subspan(bytes);
    return true;
  }
  std::span<const std::byte> bytes_;
};

class TraceReader {
 public:
  std::optional<Explanation> read(std::span<const std::uint64_t> trace) {
    bool ended = false;
    while (!trace.empty() && !ended) {
      const std::uint64_t head = trace[0];
      const std::size_t bytes = head >> 8;
      const std::size_t words = 1 + (bytes + kWord - 1) / kWord;
      if (words > trace.size()) return std::nullopt;
      const auto kind = static_cast<TraceKind>(head & 0xFF);
      Content content(std::as_bytes(trace.subspan(1)).first(bytes));
      if (!take(kind, content)) return std::nullopt;
      ended = kind == TraceKind::kResult;
      trace = trace.subspan(words);
    }
    if (!ended) return std::nullopt;
    return std::move(made_);
  }

 private:
  bool take(TraceKind kind, Content& content) {
    // Everything of a stage comes after its begin.
    const bool in_stage = kind >= TraceKind::kCandidate && kind <= TraceKind::kRanking;
    if (in_stage && made_.stages.empty()) return false;
    switch (kind) {
      case TraceKind::kPick: return take_pick(content);
      case TraceKind::kLeftOut: return take_left_out(content);
      case TraceKind::kStage: return take_stage(content);
      case TraceKind::kCandidate: return take_candidate(content);
      case TraceKind::kColumn: return take_column(content);
      case TraceKind::kFilter: return take_filter(content);
      case TraceKind::kScorer: return take_scorer(content);
      case TraceKind::kSums: return take_sums(content);
      case TraceKind::kRanking: return take_ranking(content);
      case TraceKind::kRefused: content.take_rest(made_.refused); return true;
      case TraceKind::kResult: return content.take(made_.result);
    }
    return false;
  }

  bool take_pick(Content& content) {
    if (!content.take(made_.pick)) return false;
    std::string* const texts[] = {&made_.model, &made_.adapter, &made_.session, &made_.request_id};
    for (std::size_t at = 0; at < std::size(texts); ++at) {
      if (!content.take(*texts[at], made_.pick.text_bytes[at])) return false;
    }
    return true;
  }

  bool take_left_out(Content& content) {
    TracedEndpoint traced{};
    if (!content.take(traced)) return false;
    Explanation::LeftOutEndpoint endpoint{traced.id, "", traced.why, traced.state};
    content.take_rest(endpoint.name);
    made_.left_out.push_back(std::move(endpoint));
    return true;
  }

  bool take_stage(Content& content) {
    TracedStage traced{};
    if (!content.take(traced)) return false;
    Explanation::RunStage stage;
    stage.stage = traced.stage;
    stage.least_bad = traced.least_bad != 0;
    content.take_rest(stage.profile);
    made_.stages.push_back(std::move(stage));
    left_.clear();
    return true;
  }
  Explanation::RunStage& stage() { return made_.stages.back(); }
  Explanation::Candidate& candidate(std::size_t at) { return stage().candidates[left_[at]]; }

  bool take_candidate(Content& content) {
    TracedEndpoint traced{};
    if (!content.take(traced)) return false;
    Explanation::Candidate made;
    made.id = traced.id;
    made.generation = traced.generation;
    made.columns.fill(kUnknown);
    content.take_rest(made.name);
    left_.push_back(stage().candidates.size());
    stage().candidates.push_back(std::move(made));
    return true;
  }

  bool take_column(Content& content) {
    TracedColumn traced{};
    std::vector<float> values;
    if (!content.take(traced) || !content.take(values, left_.size())) return false;
    const auto column = static_cast<std::size_t>(traced.column);
    if (column >= kColumns) return false;
    stage().columns |= column_bit(traced.column);
    for (std::size_t at = 0; at < left_.size(); ++at) candidate(at).columns[column] = values[at];
    return true;
  }

  bool take_filter(Content& content) {
    TracedPlugin traced{};
    Explanation::UsedFilter filter;
    std::vector<std::uint8_t> keep;
    if (!content.take(traced) || !content.take(filter.name, traced.name_bytes) ||
        !content.take(keep, left_.size())) {
      return false;
    }
    const auto index = static_cast<std::uint32_t>(stage().filters.size());
    std::vector<std::size_t> left;
    for (std::size_t at = 0; at < left_.size(); ++at) {
      if (keep[at] != 0) {
        left.push_back(left_[at]);
      } else {
        candidate(at).dropped_by = index;
        ++filter.dropped;
      }
    }
    left_ = std::move(left);
    stage().filters.push_back(std::move(filter));
    return true;
  }

  bool take_scorer(Content& content) {
    TracedPlugin traced{};
    Explanation::UsedScorer scorer;
    std::vector<float> scores;
    if (!content.take(traced) || !content.take(scorer.name, traced.name_bytes) ||
        !content.take(scores, left_.size())) {
      return false;
    }
    scorer.weight = traced.weight;
    scorer.left_out = traced.left_out != 0;
    for (std::size_t at = 0; at < left_.size(); ++at) candidate(at).scores.push_back(scores[at]);
    stage().scorers.push_back(std::move(scorer));
    return true;
  }

  bool take_sums(Content& content) {
    std::vector<double> sums;
    if (!content.take(sums, left_.size())) return false;
    for (std::size_t at = 0; at < left_.size(); ++at) candidate(at).sum = sums[at];
    return true;
  }

  bool take_ranking(Content& content) {
    Ranking ranking;
    if (!content.take(ranking) || ranking.count > std::size(ranking.order)) return false;
    for (std::uint32_t place = 0; place < ranking.count; ++place) {
      if (ranking.order[place] >= left_.size()) return false;
      candidate(ranking.order[place]).place = place + 1;
    }
    stage().ties = ranking.ties;
    return true;
  }

  Explanation made_;
  std::vector<std::size_t> left_;  // candidates of the stage that no filter has dropped so far
};

}  // namespace

std::optional<Explanation> explain(std::span<const std::uint64_t> trace) {
  return TraceReader().read(trace);
}

}  // namespace pickd::pick
